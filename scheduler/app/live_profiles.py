"""Puts the live profiles together: the controller on the service thread, the scheduler behind its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from scheduler.app.blocking import BlockingCalls
from scheduler.app.scheduling import SchedulingThread
from scheduler.config.flags import CompletedConfig
from scheduler.config.types import Profile
from scheduler.controllers.live_profiles import Answers, LiveProfiles
from scheduler.controllers.watch import ProfileWatch
from scheduler.framework.registry import Registry
from scheduler.kube.credentials import Credentials
from scheduler.kube.transport import Transport
from scheduler.telemetry.metrics import Metrics

__all__ = ["live_profiles"]


class _Host:
    """Implements ``controllers.ProfileHost``."""

    def __init__(self, scheduling: SchedulingThread, registry: Registry, metrics: Metrics) -> None:
        self._scheduling = scheduling
        self._registry = registry
        self._metrics = metrics
        self._run_blocking = BlockingCalls("import", max_threads=8)

    def is_imported(self, plugin: str) -> bool:
        return self._registry.is_loaded(plugin)

    async def preload(self, plugin: str) -> None:
        await self._run_blocking(lambda: self._registry.preload(plugin))

    async def apply(self, puts: Sequence[Profile], removes: Sequence[str]) -> Answers:
        running = self._scheduling.core.running
        return await self._scheduling.on_core(lambda: running.apply(puts, removes))

    def pods_scheduled(self, scheduler_name: str) -> float:
        return self._metrics.pods_scheduled(scheduler_name)


def live_profiles(
    completed: CompletedConfig,
    transport: Transport,
    scheduling: SchedulingThread,
    *,
    credentials: Credentials,
    registry: Registry,
    metrics: Metrics,
    may_write: Callable[[float], bool],
) -> LiveProfiles:
    """Return what follows the SchedulerProfile objects; to be called on the loop that will run it."""
    loop = asyncio.get_running_loop()

    def on_change() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(live.changed)

    live = LiveProfiles(
        transport=transport,
        host=_Host(scheduling, registry, metrics),
        configuration=completed.configuration,
        gates=completed.gates,
        metrics=metrics,
        may_write=may_write,
        resync_s=completed.options.live_profiles.resync_s,
        watch=ProfileWatch(credentials, on_change=on_change, on_failure=lambda: metrics.live_profile_error("watch")),
    )
    return live
