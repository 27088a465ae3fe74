"""All other kinds: keep the newest version for the plugins that read it, and wake the pods that waited for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from scheduler.api.events import ActionType, ClusterEvent, EventResource
from scheduler.intake.pods import IntakeMetrics
from scheduler.model.meta import KubeObject
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Store

__all__ = ["ObjectIntake"]

K = TypeVar("K", bound=KubeObject)


class ObjectIntake(Generic[K]):
    """Applies deltas of one kind; without a resource (kinds that no event is about) it only keeps the store."""

    def __init__(
        self,
        *,
        resource: EventResource | None,
        queue: SchedulingQueue,
        store: Store[K],
        metrics: IntakeMetrics,
        perf_counter: Callable[[], float],
    ) -> None:
        self._resource = resource
        self._queue = queue
        self._store = store
        self._metrics = metrics
        self._perf_counter = perf_counter

    def added(self, obj: K) -> None:
        """Take in a new object."""
        self._store.put(obj)
        self._wake(ActionType.ADD, None, obj)

    def changed(self, old: K, new: K) -> None:
        """Take in a new version."""
        self._store.put(new)
        self._wake(ActionType.UPDATE, old, new)

    def removed(self, obj: K, *, is_stale: bool) -> None:
        """Take in that an object is gone."""
        del is_stale
        self._store.remove(obj)
        self._wake(ActionType.DELETE, obj, None)

    def _wake(self, action: ActionType, old: K | None, new: K | None) -> None:
        if self._resource is None:
            return
        start = self._perf_counter()
        event = ClusterEvent(self._resource, action)
        self._queue.move_all_to_active_or_backoff_queue(event, old, new)
        self._metrics.event_handled(event.label, self._perf_counter() - start)
