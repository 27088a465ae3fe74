"""What SIGUSR2 shows, and what looks every few minutes whether the cache still equals what the watches delivered.

Log only (spec §6.4): a difference is normal for the moment that an event is under way; one that stays is a bug, and
the counter ``podium_cache_drift_total`` shows it.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.app.core import Core
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.state.cache.comparer import Comparison, compare, report
from scheduler.telemetry.logging import get_logger

__all__ = ["compare_cache", "dump"]

_log = get_logger(__name__)


def compare_cache(core: Core, on_drift: Callable[[str, str], None]) -> Comparison:
    """Compare cache and queue with the watched objects, log and count what differs; on the scheduling thread.

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


def dump(core: Core) -> None:
    """Log the cache, a line a node, and the queue; on the scheduling thread."""
    for name, info in sorted(core.cache.dump().nodes.items()):
        _log.info(
            "cached node",
            node=name,
            deleted=not info.has_node,
            requested=info.requested,
            allocatable=info.allocatable,
            pods=[f"{pod.pod_key} {pod.uid} {pod.status.phase}" for pod in info.pods],
            nominated=[pod.pod_key for pod in core.queue.nominated_pods_for_node(name)],
        )
    pending, summary = core.queue.pending_pods()
    _log.info("scheduling queue", summary=summary, pending=[pod.pod_key for pod in pending])
