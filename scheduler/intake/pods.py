"""Pods: assigned? to the cache. Ours and pending? to the queue. Otherwise forget it.

Assigned pods of every scheduler count in the cache, because they take room. Pending pods go to the queue only if a
profile answers to their schedulerName. Finished pods are not seen at all: the watch leaves them out by field selector,
so a pod that ends arrives as removed. Rules: spec §1.2, upstream ``eventhandlers.go``.

    add     assigned            -> cache.add_pod, AssignedPodAdd
            pending, ours       -> queue.add
    change  left its node       -> as removed and added
            was assigned        -> cache.update_pod, one AssignedPodUpdate… for each property that changed
            became assigned     -> cache.add_pod (confirms an assumed pod), queue.delete
            pending, ours       -> queue.update, unless the pod is assumed already
    remove  assigned            -> cache.remove_pod, AssignedPodDelete
            pending, ours       -> queue.delete; an assumed one gives its place back at once
    pending, not ours           -> only its nomination counts, if that is wished
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Protocol

from scheduler.api.events import ClusterEvent
from scheduler.model.meta import PodUid
from scheduler.model.pod import Pod
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.errors import CacheError
from scheduler.state.changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_DELETE,
    UNSCHEDULABLE_POD_UPDATE,
    pod_events,
)
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Store
from scheduler.telemetry.logging import get_logger

__all__ = ["IntakeMetrics", "PodIntake", "RejectWaitingPod"]

_log = get_logger(__name__)

RejectWaitingPod = Callable[[PodUid, str, str], bool]
"""``reject(uid, plugin, message)``: reject a pod on hold in Permit; False if it is not on hold."""


class IntakeMetrics(Protocol):
    """Where the time spent on an event is recorded."""

    def event_handled(self, event: str, seconds: float) -> None:
        """Observe ``scheduler_event_handling_duration_seconds{event}``."""


class PodIntake:
    """Applies pod deltas to store, cache and queue."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        store: Store[Pod],
        profiles: Container[str],
        reject_waiting_pod: RejectWaitingPod,
        metrics: IntakeMetrics,
        perf_counter: Callable[[], float],
        honor_foreign_nominations: bool,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._store = store
        self._profiles = profiles
        self._reject_waiting_pod = reject_waiting_pod
        self._metrics = metrics
        self._perf_counter = perf_counter
        self._honor_foreign_nominations = honor_foreign_nominations

    def added(self, pod: Pod) -> None:
        """Take in a pod that was not known."""
        self._store.put(pod)
        if pod.node_name:
            self._add_assigned(pod)
        elif self._is_ours(pod):
            self._timed(UNSCHEDULABLE_POD_ADD, lambda: self._queue.add(pod))
        else:
            self._update_foreign(None, pod)

    def changed(self, old: Pod, new: Pod) -> None:
        """Take in a new version of a known pod; both have the same UID."""
        if old.node_name not in ("", new.node_name):
            self._rebound(old, new)
            return
        self._store.put(new)
        if old.node_name:
            self._update_assigned(old, new)
        elif new.node_name:
            self._became_assigned(old, new)
        elif self._is_ours(new):
            self._update_pending(old, new)
        else:
            self._update_foreign(old, new)

    def _rebound(self, old: Pod, new: Pod) -> None:
        """Take in that a pod is not where it was: the API server's data have been replaced by older ones.

        differs: kube-scheduler ends itself when a pod changes its node, and overlooks one that has none any more.
        """
        _log.warning("pod is not on its node any more", pod=new.pod_key, old_node=old.node_name, node=new.node_name)
        self.removed(old, is_stale=False)
        self.added(new)

    def removed(self, pod: Pod, *, is_stale: bool) -> None:
        """Take in that a pod is gone; with ``is_stale`` its last state may be unknown, so both sides are tidied."""
        self._store.remove(pod)
        if pod.node_name or is_stale:
            self._remove_assigned(pod, is_stale=is_stale)
        if not pod.node_name or is_stale:
            if self._is_ours(pod):
                self._timed(UNSCHEDULABLE_POD_DELETE, lambda: self._remove_pending(pod))
            else:
                self._end_foreign_nomination(pod)

    # --- assigned pods -----------------------------------------------------------------------------------------------

    def _add_assigned(self, pod: Pod) -> None:
        def apply() -> None:
            self._cache_call(self._cache.add_pod, pod)
            self._queue.assigned_pod_added(pod)

        self._timed(ASSIGNED_POD_ADD, apply)

    def _update_assigned(self, old: Pod, new: Pod) -> None:
        start = self._perf_counter()
        self._cache_call(self._cache.update_pod, old, new)
        updated_s = self._perf_counter() - start
        for event in pod_events(old, new):
            moving = self._perf_counter()
            self._queue.assigned_pod_updated(old, new, event)
            self._metrics.event_handled(event.label, updated_s + self._perf_counter() - moving)
        # parity: observed once more for the update as a whole
        self._metrics.event_handled(ASSIGNED_POD_UPDATE.label, self._perf_counter() - start)

    def _became_assigned(self, old: Pod, new: Pod) -> None:
        self._add_assigned(new)
        if self._is_ours(old):
            # The pod was bound, not removed: whoever bound it tells the waiting pods what they need to know.
            self._timed(UNSCHEDULABLE_POD_DELETE, lambda: self._queue.delete(old))
        else:
            self._end_foreign_nomination(old, bound_to=new.node_name)

    def _remove_assigned(self, pod: Pod, *, is_stale: bool) -> None:
        def apply() -> None:
            # An assumed pod whose last state may be stale is left to _remove_pending, which frees it the assumed way.
            known = self._cache.get_pod(pod.pod_uid) is not None
            if known and not (is_stale and self._cache.is_assumed(pod.pod_uid)):
                self._cache_call(self._cache.remove_pod, pod)
                self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, pod, None)

        self._timed(ASSIGNED_POD_DELETE, apply)

    # --- pending pods ------------------------------------------------------------------------------------------------

    def _update_pending(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return  # parity: a duplicate must not be scheduled twice (k/k#96071)
        start = self._perf_counter()
        if not self._cache.is_assumed(new.pod_uid):
            self._queue.update(old, new)
            if _is_nomination_changed(old, new):
                self._nomination_ended(old)
        elif new.is_terminating and not old.is_terminating:
            self._assumed_pod_deleted(new)
        elapsed_s = self._perf_counter() - start
        for label in {UNSCHEDULABLE_POD_UPDATE.label, *(event.label for event in pod_events(old, new))}:
            self._metrics.event_handled(label, elapsed_s)

    def _remove_pending(self, pod: Pod) -> None:
        self._queue.delete(pod)
        if self._cache.is_assumed(pod.pod_uid):
            self._assumed_pod_deleted(pod)
        elif pod.status.nominated_node_name:
            self._nomination_ended(pod)

    def _nomination_ended(self, pod: Pod) -> None:
        """Wake the pods that had to leave room for ``pod`` on its nominated node: those of no higher priority."""
        priority = pod.priority
        self._queue.move_all_to_active_or_backoff_queue(
            ASSIGNED_POD_DELETE, pod, None, pre_check=lambda waiting: waiting.priority <= priority
        )

    def _assumed_pod_deleted(self, pod: Pod) -> None:
        """Free the place of an assumed pod at once; its binding, if it is under way, fails by itself."""
        assumed = self._cache.get_pod(pod.pod_uid)
        if assumed is None:
            return
        if not self._reject_waiting_pod(pod.pod_uid, "", "removed"):
            self._cache_call(self._cache.forget_pod, assumed)
        self._queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, assumed, None)

    # --- pods of other schedulers ------------------------------------------------------------------------------------

    # differs: upstream ignores nominations of other schedulers' pods and so takes the room they wait for.

    def _update_foreign(self, old: Pod | None, new: Pod) -> None:
        if not self._honor_foreign_nominations:
            return
        if new.status.nominated_node_name:
            self._queue.nominate(new, None)
        else:
            self._queue.delete_nominated_pod_if_exists(new)
        if old is not None and _is_nomination_changed(old, new):
            self._nomination_ended(old)

    def _end_foreign_nomination(self, pod: Pod, *, bound_to: str = "") -> None:
        if not self._honor_foreign_nominations:
            return
        self._queue.delete_nominated_pod_if_exists(pod)
        if pod.status.nominated_node_name not in ("", bound_to):
            self._nomination_ended(pod)

    # --- small things ------------------------------------------------------------------------------------------------

    def _is_ours(self, pod: Pod) -> bool:
        # A pod may outlive its profile while it is being bound; its end must still be seen to.
        return pod.spec.scheduler_name in self._profiles or self._cache.is_assumed(pod.pod_uid)

    def _timed(self, event: ClusterEvent, apply: Callable[[], None]) -> None:
        start = self._perf_counter()
        apply()
        self._metrics.event_handled(event.label, self._perf_counter() - start)

    def _cache_call(self, method: Callable[..., object], *pods: Pod) -> None:
        """Call the cache; a disagreement between cache and watch is logged, the comparer shows what is left of it."""
        try:
            method(*pods)
        except CacheError as error:
            _log.error("cache refused a pod event", pod=pods[-1].pod_key, pod_uid=pods[-1].uid, err=str(error))


def _is_nomination_changed(old: Pod, new: Pod) -> bool:
    nominated = old.status.nominated_node_name
    return bool(nominated) and nominated != new.status.nominated_node_name
