"""What SIGUSR2 shows: cache and queue, a line a node."""

from __future__ import annotations

from scheduler.app.core import Core
from scheduler.telemetry.logging import get_logger

__all__ = ["dump"]

_log = get_logger(__name__)


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
