"""An event loop whose time passes only when nobody has anything to do: an hour of waiting takes no time at all.

Everything else is asyncio's own loop, so tasks run in the same order in every run of the same program. What belongs to
one process of the simulation can be frozen, as by SIGSTOP: its callbacks wait until it is thawed, while time goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
import weakref

__all__ = ["PROCESS", "StalledError", "VirtualLoop"]

PROCESS: contextvars.ContextVar[int | None] = contextvars.ContextVar("process", default=None)
"""Whose code runs: set in a process's first task, inherited by all that it starts."""

_START_S = 1_000.0
_TICK_S = 1e-6
_MAX_TURNS = 200_000


class StalledError(RuntimeError):
    """Every task waits for something that nothing will ever bring."""


class _Idle(selectors.SelectSelector):
    """Waits for no file; a wait with an end moves the time to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = _START_S
        self.turns = 0

    def select(self, timeout=None):
        self.turns += 1
        if self.turns > _MAX_TURNS:
            raise StalledError("the program turns without end")
        if timeout is None:
            raise StalledError("nothing is scheduled any more, but the program has not ended")
        self.now_s += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; ``time`` is virtual, in seconds."""

    def __init__(self) -> None:
        self._idle = _Idle()
        self._thaws_s: dict[int, float] = {}
        self._dead: set[int] = set()
        self._tasks: dict[int, weakref.WeakSet[asyncio.Task]] = {}
        super().__init__(self._idle)

    def time(self) -> float:
        return self._idle.now_s

    def freeze(self, process: int, for_s: float) -> None:
        """Let nothing of a process run for so long."""
        self._thaws_s[process] = self.time() + for_s

    def thaw(self, process: int) -> None:
        """Let a process go on now."""
        self._thaws_s.pop(process, None)

    def create_task(self, coro, *, name=None, context=None):
        task = super().create_task(coro, name=name, context=context)
        process = PROCESS.get() if context is None else context.get(PROCESS)
        if process is not None:
            self._tasks.setdefault(process, weakref.WeakSet()).add(task)
        return task

    async def bury(self, process: int) -> None:
        """End all tasks of a process, and let nothing of it run any more."""
        left = [task for task in self._tasks.pop(process, ()) if not task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._dead.add(process)

    def call_soon(self, callback, *args, context=None):
        return self._owned(super().call_soon, (), callback, args, context)

    def call_at(self, when, callback, *args, context=None):
        return self._owned(super().call_at, (when,), callback, args, context)

    def _owned(self, plan, when, callback, args, context):
        """Plan a callback that waits while its process is frozen, and that can still be cancelled then."""
        context = contextvars.copy_context() if context is None else context  # an empty one is falsy
        process = context.get(PROCESS)
        if process is None:
            return plan(*when, callback, *args, context=context)

        def run():
            thaws_s = self._thaws_s.get(process, 0.0)
            if self.time() + _TICK_S < thaws_s:
                super(VirtualLoop, self).call_at(thaws_s, run, context=context)
            elif not handle.cancelled() and process not in self._dead:
                callback(*args)

        handle = plan(*when, run, context=context)
        return handle

    def _write_to_self(self) -> None:
        """Nothing sleeps in a system call, so nothing has to be woken (call_soon_threadsafe comes from this thread)."""
