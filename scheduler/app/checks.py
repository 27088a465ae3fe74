"""Health checks of the daemon and what its pages show; names and order are kube-scheduler's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from scheduler import __version__
from scheduler.app.scheduling import SchedulingThread
from scheduler.config.dump import configz
from scheduler.config.flags import CompletedConfig
from scheduler.kube.lease import LeaderElector
from scheduler.serving.endpoints import Endpoints
from scheduler.serving.health import HealthChecks
from scheduler.serving.zpages import Component
from scheduler.telemetry.exposition import Rows
from scheduler.telemetry.logging import get_logger
from scheduler.telemetry.metrics import EMULATED_VERSION, Metrics

__all__ = ["endpoints_of"]

_STUCK_S = 30.0

_log = get_logger(__name__)


def endpoints_of(
    completed: CompletedConfig,
    scheduling: SchedulingThread,
    elector: LeaderElector | None,
    metrics: Metrics,
    *,
    is_leader: Callable[[], bool],
    is_stopping: Callable[[], bool],
    notes: Callable[[], Sequence[str]] | None = None,
) -> Endpoints:
    """Return what the HTTPS server shows of this process."""

    def observe(name: str, kind: str, is_healthy: bool) -> None:
        metrics.healthcheck(name, kind, is_healthy=is_healthy)

    healthz, livez, readyz = (HealthChecks(kind, observe) for kind in ("healthz", "livez", "readyz"))
    if elector is not None:
        healthz.add("leaderElection", elector.check)
        readyz.add("leaderElection", elector.check)
    else:
        healthz.add("ping", lambda: None)
    livez.add("ping", lambda: None)
    livez.add("watchdog", _Watchdog(scheduling))
    readyz.add("shutdown", lambda: "process is shutting down" if is_stopping() else None)
    readyz.add("sched-handler-sync", lambda: _handler_sync(scheduling))
    readyz.note(scheduling.watch_lines)
    if notes is not None:
        readyz.note(notes)

    async def resources() -> Rows:
        from scheduler.app.pod_resources import resource_rows  # noqa: PLC0415  only scrapes of this page need it

        return await scheduling.on_core(lambda: resource_rows(scheduling.core))

    return Endpoints(
        component=Component("podium", __version__, EMULATED_VERSION, started=datetime.now(UTC)),
        healthz=healthz,
        livez=livez,
        readyz=readyz,
        metrics=metrics.registry,
        slis=metrics.slis,
        resources=resources,
        is_leader=is_leader,
        configz=lambda: configz(scheduling.core.running.configuration),
        flags=lambda: {name: str(value) for name, value in completed.flags.given.items()},
    )


class _Watchdog:
    """Fails while a decision hangs, and says in the log where, once: whoever restarts the process takes that away."""

    def __init__(self, scheduling: SchedulingThread) -> None:
        self._scheduling = scheduling
        self._is_told = False

    def __call__(self) -> str | None:
        stuck_s = self._scheduling.stuck_s
        if stuck_s <= _STUCK_S:
            self._is_told = False
            return None
        if not self._is_told:
            self._is_told = True
            _log.error("a decision hangs", stuck_s=round(stuck_s, 1), stack=self._scheduling.stack())
        return f"a decision has been running for {stuck_s:.0f}s"


def _handler_sync(scheduling: SchedulingThread) -> str | None:
    return None if scheduling.is_synced else f"waiting for {', '.join(scheduling.missing)}"
