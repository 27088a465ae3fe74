"""Traces: where the time of a slow decision went. Logged only when the decision took long."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.telemetry.logging import Logger, get_logger

__all__ = ["LONG_S", "Trace"]

LONG_S = 0.1
"""Decisions that take longer are logged with their steps."""

_log = get_logger(__name__)


class Trace:
    """A stop watch with lap times."""

    __slots__ = ("_last_s", "_perf_counter", "_started_s", "_steps")

    def __init__(self, perf_counter: Callable[[], float]) -> None:
        self._perf_counter = perf_counter
        self._started_s = self._last_s = perf_counter()
        self._steps: list[tuple[str, float]] = []

    def step(self, name: str) -> None:
        """Note that a step has just ended."""
        now_s = self._perf_counter()
        self._steps.append((name, now_s - self._last_s))
        self._last_s = now_s

    def log_if_long(self, pod: str, log: Logger = _log) -> None:
        """Log the steps if the whole took longer than ``LONG_S``."""
        total_s = self._perf_counter() - self._started_s
        if total_s > LONG_S:
            steps = {name: round(duration_s, 6) for name, duration_s in self._steps}
            log.warning("scheduling took long", pod=pod, duration_s=round(total_s, 6), steps=steps)
