"""Threads for plugins' plain functions that may block: PreBind, Bind and PostBind that are not ``async def``.

The standard executors wait for their threads when the process ends, so one plugin that hangs would keep the process
from ending at all. These threads are daemons: whatever hangs in them is given up with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

__all__ = ["BlockingCalls"]

_MAX_THREADS = 32

_Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class BlockingCalls:
    """Runs plain functions beside the loop, at most 32 at a time; further ones wait for their turn."""

    def __init__(self, name: str, *, max_threads: int = _MAX_THREADS) -> None:
        self._name = name
        self._max_threads = max_threads
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._lock = threading.Lock()

    async def __call__(self, function: Callable[[], Any]) -> Any:
        """Run ``function`` and return its result, or raise what it raised."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((function, loop, answer))
        self._provide_thread()
        return await answer

    def _provide_thread(self) -> None:
        with self._lock:
            if self._idle >= self._jobs.qsize() or self._threads >= self._max_threads:
                return
            self._threads += 1
            number = self._threads
        threading.Thread(target=self._work, name=f"{self._name}-{number}", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            function, loop, answer = self._jobs.get()
            with self._lock:
                self._idle -= 1
            result: Any = None
            failure: BaseException | None = None
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001  it is raised again where the function was asked for
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(_settle, answer, result, failure)


def _settle(answer: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if answer.done():  # the binding was given up
        return
    if failure is None:
        answer.set_result(result)
    else:
        answer.set_exception(failure)
