"""What looks every few minutes whether the picture that decisions are made from is the true one, link by link.

    API server ── kube.comparer ──▶ store ── state.cache.comparer ──▶ cache and queue
                  an event was lost:          an event was misunderstood: a bug; logged and
                  the kind is listed again    counted, the next leader begins from scratch

Each object that differs is counted in ``podium_cache_drift_total`` and named in the log. Only a replica that decides
compares, so that the lists are not for nothing; one that takes over lists everything anew, or compares at once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from scheduler.app.core import Core
from scheduler.app.kinds import REQUIRED
from scheduler.kube.comparer import Drift, ServerComparer
from scheduler.kube.errors import KubeError
from scheduler.kube.reflector import Reflector
from scheduler.kube.transport import Transport
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.state.cache.comparer import Comparison, compare, report
from scheduler.telemetry.logging import get_logger

__all__ = ["ComparerMetrics", "Comparing", "compare_cache"]

_log = get_logger(__name__)

_MAX_GRACE_S = 30.0
_GRACE_SHARE = 0.25
_NAMED = 20
"""So many objects of one finding are named in the log; the others are counted."""


class ComparerMetrics(Protocol):
    """Where findings are counted."""

    def cache_drift(self, kind: str, difference: str) -> None:
        """Count an object that differs: ``missed``, ``outdated`` or ``redundant``."""

    def compared(self, kind: str, result: str) -> None:
        """Count a comparison with the API server: ``same``, ``drift`` or ``failed``."""


class Comparing:
    """Compares now and then, and has repaired what can be.

    Args:
        core: what decides.
        reflectors: the watches by kind; filled later.
        transport: to the API server.
        metrics: where findings are counted.
        period_s: a lost event is found and repaired within this time.
        is_deciding: whether it is worth the lists now.
        caught_up: waits until everything that the watches have delivered is in the stores.
        sleep: waits.
    """

    def __init__(
        self,
        core: Core,
        reflectors: Mapping[type[KubeObject], Reflector],
        transport: Transport,
        *,
        metrics: ComparerMetrics,
        period_s: float,
        is_deciding: Callable[[], bool],
        caught_up: Callable[[], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._core = core
        self._reflectors = reflectors
        self._transport = transport
        self._metrics = metrics
        self._period_s = period_s
        self._grace_s = min(period_s * _GRACE_SHARE, _MAX_GRACE_S)
        self._is_deciding = is_deciding
        self._caught_up = caught_up
        self._sleep = sleep

    async def run(self) -> None:
        """Compare for ever."""
        while True:
            await self._sleep(self._period_s - self._grace_s)
            await self.compare()

    async def compare(self) -> None:
        """Compare now, if it is worth it."""
        if self._is_deciding():
            await asyncio.gather(*(self.compare_with_server(kind) for kind in REQUIRED))
            await self._caught_up()
            compare_cache(self._core, self._metrics.cache_drift)

    async def compare_with_server(self, kind: type[KubeObject]) -> None:
        """Compare the store of one kind, and have the kind listed again if it has drifted."""
        reflector, name = self._reflectors[kind], KINDS[kind].kind
        comparer = ServerComparer(
            kind,
            self._transport,
            store=self._core.stores.of(kind),
            is_rejected=reflector.is_rejected,
            watched_version=lambda: reflector.stats.last_resource_version,
            caught_up=self._caught_up,
            grace_s=self._grace_s,
            sleep=self._sleep,
        )
        try:
            found = await comparer.compare()
        except KubeError as error:
            _log.info("could not compare with the api server", kind=name, error=str(error))
            self._metrics.compared(name, "failed")
            return
        self._metrics.compared(name, "drift" if found else "same")
        if found:
            self._tell(name, found)
            reflector.request_relist("drift")

    def _tell(self, kind: str, found: Sequence[Drift]) -> None:
        _log.warning("the watch has not told everything; listing again", kind=kind, objects=len(found))
        for drift in found:
            self._metrics.cache_drift(kind, drift.difference.value)
        for drift in itertools.islice(found, _NAMED):
            _log.warning(
                "object differs from the api server",
                kind=kind,
                object=drift.key,
                difference=drift.difference.value,
                known=" ".join(drift.known),
                listed=" ".join(drift.listed),
            )


def compare_cache(core: Core, on_drift: Callable[[str, str], None]) -> Comparison:
    """Compare cache and queue with the watched objects, log and count what differs; on the scheduling thread.

    A difference is normal for the moment that an event is under way; one that stays is a bug.

    Args:
        core: the core.
        on_drift: is called with the kind and ``missed`` or ``redundant`` for each difference.
    """
    pods = [pod for pod in core.stores.of(Pod).list() if pod.node_name or pod.spec.scheduler_name in core.profiles]
    pending, _ = core.queue.pending_pods()
    waiting = [*pending, *(pod for pod in core.queue.in_flight_pods() if not core.cache.is_assumed(pod.uid))]
    comparison = compare(core.cache, nodes=core.stores.of(Node).list(), pods=pods, pending=waiting)
    for kind, mismatch in (("Node", comparison.nodes), ("Pod", comparison.pods)):
        for _ in mismatch.missed:
            on_drift(kind, "missed")
        for _ in mismatch.redundant:
            on_drift(kind, "redundant")
    report(comparison, _log)
    return comparison
