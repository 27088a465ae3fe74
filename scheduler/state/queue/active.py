"""activeQ: the pods to be tried next, in the order of the QueueSort plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.api.queued import QueuedPodInfo
from scheduler.state.queue.heap import KeyedHeap
from scheduler.state.queue.metrics import ACTIVE, QueueMetrics

__all__ = ["ActiveQueue", "SortKey"]

SortKey = Callable[[QueuedPodInfo], Any]
"""``sort_key(info)``: what ``QueueSortPlugin.sort_key`` returns; the smallest is popped first."""


class ActiveQueue:
    """A heap of pods that keeps the ``active`` gauge equal to its size."""

    __slots__ = ("_heap", "_metrics", "_sort_key")

    def __init__(self, sort_key: SortKey, metrics: QueueMetrics) -> None:
        self._sort_key = sort_key
        self._metrics = metrics
        self._heap: KeyedHeap[QueuedPodInfo] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._heap)

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the record of the pod ``namespace/name``, or None."""
        return self._heap.get(key)

    def infos(self) -> list[QueuedPodInfo]:
        """Return all records, in no useful order."""
        return list(self._heap)

    def add(self, info: QueuedPodInfo, event: str) -> None:
        """Put a pod in; ``event`` is the label of what brought it here."""
        if self._heap.push(info.pod.pod_key, self._sort_key(info), info):
            self._metrics.pending(ACTIVE, 1)
        self._metrics.incoming(ACTIVE, event)

    def refresh(self, info: QueuedPodInfo) -> None:
        """Move a pod whose record has changed to its new place."""
        self._heap.push(info.pod.pod_key, self._sort_key(info), info)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take a pod out and return its record, or None."""
        info = self._heap.remove(key)
        if info is not None:
            self._metrics.pending(ACTIVE, -1)
        return info

    def pop(self) -> QueuedPodInfo | None:
        """Take out the pod to be tried next, or None."""
        info = self._heap.pop()
        if info is not None:
            self._metrics.pending(ACTIVE, -1)
        return info
