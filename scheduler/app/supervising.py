"""Supervising: no task of the daemon dies in silence.

What others can do without for a moment is started again. What nothing works without (leading, the watches) ends the
scheduling thread, and with it the process: a container that is started anew decides, one that waits for ever does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from scheduler.telemetry.logging import get_logger

__all__ = ["VitalTasks", "keep_running"]

_RESTART_S = 1.0

_log = get_logger(__name__)


def keep_running(name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Run a helper on the running loop until cancelled; one that breaks is logged and started again."""

    async def repeat() -> None:
        while True:
            try:
                await run()
            except Exception as error:  # noqa: BLE001  supervisor: silence would be a failure
                _log.error("helper broke, starting it again", helper=name, err=repr(error))
            await asyncio.sleep(_RESTART_S)

    return asyncio.get_running_loop().create_task(repeat(), name=name)


class VitalTasks:
    """Tasks that nothing works without; all run on one loop.

    Args:
        end: is called when the first of them has broken; ends what the loop is there for.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._tasks: list[asyncio.Task[None]] = []
        self._error: BaseException | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` beside the others."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._note)
        self._tasks.append(task)

    def check(self) -> None:
        """Raise what the first broken one raised, if any."""
        if self._error is not None:
            raise self._error

    async def cancel(self) -> None:
        """Cancel those that still run."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _note(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None or self._error is not None:
            return
        self._error = error
        self._end()
