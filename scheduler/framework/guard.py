"""Guard: the one door through which plugin code is called.

Whatever a plugin raises, returns or wastes must stay its own problem: an exception or a bad answer becomes a
``PluginFault``, which the caller turns into an Error status that names plugin and extension point; a call over the time
budget is counted and logged, its answer stands. A metric counts each, the scheduler lives on. The cost on the good path
is one call, one try block and two clock readings (about 0.2 µs). Plugins of third parties have a shield inside this
door, which may skip them instead (``framework.shield``); its faults pass through, as they have been counted.

Exceptions that are not ``Exception`` (cancellation, KeyboardInterrupt, SystemExit) pass through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple, cast

from scheduler.api import Code, Status
from scheduler.framework.metrics import FAULT_BAD_ANSWER, FAULT_EXCEPTION, FAULT_OVERRUN, FrameworkMetrics
from scheduler.telemetry.logging import get_logger

__all__ = ["DEFAULT_BUDGET_S", "Guard", "PluginFault", "bad_status", "code_name"]

Ts = TypeVarTuple("Ts")
R = TypeVar("R")

DEFAULT_BUDGET_S = 0.1
"""Longest time that one call of a plugin should take on the scheduling thread."""

OnOverrun = Callable[[str, float, bool], None]
"""``on_overrun(point, seconds, is_told)``; ``is_told``: it is one of those that are logged."""

_log = get_logger(__name__)


class PluginFault(Exception):  # noqa: N818  it is the plugin's fault, not an error of the caller
    """A plugin raised, gave a bad answer, or is in quarantine.

    Attributes:
        plugin: the plugin's name.
        point: the extension point.
    """

    def __init__(self, plugin: str, point: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.point = point

    def status(self, wording: str) -> Status:
        """Return the Error status; ``wording`` is the point's text with one ``%s`` for the plugin's name."""
        text = f"{wording % self.plugin}: {self}"
        return Status(Code.ERROR, (text,), plugin=self.plugin, cause=self.__cause__ or self)


def code_name(status: Status | None) -> str:
    """Return the metric label of an answer."""
    return "Success" if status is None else str(status.code)


class Guard:
    """Calls plugins of one profile.

    Attributes:
        last_s: duration of the newest synchronous call; sampled attempts report it.
    """

    __slots__ = ("_budget_s", "_metrics", "_overruns", "_own_budget_s", "_perf_counter", "_watched", "last_s")

    def __init__(
        self, metrics: FrameworkMetrics, perf_counter: Callable[[], float], *, budget_s: float = DEFAULT_BUDGET_S
    ) -> None:
        self._metrics = metrics
        self._perf_counter = perf_counter
        self._budget_s = self._own_budget_s = budget_s
        self._watched: dict[str, tuple[float, OnOverrun]] = {}
        self._overruns: dict[tuple[str, str], int] = {}
        self.last_s = 0.0

    def watch(self, plugin: str, budget_s: float | None, on_overrun: OnOverrun) -> None:
        """Hold this plugin to a budget of its own (None: to that of all), and tell of its calls that take longer."""
        own_s = self._own_budget_s if budget_s is None else budget_s
        self._watched[plugin] = (own_s, on_overrun)
        self._budget_s = min(self._budget_s, own_s)

    def watches(self, plugin: str) -> bool:
        """Say whether the plugin's own calls are watched, so that it must not be called together with others."""
        return plugin in self._watched

    def call(self, plugin: str, point: str, function: Callable[[*Ts], R], *args: *Ts) -> R:
        """Call ``function``.

        Raises:
            PluginFault: it raised.
        """
        started_s = self._perf_counter()
        try:
            result = function(*args)
        except PluginFault:
            raise
        except Exception as error:
            raise self.raised(plugin, point, error) from error
        self.last_s = elapsed_s = self._perf_counter() - started_s
        if elapsed_s > self._budget_s:
            self._overran(plugin, point, elapsed_s)
        return result

    async def call_async(self, plugin: str, point: str, function: Callable[[], Awaitable[R]]) -> R:
        """Await ``function()``; no time budget, as the binding cycle may wait for the world.

        Raises:
            PluginFault: it raised.
        """
        try:
            return await function()
        except PluginFault:
            raise
        except Exception as error:
            raise self.raised(plugin, point, error) from error

    def status(self, plugin: str, point: str, answer: object) -> Status | None:
        """Return a plugin's answer as a status, None for success.

        Raises:
            PluginFault: it is neither None nor a Status.
        """
        if answer is None:
            return None
        if not isinstance(answer, Status):
            raise self.bad_answer(plugin, point, answer, "a Status or None")
        if answer.code is Code.SUCCESS:
            return None
        if answer.code is Code.SKIP:
            return answer  # by far the most frequent one, and nothing else in it is read
        if not _is_well_formed(answer):
            raise self.bad_answer(plugin, point, answer, "a Status with a Code and a tuple of texts")
        return answer

    def bad_answer(self, plugin: str, point: str, answer: object, wanted: str) -> PluginFault:
        """Return (not raise) the fault of an answer of the wrong type, counted and logged."""
        self._metrics.plugin_fault(plugin, point, FAULT_BAD_ANSWER)
        message = f"returned {_shown(answer)} where {wanted} was expected"
        _log.error("plugin gave a bad answer", plugin=plugin, extension_point=point, error=message)
        return PluginFault(plugin, point, message)

    def raised(self, plugin: str, point: str, error: Exception) -> PluginFault:
        """Return (not raise) the fault of an exception, counted and logged."""
        self._metrics.plugin_fault(plugin, point, FAULT_EXCEPTION)
        text = _text_of(error)
        message = f"{type(error).__name__}: {text}" if text else type(error).__name__
        _log.error("plugin raised an exception", plugin=plugin, extension_point=point, error=message, exc_info=error)
        return PluginFault(plugin, point, message)

    def _overran(self, plugin: str, point: str, elapsed_s: float) -> None:
        budget_s, on_overrun = self._watched.get(plugin, (self._own_budget_s, None))
        if elapsed_s <= budget_s:
            return  # the shortest of all budgets was another's
        self._metrics.plugin_fault(plugin, point, FAULT_OVERRUN)
        count = self._overruns[plugin, point] = self._overruns.get((plugin, point), 0) + 1
        is_told = count & (count - 1) == 0  # the 1st, 2nd, 4th, 8th … time: a slow plugin must not flood the log
        if is_told:
            _log.warning(
                "plugin overran its time budget",
                plugin=plugin,
                extension_point=point,
                duration_s=round(elapsed_s, 6),
                budget_s=budget_s,
                times=count,
            )
        if on_overrun is not None:
            on_overrun(point, elapsed_s, is_told)


def bad_status(answer: object) -> str | None:
    """Return what should stand in place of a plugin's answer, or None if it is a Status or None as it should be."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        return "a Status or None"
    return None if _is_well_formed(answer) else "a Status with a Code and a tuple of texts"


def _is_well_formed(status: Status) -> bool:
    code, reasons = cast("tuple[object, object]", (status.code, status.reasons))
    return isinstance(code, Code) and isinstance(reasons, tuple) and all(isinstance(r, str) for r in reasons)


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a plugin's exception may be broken itself
        return "(no text: its __str__ raised)"


def _shown(answer: object) -> str:
    name = type(cast("Any", answer)).__name__
    return f"{name} ({answer!r:.80})" if isinstance(answer, str | int | float | bool) else name
