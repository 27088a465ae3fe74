"""A scheduler process of the simulation: the daemon's scheduling side and elector, on the virtual loop.

It lives as ``app.daemon`` lives: the lease's loss ends it, and its supervisor starts it anew a second later.

    start ──▶ watching ──▶ leading ──┬─ stop  ──▶ drained, lease released ──▶ gone
                                     ├─ lost  ──▶ writes end (≤ 4 s) ──▶ gone ──1 s──▶ start
                                     └─ crash ──▶ gone at once
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import random
from collections.abc import Callable

from scheduler import __version__
from scheduler.app.outside import Outside
from scheduler.app.scheduling import SchedulingThread
from scheduler.config.flags import complete, parse_flags
from scheduler.framework.registry import Registry
from scheduler.kube.lease import LeaderCallbacks, LeaderElector, LeaseConfig
from scheduler.kube.transport import Transport
from scheduler.plugins import IN_TREE
from scheduler.telemetry.metrics import Metrics
from tests.simulation.virtual_loop import PROCESS

__all__ = ["SCHEDULER_NAME", "Replica"]

SCHEDULER_NAME = "podium"
_CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{schedulerName: {SCHEDULER_NAME}}}]
"""
_COMPLETED = complete(parse_flags(["--config=config.yaml"]), lambda _path: _CONFIG.encode())
_REGISTRY = Registry.installed(IN_TREE)
_PROCESSES = itertools.count(1)
_DRAIN_S, _LOST_DRAIN_S, _RESTART_S = 20.0, 4.0, 1.0


class _Clock:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now = now_s


class Replica:
    """One process after another under one name.

    Args:
        number: of the replica.
        connect: makes a Transport.
        chance: ties and jitter.
    """

    def __init__(self, number: int, connect: Callable[[], Transport], chance: random.Random) -> None:
        self.number = number
        self.starts = 0
        self._connect = connect
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._life: asyncio.Task[None] | None = None
        self._process = 0
        self._stop = asyncio.Event()
        self.scheduling: SchedulingThread | None = None
        self.elector: LeaderElector | None = None

    @property
    def identity(self) -> str:
        """Name of the present process in the lease."""
        return f"replica-{self.number}-{self.starts}"

    def start(self) -> None:
        """Start the process; its supervisor starts it again whenever it ends."""
        self._process = next(_PROCESSES)
        context = contextvars.copy_context()
        context.run(PROCESS.set, self._process)
        self._life = self._loop.create_task(self._live_again_and_again(), context=context)

    async def crash(self) -> None:
        """End the process at once; its supervisor starts it again."""
        await self._kill()
        self.start()

    async def stop(self) -> None:
        """Ask the process to end in good order; its supervisor starts it again."""
        self._stop.set()

    async def end(self) -> None:
        """End the process at once, for good."""
        await self._kill()

    async def _kill(self) -> None:
        if self._life is not None:
            self._loop.thaw(self._process)
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
            await self._loop.bury(self._process)

    async def _live_again_and_again(self) -> None:
        while True:
            await self._live()
            await asyncio.sleep(_RESTART_S)

    async def _live(self) -> None:
        self.starts += 1
        self._stop = asyncio.Event()
        scheduling, elector = self._build()
        living = self._loop.create_task(scheduling.live())
        leading = self._loop.create_task(elector.run())
        asked = self._loop.create_task(self._stop.wait())
        scheduling.watch()
        try:
            await asyncio.wait([living, leading, asked], return_when=asyncio.FIRST_COMPLETED)
            await scheduling.drain(_DRAIN_S if asked.done() else _LOST_DRAIN_S)
            scheduling.stop()
            await asyncio.wait([living], timeout=5.0)
            if asked.done() and not leading.done():
                elector.stop()
                await asyncio.wait([leading], timeout=5.0)
            for task in (living, leading):
                if task.done() and task.exception() is not None:
                    raise task.exception()
        finally:
            for task in (living, leading, asked):
                task.cancel()
            await asyncio.gather(living, leading, asked, return_exceptions=True)

    def _build(self) -> tuple[SchedulingThread, LeaderElector]:
        seen: list[str] = []

        def lead() -> None:
            others = [identity for identity in seen if identity not in {"", self.identity}]
            scheduling.lead(after_another=bool(others))

        scheduling = SchedulingThread(
            _COMPLETED,
            None,
            _REGISTRY,
            Metrics(version=__version__, with_process=False),
            may_write=lambda deadline_s: elector.may_write(deadline_s),  # noqa: PLW0108  it is made below
            outside=Outside(
                clock=_Clock(self._loop.time),
                random=self._chance,
                perf_counter=self._loop.time,
                after_sync=lambda: None,
            ),
            connect=self._connect,
        )
        elector = LeaderElector(
            LeaseConfig(identity=self.identity, name=SCHEDULER_NAME),
            LeaderCallbacks(lead, scheduling.stop_deciding, seen.append),
            self._connect(),
            random=self._chance,
            now_s=self._loop.time,
        )
        self.scheduling, self.elector = scheduling, elector
        return scheduling, elector

    def freeze(self, for_s: float) -> None:
        """Stop the process, as by SIGSTOP, and let it go on after so long."""
        self._loop.freeze(self._process, for_s)

    @property
    def is_leading(self) -> bool:
        return self.elector is not None and self.elector.is_leader
