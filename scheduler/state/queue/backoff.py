"""backoffQ: pods that were tried, may be schedulable now, and wait so that they do not crowd out others.

There are two heaps. Pods that plugins rejected are ordered by the second in which their back-off ends and within it by
the QueueSort plugin; they may be popped early when activeQ is empty. Pods that failed by an error always wait. So do
those that were rejected again and again and come back by an update of their own: whoever updates a pod without a pause
would have it tried without a pause.

    attempt failed    1st  2nd  3rd  4th  5th …
    back-off          1 s  2 s  4 s  8 s  10 s …      (initial 1 s, max 10 s)

All comparisons are in whole seconds: a back-off that ends at 12.7 counts as ending at 12, and a pod leaves when the
clock shows a *later* second, so whole seconds' worth of pods become active at once and in order (KEP-5142, spec §2.3).
"""

from __future__ import annotations

import math

from scheduler.api.queued import QueuedPodInfo
from scheduler.state.queue.active import SortKey
from scheduler.state.queue.heap import KeyedHeap
from scheduler.state.queue.metrics import BACKOFF, QueueMetrics

__all__ = ["MAX_EARLY", "NEVER_BACKED_OFF_S", "BackoffQueue", "backoff_duration_s"]

NEVER_BACKED_OFF_S = -math.inf
"""The end of a back-off that is none."""

MAX_EARLY = 20
"""Rejections after which an update of its own does not bring a pod back early. differs: upstream sets no limit."""

_WINDOW_S = 1.0
_MAX_SHIFT = 62


def backoff_duration_s(failures: int, *, initial_s: float, max_s: float) -> float:
    """Return the back-off after this many failures, in seconds: ``initial · 2^(failures - 1)``, at most ``max``.

    Source: ``calculateBackoffDuration``.
    """
    if failures == 0:
        return 0.0
    factor = 1 << min(failures - 1, _MAX_SHIFT)
    return max_s if initial_s > max_s / factor else initial_s * factor


class BackoffQueue:
    """The two heaps as one queue that keeps the ``backoff`` gauge equal to the sum of their sizes."""

    __slots__ = ("_early", "_initial_s", "_late", "_max_s", "_metrics", "_sort_key")

    def __init__(self, *, initial_s: float, max_s: float, sort_key: SortKey, metrics: QueueMetrics) -> None:
        self._initial_s = initial_s
        self._max_s = max_s
        self._sort_key = sort_key
        self._metrics = metrics
        self._early: KeyedHeap[QueuedPodInfo] = KeyedHeap()
        self._late: KeyedHeap[QueuedPodInfo] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._early) + len(self._late)

    @property
    def num_poppable(self) -> int:
        """Return how many pods may be popped before their back-off ends."""
        return len(self._early)

    def expiration_s(self, info: QueuedPodInfo) -> float:
        """Return the whole second in which the pod's back-off ends, remembered in the record until the next failure."""
        failures = info.consecutive_errors_count or info.unschedulable_count
        if failures == 0 or self._max_s == 0:
            return NEVER_BACKED_OFF_S
        if info.backoff_expiration_s is None:
            duration_s = backoff_duration_s(failures, initial_s=self._initial_s, max_s=self._max_s)
            info.backoff_expiration_s = float(math.floor(info.timestamp_s + duration_s))
        return info.backoff_expiration_s

    def is_backing_off(self, info: QueuedPodInfo, now_s: float) -> bool:
        """Say whether the pod must wait; in the very second of its expiration it still does."""
        return self.expiration_s(info) >= math.floor(now_s)

    def next_due_s(self) -> float | None:
        """Return when ``pop_completed`` will next have something to give, or None."""
        heads = [head for head in (self._early.peek(), self._late.peek()) if head is not None]
        return min(self.expiration_s(head) for head in heads) + _WINDOW_S if heads else None

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the record of the pod ``namespace/name``, or None."""
        return self._early.get(key) or self._late.get(key)

    def infos(self) -> list[QueuedPodInfo]:
        """Return all records, in no useful order."""
        return [*self._early, *self._late]

    def add(self, info: QueuedPodInfo, event: str, *, is_own_update: bool = False) -> None:
        """Put a pod in; without rejector plugins it counts as failed by an error.

        Args:
            info: the pod's record.
            event: label of what brings it here.
            is_own_update: that is an update of the pod itself.
        """
        was_rejected = info.unschedulable_plugins or info.pending_plugins
        is_churn = is_own_update and info.unschedulable_count > MAX_EARLY
        if self._push(info, may_go_early=bool(was_rejected) and not is_churn):
            self._metrics.pending(BACKOFF, 1)
        self._metrics.incoming(BACKOFF, event)

    def refresh(self, info: QueuedPodInfo) -> None:
        """Move a pod whose record has changed to its new place."""
        self._push(info, may_go_early=info.pod.pod_key in self._early)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take a pod out and return its record, or None."""
        info = self._early.remove(key) or self._late.remove(key)
        if info is not None:
            self._metrics.pending(BACKOFF, -1)
        return info

    def pop(self) -> QueuedPodInfo | None:
        """Take out the pod that may go before its back-off ends, or None."""
        info = self._early.pop()
        if info is not None:
            self._metrics.pending(BACKOFF, -1)
        return info

    def pop_completed(self, now_s: float) -> list[QueuedPodInfo]:
        """Take out the pods whose back-off is over: those that might have gone early first, each kind in its order."""
        done: list[QueuedPodInfo] = []
        for heap in (self._early, self._late):
            while (head := heap.peek()) is not None and not self.is_backing_off(head, now_s):
                heap.pop()
                done.append(head)
        if done:
            self._metrics.pending(BACKOFF, -len(done))
        return done

    def _push(self, info: QueuedPodInfo, *, may_go_early: bool) -> bool:
        expiration_s = self.expiration_s(info)
        key = info.pod.pod_key
        if may_go_early:
            return self._early.push(key, (expiration_s, self._sort_key(info)), info)
        return self._late.push(key, expiration_s, info)
