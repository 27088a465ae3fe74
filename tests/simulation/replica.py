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
import functools
import itertools
import random
from collections.abc import Callable

from scheduler import __version__
from scheduler.app.outside import Outside
from scheduler.app.scheduling import SchedulingThread
from scheduler.config.flags import CompletedConfig, complete, parse_flags
from scheduler.framework.registry import Registry
from scheduler.kube.lease import LeaderCallbacks, LeaderElector, LeaseConfig
from scheduler.kube.transport import Transport
from scheduler.plugins import IN_TREE
from scheduler.telemetry.metrics import Metrics
from tests.simulation.extender import THING, Extender
from tests.simulation.virtual_loop import PROCESS, Stopwatch

__all__ = ["COMPARE_S", "RIVAL", "SCHEDULER_NAME", "Replica"]

COMPARE_S = 40.0
"""A lost watch line is found and made up for within this time."""

SCHEDULER_NAME, RIVAL = "podium", "rival"
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: NAME}]
"""
_WITH_EXTENDER = f"""{_CONFIG}
extenders:
- urlPrefix: http://extender.test
  filterVerb: filter
  bindVerb: bind
  nodeCacheCapable: true
  managedResources: [{{name: {THING}, ignoredByScheduler: true}}]
"""
_OPTIONS = f"""
apiVersion: podium.dev/v1alpha1
kind: SchedulerOptions
comparePeriodSeconds: {COMPARE_S}
"""
_BEGINNING_NS = 1_893_456_000_000_000_000  # 2030 begins
_REGISTRY = Registry.installed(IN_TREE)
_PROCESSES = itertools.count(1)
_DRAIN_S, _LOST_DRAIN_S, _RESTART_S = 20.0, 4.0, 1.0


class _Clock:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now = now_s


class _Calendar:
    """The time of day, as far from its beginning as the history; no two moments are the same, as in the world."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._last_ns = 0

    def __call__(self) -> int:
        self._last_ns = max(_BEGINNING_NS + int(self._now_s() * 1e9), self._last_ns + 1)
        return self._last_ns


def _as_text(now_s: float) -> str:
    """Return the time of day in the first day of the calendar, as the lease has it."""
    minutes, seconds = divmod(now_s, 60.0)
    return f"2030-01-01T{int(minutes) // 60:02}:{int(minutes) % 60:02}:{seconds:09.6f}Z"


class Replica:
    """One process after another under one name.

    Args:
        number: of the replica.
        scheduler_name: whose pods it schedules; also the lease's name.
        outside: makes, for a process's identity, what connects to the API server, and the extender.
        chance: ties and jitter.
        has_extender: whether the configuration names the extender.
    """

    def __init__(
        self,
        number: int,
        scheduler_name: str,
        outside: Callable[[str], tuple[Callable[[], Transport], Extender]],
        chance: random.Random,
        *,
        has_extender: bool = False,
    ) -> None:
        self.number = number
        self.scheduler_name = scheduler_name
        self.starts = 0
        self._outside = outside
        self._completed = _completed(scheduler_name, has_extender=has_extender)
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
        return f"{self.scheduler_name}-{self.number}-{self.starts}"

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

    def stop(self) -> None:
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
        connect, extender = self._outside(self.identity)

        def lead() -> None:
            others = [identity for identity in seen if identity not in {"", self.identity}]
            scheduling.lead("" if others else elector.found_version or None)

        scheduling = SchedulingThread(
            self._completed,
            None,
            _REGISTRY,
            Metrics(version=__version__, with_process=False),
            may_write=lambda deadline_s: elector.may_write(deadline_s),  # noqa: PLW0108  it is made below
            outside=Outside(
                clock=_Clock(self._loop.time),
                random=self._chance,
                perf_counter=Stopwatch(self._loop.time),
                now_ns=_Calendar(self._loop.time),
                after_sync=lambda: None,
                when_idle=lambda: None,
                blocking=lambda _name: extender.run_blocking,
                extender_call=lambda _configuration, _observe: extender,
            ),
            connect=connect,
        )
        elector = LeaderElector(
            LeaseConfig(identity=self.identity, name=self.scheduler_name),
            LeaderCallbacks(lead, scheduling.stop_deciding, seen.append),
            connect(),
            random=self._chance,
            now_s=self._loop.time,
            wall_time=lambda: _as_text(self._loop.time()),
        )
        self.scheduling, self.elector = scheduling, elector
        return scheduling, elector

    def freeze(self, for_s: float) -> None:
        """Stop the process, as by SIGSTOP, and let it go on after so long."""
        self._loop.freeze(self._process, for_s)

    @property
    def failure(self) -> BaseException | None:
        """Return what its supervisor could not do anything about."""
        is_over = self._life is not None and self._life.done() and not self._life.cancelled()
        return self._life.exception() if self._life is not None and is_over else None

    @property
    def is_leading(self) -> bool:
        return self.elector is not None and self.elector.is_leader


@functools.lru_cache
def _completed(scheduler_name: str, *, has_extender: bool) -> CompletedConfig:
    config = (_WITH_EXTENDER if has_extender else _CONFIG).replace("NAME", scheduler_name)
    texts = {"config.yaml": config, "options.yaml": _OPTIONS}
    return complete(
        parse_flags(["--config=config.yaml", "--options=options.yaml"]), lambda path: texts[str(path)].encode()
    )
