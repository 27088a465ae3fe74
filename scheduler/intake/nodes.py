"""Nodes: every change goes to the cache; only changes that can help a pod wake the queue."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.intake.pods import IntakeMetrics
from scheduler.model.node import Node
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.errors import CacheError
from scheduler.state.changes import NODE_ADD, NODE_DELETE, node_events
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Store
from scheduler.telemetry.logging import get_logger

__all__ = ["NodeIntake"]

_log = get_logger(__name__)


class NodeIntake:
    """Applies node deltas to store, cache and queue (spec §1.2)."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        store: Store[Node],
        metrics: IntakeMetrics,
        perf_counter: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._store = store
        self._metrics = metrics
        self._perf_counter = perf_counter

    def added(self, node: Node) -> None:
        """Take in a new node."""
        start = self._perf_counter()
        self._store.put(node)
        self._cache.add_node(node)
        self._queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, node)
        self._metrics.event_handled(NODE_ADD.label, self._perf_counter() - start)

    def changed(self, old: Node, new: Node) -> None:
        """Take in a new version; heartbeats change nothing that scheduling reads and wake nobody."""
        start = self._perf_counter()
        self._store.put(new)
        self._cache.update_node(new)
        updated_s = self._perf_counter() - start
        for event in node_events(old, new):
            moving = self._perf_counter()
            self._queue.move_all_to_active_or_backoff_queue(event, old, new)
            self._metrics.event_handled(event.label, updated_s + self._perf_counter() - moving)

    def removed(self, node: Node, *, is_stale: bool) -> None:
        """Take in that a node is gone; pods still bound to it keep counting until they are gone too."""
        del is_stale
        start = self._perf_counter()
        self._store.remove(node)
        # parity: the queue hears of it first, so that hints still find the node.
        self._queue.move_all_to_active_or_backoff_queue(NODE_DELETE, node, None)
        try:
            self._cache.remove_node(node.name)
        except CacheError as error:
            _log.error("cache refused a node event", node=node.name, err=str(error))
        self._metrics.event_handled(NODE_DELETE.label, self._perf_counter() - start)
