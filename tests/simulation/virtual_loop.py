"""An event loop whose time passes only when nobody has anything to do: an hour of waiting takes no time at all.

Tasks and futures are asyncio's own. What runs next is decided here: everything that is due, in the order in which it
was planned; then time moves to whatever is due next, of equals the one planned first. So every run of the same program
is the same. What belongs to one process of the simulation can be frozen, as by SIGSTOP: its callbacks wait until it is
thawed, while time goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import weakref
from collections import deque
from collections.abc import Callable

__all__ = ["PROCESS", "StalledError", "Stopwatch", "VirtualLoop"]

PROCESS: contextvars.ContextVar[int | None] = contextvars.ContextVar("process", default=None)
"""Whose code runs: set in a process's first task, inherited by all that it starts."""

_START_S = 1_000.0
_TICK_S = 1e-6
_MAX_STEPS_AT_ONCE = 100_000
_MAX_CALLS_AT_ONCE = 20_000


class StalledError(BaseException):  # not to be taken for an error of what runs
    """Every task waits for something that nothing will ever bring, or the program works on while time stands still."""


class Stopwatch:
    """Measures durations in virtual time, and notices a program that measures and measures while time stands still."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._last_s = 0.0
        self._calls = 0

    def __call__(self) -> float:
        now_s = self._now_s()
        self._calls = self._calls + 1 if now_s == self._last_s else 0
        self._last_s = now_s
        if self._calls > _MAX_CALLS_AT_ONCE:
            raise StalledError("a process works on and on while time stands still")
        return now_s


class _Planned:
    """A callback that will run, or that is cancelled: as asyncio's handles, with nothing to tell a debugger."""

    __slots__ = ("arguments", "callback", "context", "is_cancelled", "when_s")

    def __init__(self, when_s, callback, arguments, context) -> None:
        self.when_s = when_s
        self.callback = callback
        self.arguments = arguments
        self.context = contextvars.copy_context() if context is None else context  # an empty one is falsy
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.callback = self.arguments = None

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.when_s


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; ``time`` is virtual, in seconds."""

    def __init__(self) -> None:
        self._now_s = _START_S
        self._due: deque[_Planned] = deque()
        self._later: list[tuple[float, int, _Planned]] = []
        self._number = itertools.count()
        self._thaws_s: dict[int, float] = {}
        self._held: dict[int, list[_Planned]] = {}
        self._dead: set[int] = set()
        self._tasks: dict[int, weakref.WeakKeyDictionary[asyncio.Task, None]] = {}
        super().__init__()

    def time(self) -> float:
        return self._now_s

    def freeze(self, process: int, for_s: float) -> None:
        """Let nothing of a process run for so long."""
        self._thaws_s[process] = self._now_s + for_s
        self.call_later(for_s, self._thaw_if_due, process, context=contextvars.Context())

    def thaw(self, process: int) -> None:
        """Let a process go on now, with all that has waited for it."""
        self._thaws_s.pop(process, None)
        self._due.extend(self._held.pop(process, ()))

    def _thaw_if_due(self, process: int) -> None:
        """Thaw a process unless it was frozen again meanwhile, for longer."""
        if process in self._thaws_s and self._thaws_s[process] <= self._now_s + _TICK_S:
            self.thaw(process)

    def create_task(self, coro, *, name=None, context=None):
        task = super().create_task(coro, name=name, context=context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            self._tasks.setdefault(process, weakref.WeakKeyDictionary())[task] = None
        return task

    async def bury(self, process: int) -> None:
        """End all tasks of a process, and let nothing of it run any more."""
        left = [task for task in self._tasks.pop(process, ()) if not task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._dead.add(process)

    # --- planning ----------------------------------------------------------------------------------------------------

    def call_soon(self, callback, *args, context=None):
        planned = _Planned(self._now_s, callback, args, context)
        self._due.append(planned)
        return planned

    call_soon_threadsafe = call_soon  # there is one thread

    def call_later(self, delay, callback, *args, context=None):
        when_s = self._now_s + delay
        planned = _Planned(when_s, callback, args, context)
        heapq.heappush(self._later, (when_s, next(self._number), planned))
        return planned

    def call_at(self, when, callback, *args, context=None):
        planned = _Planned(when, callback, args, context)
        heapq.heappush(self._later, (when, next(self._number), planned))
        return planned

    # --- running -----------------------------------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Do all that is due; if that is nothing, move time."""
        due, left = self._due, _MAX_STEPS_AT_ONCE
        if not due:
            self._move_time()
        while due and not self._stopping:
            planned = due.popleft()
            if planned.is_cancelled or ((self._thaws_s or self._dead) and self._is_held(planned)):
                continue
            try:
                planned.context.run(planned.callback, *planned.arguments)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  as every loop: it is told, and others go on
                self.call_exception_handler({"message": f"exception in {planned.callback}", "exception": error})
            left -= 1
            if not left:
                raise StalledError("the program works on and on while time stands still")

    def _move_time(self) -> None:
        later = self._later
        while later and later[0][2].is_cancelled:
            heapq.heappop(later)
        if not later:
            raise StalledError("nothing is planned any more, but the program has not ended")
        self._now_s = max(self._now_s, later[0][0])
        while later and later[0][0] <= self._now_s:
            planned = heapq.heappop(later)[2]
            if not planned.is_cancelled:
                self._due.append(planned)

    def _is_held(self, planned: _Planned) -> bool:
        """Say whether a callback's process cannot run; one that is frozen gets it when it thaws."""
        process = planned.context.get(PROCESS)
        if process in self._thaws_s:
            self._held.setdefault(process, []).append(planned)
            return True
        return process in self._dead
