"""Background: what plugins have done beside the cycle, such as reading a file or asking a server now and then.

``Background`` is where such calls run: on threads in the daemon (``app.background``), by virtual time in the test
harness. ``Refreshes`` belongs to one handle: it keeps what a plugin asked for until its profile is complete, and ends
it when the profile goes away. What a call raises is counted and logged; the next one comes when it is due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from scheduler.framework.metrics import FAULT_EXCEPTION, FrameworkMetrics
from scheduler.telemetry.logging import get_logger

__all__ = ["BACKGROUND", "Background", "Refreshes", "no_background"]

BACKGROUND = "Background"
"""What metrics and logs show instead of an extension point."""

_SHORTEST_S = 0.1
_log = get_logger(__name__)


class Background(Protocol):
    """Calls functions now and then, where they may block."""

    def __call__(self, name: str, function: Callable[[], None], every_s: float) -> Callable[[], None]:
        """Call ``function`` now and every ``every_s`` seconds until the returned function is called."""


def no_background(name: str, function: Callable[[], None], every_s: float) -> Callable[[], None]:
    """Call ``function`` never: the default where nobody turns a background."""
    del name, function, every_s
    return lambda: None


class Refreshes:
    """What one plugin has done in the background."""

    __slots__ = ("_background", "_cancels", "_metrics", "_plugin", "_waiting")

    def __init__(self, plugin: str, background: Background, metrics: FrameworkMetrics) -> None:
        self._plugin = plugin
        self._background = background
        self._metrics = metrics
        self._waiting: list[tuple[Callable[[], None], float]] | None = []
        self._cancels: list[Callable[[], None]] = []

    def add(self, function: Callable[[], None], every_s: float) -> None:
        """Have ``function`` called, once ``start`` has been.

        Raises:
            ValueError: the period is too short.
        """
        if not every_s >= _SHORTEST_S:
            raise ValueError(f"a period of {every_s} s is too short, the shortest is {_SHORTEST_S} s")
        if self._waiting is None:
            self._begin(function, every_s)
        else:
            self._waiting.append((function, every_s))

    def start(self) -> None:
        """Begin: all plugins of the profile have been made."""
        waiting, self._waiting = self._waiting or [], None
        for function, every_s in waiting:
            self._begin(function, every_s)

    def close(self) -> None:
        """End all; a call that is under way may still go on for a moment."""
        self._waiting = []
        for cancel in self._cancels:
            cancel()
        self._cancels.clear()

    def call(self, function: Callable[[], None]) -> None:
        """Call a function of the plugin that nobody waits for; what it raises is counted and logged."""
        try:
            function()
        except Exception as error:  # noqa: BLE001  third-party code: it must not end the thread that it runs on
            self._metrics.plugin_fault(self._plugin, BACKGROUND, FAULT_EXCEPTION)
            _log.error("plugin raised in the background", plugin=self._plugin, err=repr(error), exc_info=error)

    def _begin(self, function: Callable[[], None], every_s: float) -> None:
        self._cancels.append(self._background(self._plugin, lambda: self.call(function), every_s))
