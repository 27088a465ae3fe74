"""The scheduling queue: where pending pods wait, and which one is tried next.

        add                    pop                        done (bound, gone)
    ────────────▶ activeQ ────────────▶ in flight ──────────────────────────▶
                   ▲  ▲  ▲    pop if activeQ   │ add_unschedulable_if_not_present
       gates pass  │  │  │    is empty         │    an event came meanwhile, or it failed by an error
                   │  │  └───── backoffQ ◀─────┤
                   │  │ event, no   ▲          │    nothing came
                   │  │ back-off    │ event    ▼
                   │  └───────── unschedulablePods ◀── gated by PreEnqueue
                   └────────────── (gated)  5 min: as if an event had come

The queue is pure: it never blocks, sleeps or starts anything. kube-scheduler's blocking ``Pop`` is the driver's wait
around ``pop()``: pop returns None when nothing is ready; the driver then waits until ``on_ready`` is called, until
``next_timer_s()`` (after which it calls ``run``), or until the queue is closed. All calls come from one thread.

Invariants: a pod is in exactly one of activeQ, backoffQ and unschedulablePods (by ``namespace/name``) or in flight (by
UID); every pod that was added leaves only by ``delete`` or ``done``; the gauges equal the sizes; events in flight are
kept only while pods are in flight.

Source: ``pkg/scheduler/backend/queue`` v1.36 with SchedulerQueueingHints and SchedulerPopFromBackoffQ on; spec §2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from scheduler.api.events import ClusterEvent
from scheduler.api.handle import Clock
from scheduler.api.queued import QueuedPodInfo
from scheduler.model.pod import Pod
from scheduler.state.changes import (
    ASSIGNED_POD_ADD,
    BACKOFF_COMPLETE_LABEL,
    FORCE_ACTIVATE,
    FORCE_ACTIVATE_LABEL,
    POP_FROM_BACKOFF_Q_LABEL,
    PROFILES_CHANGED,
    SCHEDULE_ATTEMPT_FAILURE_LABEL,
    UNSCHEDULABLE_POD_ADD_LABEL,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_POD_UPDATE_LABEL,
    UNSCHEDULABLE_TIMEOUT,
    pod_events,
)
from scheduler.state.queue.active import ActiveQueue, SortKey
from scheduler.state.queue.backoff import BackoffQueue
from scheduler.state.queue.gates import Gates
from scheduler.state.queue.hints import QueueingHints, Strategy
from scheduler.state.queue.in_flight import Happening, InFlight
from scheduler.state.queue.metrics import (
    ACTIVE,
    BACKOFF,
    GATED,
    UNSCHEDULABLE,
    NullQueueMetrics,
    QueueMetrics,
)
from scheduler.state.queue.nominator import Nominator, PodLookup
from scheduler.state.queue.profile import QueueProfile
from scheduler.state.queue.unschedulable import UnschedulablePods
from scheduler.telemetry.logging import get_logger

__all__ = ["NullQueueMetrics", "PreCheck", "QueueMetrics", "QueueProfile", "QueueSizes", "SchedulingQueue"]

PreCheck = Callable[[Pod], bool]
"""Says whether a waiting pod is to be looked at for an event at all."""

_SWEEP_INTERVAL_S = 30.0

_log = get_logger(__name__)


class QueueSizes(NamedTuple):
    """How many pods are where; ``unschedulable`` leaves out the gated ones."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_flight: int


class SchedulingQueue:
    """See the module."""

    def __init__(
        self,
        *,
        clock: Clock,
        sort_key: SortKey,
        profiles: Mapping[str, QueueProfile],
        metrics: QueueMetrics | None = None,
        get_pod: PodLookup | None = None,
        perf_counter: Callable[[], float] = lambda: 0.0,
        on_ready: Callable[[], None] = lambda: None,
        initial_backoff_s: float = 1.0,
        max_backoff_s: float = 10.0,
        max_in_unschedulable_s: float = 300.0,
    ) -> None:
        """Make an empty queue.

        Args:
            clock: the time that pods carry and back-offs are measured by.
            sort_key: the QueueSort plugin's key.
            profiles: what the queue needs of each profile, by schedulerName.
            metrics: the recorders; none by default.
            get_pod: the newest watched version of a pod by ``namespace/name``; pods that it does not know, or knows as
                bound, are not nominated. Without it nothing is checked.
            perf_counter: seconds for measuring durations.
            on_ready: called whenever pods may have become poppable, and on close; must be cheap and not call back.
            initial_backoff_s: back-off after the first failure.
            max_backoff_s: longest back-off; 0 turns back-offs off.
            max_in_unschedulable_s: after this long without a useful event a pod is tried anyway.
        """
        self._clock = clock
        self._metrics = metrics if metrics is not None else NullQueueMetrics()
        self._perf_counter = perf_counter
        self._on_ready = on_ready
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._active = ActiveQueue(sort_key, self._metrics)
        self._backoff = BackoffQueue(
            initial_s=initial_backoff_s, max_s=max_backoff_s, sort_key=sort_key, metrics=self._metrics
        )
        self._in_flight = InFlight(self._metrics)
        self._nominator = Nominator(get_pod)
        self._hints, self._gates = self._rules_of(profiles)
        self._unschedulable = UnschedulablePods(self._hints, self._metrics)
        self._scheduling_cycle = 0
        self._move_request_cycle = -1
        self._next_sweep_s = clock.now()
        self._is_closed = False

    # --- pods come and go --------------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """Take in a pod that was created; one that is known under its UID is updated, one under its name replaced."""
        if pod.metadata.uid in self._in_flight:
            _log.error("pod in flight was added again, ignored", pod=pod.pod_key, pod_uid=pod.uid)
            return
        known = self.get(pod.pod_key)
        if known is None:
            self._admit(pod, UNSCHEDULABLE_POD_ADD_LABEL)
        elif known.pod.metadata.uid == pod.metadata.uid:
            self.update(known.pod, pod)
        else:
            self._replace(known, pod, UNSCHEDULABLE_POD_ADD_LABEL)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Take in a new version of a pod.

        In flight: what changed is kept for its return. In activeQ or backoffQ: it moves to its new place. In
        unschedulablePods: its rejectors are asked whether the change helps. Unknown: it is taken in as new.
        """
        if new.metadata.uid in self._in_flight:
            self._in_flight.note_about(new, _pod_happenings(old, new))
            return
        info = self.get(new.pod_key)
        if info is None:
            self._admit(new, UNSCHEDULABLE_POD_UPDATE_LABEL)
        elif info.pod.metadata.uid != new.metadata.uid:
            self._replace(info, new, UNSCHEDULABLE_POD_UPDATE_LABEL)
        else:
            self._update_record(info, old or info.pod, new)

    def delete(self, pod: Pod) -> None:
        """Forget a pod that was deleted or bound; a pod in flight is left to its cycle, which ends with ``done``."""
        self._nominator.remove(pod)
        info = self.get(pod.pod_key)
        # differs: upstream goes by name alone; a late deletion must not take the pod that has the name now.
        if info is not None and info.pod.metadata.uid == pod.metadata.uid:
            self._discard(info)

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Move pods to activeQ from backoffQ or unschedulablePods, whatever their back-off or rejectors.

        A pod in flight is tried again when it comes back; pods in activeQ and unknown pods are left alone.
        """
        is_any_active = False
        for pod in pods.values():
            if self._activate(pod):
                is_any_active = True
            else:
                self._in_flight.note_about(pod, (Happening(FORCE_ACTIVATE, FORCE_ACTIVATE_LABEL, None, pod),))
                self._move_request_cycle = self._scheduling_cycle
        if is_any_active:
            self._on_ready()

    # --- attempts ----------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """Take out the pod to be tried next and put it in flight; None if none is ready or the queue is closed.

        If activeQ is empty, a pod of backoffQ goes before its time, but never one that failed by an error, or that was
        rejected many times and is back by an update of its own.
        """
        while not self._is_closed:
            info = self._active.pop()
            if info is None:
                info = self._backoff.pop()
                if info is None:
                    return None
                self._metrics.incoming(ACTIVE, POP_FROM_BACKOFF_Q_LABEL)
            if self._start_attempt(info):
                return info
        return None

    def pop_specific_pod(self, pod: Pod) -> QueuedPodInfo | None:
        """Take out this pod as ``pop`` would, wherever it waits; None if it is gated or in no queue."""
        self._activate(pod)
        info = self._active.remove(pod.pod_key)
        return info if info is not None and self._start_attempt(info) else None

    def done(self, uid: str) -> None:
        """End a pod's flight; to be called once for each popped pod, on every path, more often is fine."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(self, info: QueuedPodInfo, scheduling_cycle: int) -> bool:
        """Take back a pod whose attempt failed and end its flight.

        ``info`` says which plugins rejected it; none means that it failed by an error. Events that came during the
        flight decide where it goes.

        Returns:
            False if a pod of its name is in a queue already: its successor, or by a bug (logged) the pod itself.
        """
        key = info.pod.pod_key
        try:
            known = self.get(key)
            if known is not None:
                if known.pod.uid == info.pod.uid:
                    _log.error("pod was queued already", pod=key, pod_uid=info.pod.uid, cycle=scheduling_cycle)
                return False
            self._note_failure(info)
            strategy = self._strategy_after_flight(info)
            if self._requeue(info, strategy, SCHEDULE_ATTEMPT_FAILURE_LABEL):
                self._on_ready()
            return True
        finally:
            self._in_flight.done(info.pod.uid)

    @property
    def scheduling_cycle(self) -> int:
        """Return the number of attempts started so far."""
        return self._scheduling_cycle

    @property
    def move_request_cycle(self) -> int:
        """Return the attempt during or after which pods were last moved by an event; -1 if never."""
        return self._move_request_cycle

    # --- events ------------------------------------------------------------------------------------------------------

    def assigned_pod_added(self, pod: Pod) -> None:
        """Wake the pods that a pod on some node may help: those with affinity to it, for instance."""
        self.move_all_to_active_or_backoff_queue(ASSIGNED_POD_ADD, None, pod)

    def assigned_pod_updated(self, old: Pod, new: Pod, event: ClusterEvent) -> None:
        """Wake the pods that this change of a pod on some node may help."""
        self.move_all_to_active_or_backoff_queue(event, old, new)

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, old: object | None, new: object | None, pre_check: PreCheck | None = None
    ) -> None:
        """Move the waiting pods that the event may have made schedulable, and keep it for the pods in flight.

        Costs nothing if no plugin registered the event. ``pre_check`` narrows the waiting pods, not those in flight.
        """
        asked = self._hints.asked(event)
        if event.is_wildcard:
            infos = self._unschedulable.infos()
        elif asked:
            infos = self._unschedulable.concerned(asked.values(), old, new)
        else:
            return
        if not infos and not len(self._in_flight):  # so it is for each pod of the first list
            self._move_request_cycle = self._scheduling_cycle
            return
        if pre_check is not None:
            infos = [info for info in infos if pre_check(info.pod)]
        self._move(infos, Happening.of(event, old, new))

    def set_profiles(self, profiles: Mapping[str, QueueProfile], changed: Collection[str] | None = None) -> None:
        """Replace the profiles while running.

        What rejected a pod may be gone with the old profiles, so every waiting pod of a ``changed`` one (None: of all)
        gets another try (after its back-off), gates are asked for anew, and pods in flight come back to the queue if
        they fail. Pods of a profile that is gone stay queued. The order of activeQ stays: all share one QueueSort.
        """
        self._hints, self._gates = self._rules_of(profiles)
        self._unschedulable.set_hints(self._hints)
        if changed is not None and not changed:
            return
        waiting = [i for i in self._unschedulable.infos() if changed is None or i.pod.spec.scheduler_name in changed]
        for place in (self._active, self._backoff):
            for info in place.infos():
                if changed is None or info.pod.spec.scheduler_name in changed:
                    self._gates.run(info)
                    if info.gating_plugin:
                        place.remove(info.pod.pod_key)
                        self._unschedulable.put(info, PROFILES_CHANGED.label)
        self._move(waiting, Happening.of(PROFILES_CHANGED, None, None), ask_gates=True)

    # --- timers ------------------------------------------------------------------------------------------------------

    def run(self, now_s: float) -> None:
        """Do what is due: end back-offs, and every 30 s try pods that no event has helped for too long."""
        if self._is_closed:
            return
        self._flush_backoff(now_s)
        if now_s >= self._next_sweep_s:
            self._next_sweep_s = now_s + _SWEEP_INTERVAL_S
            self._flush_unschedulable(now_s)

    def next_timer_s(self) -> float | None:
        """Return the clock time at which ``run`` will next have something to do; None if pods must come first."""
        if self._is_closed:
            return None
        due_s = self._backoff.next_due_s()
        if not len(self._unschedulable):
            return due_s
        return self._next_sweep_s if due_s is None else min(due_s, self._next_sweep_s)

    def has_ready(self) -> bool:
        """Say whether ``pop`` would return a pod."""
        return not self._is_closed and bool(len(self._active) or self._backoff.num_poppable)

    def close(self) -> None:
        """Stop: nothing is popped any more, all flights end, a waiting driver is woken."""
        # differs: upstream would still pop what is in activeQ, but its loop has ended by then.
        self._in_flight.clear()
        self._is_closed = True
        self._on_ready()

    @property
    def is_closed(self) -> bool:
        """Say whether ``close`` was called."""
        return self._is_closed

    # --- nominations -------------------------------------------------------------------------------------------------

    def nominate(self, pod: Pod, node_name: str | None) -> None:
        """Nominate ``pod`` to a node, or with None to the one in its status; "" ends its nomination."""
        self._nominator.add(pod, node_name)

    def update_nominated_pod(self, old: Pod, new: Pod) -> None:
        """Take a new version of a nominated pod; a nomination that its status does not show yet is kept."""
        self._nominator.update(old, new)

    def delete_nominated_pod_if_exists(self, pod: Pod) -> None:
        """End the pod's nomination, if it has one."""
        self._nominator.remove(pod)

    def as_nominated(self, pod: Pod) -> Pod:
        """Return the pod with the nomination that we know of; the API server may not have heard of it yet."""
        node_name = self._nominator.node_of(pod.metadata.uid) if len(self._nominator) else None
        return pod if node_name in (None, pod.status.nominated_node_name) else pod.nominated_to(node_name)

    def nominated_pods_for_node(self, node_name: str) -> list[Pod]:
        """Return the newest known versions of the pods that are nominated to the node."""
        return [self._newest(pod) for pod in self._nominator.pods_for(node_name)]

    @property
    def nominated_nodes(self) -> Collection[str]:
        """Return the names of the nodes that pods are nominated to; usually empty, which saves asking node by node."""
        return self._nominator.nodes

    # --- looking in --------------------------------------------------------------------------------------------------

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the record of the queued pod ``namespace/name``; None if it is in no queue (it may be in flight)."""
        return self._active.get(key) or self._backoff.get(key) or self._unschedulable.get(key)

    def place_of(self, key: str) -> str | None:
        """Return ``active``, ``backoff``, ``unschedulable`` or ``gated``; None for a pod that is in no queue."""
        if self._active.get(key) is not None:
            return ACTIVE
        if self._backoff.get(key) is not None:
            return BACKOFF
        info = self._unschedulable.get(key)
        if info is None:
            return None
        return GATED if info.is_gated else UNSCHEDULABLE

    def pending_pods(self) -> tuple[list[Pod], str]:
        """Return all queued pods and upstream's summary of how many are where (gated ones are unschedulable there)."""
        infos = [*self._active.infos(), *self._backoff.infos(), *self._unschedulable.infos()]
        summary = (
            f"activeQ:{len(self._active)}; backoffQ:{len(self._backoff)}; unschedulablePods:{len(self._unschedulable)}"
        )
        return [info.pod for info in infos], summary

    def oldest_pending_since_s(self) -> float | None:
        """Return since when the pod that has been pending longest has been eligible; None if no queued pod ever was."""
        infos = (*self._active.infos(), *self._backoff.infos(), *self._unschedulable.infos())
        since = (info.initial_attempt_timestamp_s for info in infos)
        return min((s for s in since if s is not None), default=None)

    def in_flight_pods(self) -> list[Pod]:
        """Return the pods that were popped and are not done, as they were when popped, oldest first."""
        return self._in_flight.pods

    @property
    def num_in_flight_events(self) -> int:
        """Return how many events are kept for the pods in flight."""
        return self._in_flight.num_events

    def sizes(self) -> QueueSizes:
        """Return how many pods are where."""
        num_gated = self._unschedulable.num_gated
        return QueueSizes(
            active=len(self._active),
            backoff=len(self._backoff),
            unschedulable=len(self._unschedulable) - num_gated,
            gated=num_gated,
            in_flight=len(self._in_flight),
        )

    # --- from place to place -----------------------------------------------------------------------------------------

    def _admit(self, pod: Pod, label: str) -> None:
        """Take in a pod that the queue does not know."""
        info = QueuedPodInfo(pod, self._clock.now())
        if self._to_active(info, label):
            # differs: upstream does this also for a known pod that a general update wakes, and so forgets a nomination
            # that the API server has not heard of yet.
            self._nominator.add(pod, None)
            self._on_ready()

    def _replace(self, known: QueuedPodInfo, pod: Pod, label: str) -> None:
        """Take in a pod that was created under the name of another whose deletion was not seen."""
        self._nominator.remove(known.pod)
        self._discard(known)
        self._admit(pod, label)

    def _discard(self, info: QueuedPodInfo) -> None:
        key = info.pod.pod_key
        if self._active.remove(key) is None and self._backoff.remove(key) is None:
            self._unschedulable.remove(key)
        # differs: upstream forgets to do this for pods deleted from activeQ and backoffQ, where the gauge then leaks.
        self._count_rejectors(info, -1)

    def _update_record(self, info: QueuedPodInfo, old: Pod, new: Pod) -> None:
        info.pod = new
        self._nominator.update(old, new)
        key = new.pod_key
        if self._active.get(key) is not None:
            self._active.refresh(info)
        elif self._backoff.get(key) is not None:
            self._backoff.refresh(info)
        else:
            for happening in _pod_happenings(old, new):
                strategy = self._hints.strategy(info, happening)
                if self._requeue(info, strategy, happening.label, is_own_update=True):
                    self._on_ready()
                    break

    def _activate(self, pod: Pod) -> bool:
        key = pod.pod_key
        info = self._unschedulable.get(key)
        if info is not None:
            return self._to_active(info, FORCE_ACTIVATE_LABEL)
        info = self._backoff.remove(key)
        return info is not None and self._to_active(info, FORCE_ACTIVATE_LABEL, ask_gates=False)

    def _start_attempt(self, info: QueuedPodInfo) -> bool:
        info.attempts += 1
        self._count_rejectors(info, -1)
        if not self._in_flight.start(info.pod):
            # parity: k/k#127016; the pod comes back by its other flight.
            _log.error("popped pod was in flight already, discarded", pod=info.pod.pod_key, pod_uid=info.pod.uid)
            return False
        self._scheduling_cycle += 1
        return True

    def _note_failure(self, info: QueuedPodInfo) -> None:
        if info.unschedulable_plugins or info.pending_plugins:
            info.unschedulable_count += 1
            info.consecutive_errors_count = 0
        else:
            info.consecutive_errors_count += 1
        info.timestamp_s = self._clock.now()
        info.backoff_expiration_s = None
        info.was_flushed_from_unschedulable = False
        self._count_rejectors(info, 1)

    def _strategy_after_flight(self, info: QueuedPodInfo) -> Strategy:
        if not info.unschedulable_plugins and not info.pending_plugins:
            return Strategy.AFTER_BACKOFF
        happenings = self._in_flight.since_pop(info.pod.uid)
        if happenings is None:
            if not self._is_closed:
                _log.error("returning pod was not in flight", pod=info.pod.pod_key, pod_uid=info.pod.uid)
            return Strategy.AFTER_BACKOFF
        return self._hints.strategy_of_all(info, happenings)

    def _move(self, infos: Iterable[QueuedPodInfo], happening: Happening, *, ask_gates: bool = False) -> None:
        """Requeue those of the waiting pods that the event helps; ``ask_gates``: gated pods too, registered or not."""
        is_any_moved = False
        for info in infos:
            if info.gating_plugin and not ask_gates and not self._gate_wants(info, happening.event):
                continue
            strategy = self._hints.strategy(info, happening)
            if strategy is Strategy.SKIP:
                continue
            self._unschedulable.remove(info.pod.pod_key)
            if self._requeue(info, strategy, happening.label):
                is_any_moved = True
        self._move_request_cycle = self._scheduling_cycle
        self._in_flight.note(happening)
        if is_any_moved:
            self._on_ready()

    def _gate_wants(self, info: QueuedPodInfo, event: ClusterEvent) -> bool:
        return info.gating_plugin in self._hints.asked(event)

    def _requeue(self, info: QueuedPodInfo, strategy: Strategy, label: str, *, is_own_update: bool = False) -> bool:
        """Put a pod where the strategy says; return whether that is activeQ or backoffQ."""
        if strategy is Strategy.SKIP:
            self._unschedulable.put(info, label)
            return False
        if strategy is Strategy.AFTER_BACKOFF and self._backoff.is_backing_off(info, self._clock.now()):
            return self._to_backoff(info, label, is_own_update=is_own_update)
        return self._to_active(info, label)

    def _to_active(self, info: QueuedPodInfo, label: str, *, ask_gates: bool = True) -> bool:
        """Put a pod into activeQ, or if a gate keeps it out into unschedulablePods; return whether it is in activeQ."""
        if ask_gates:
            self._gates.run(info)
        if info.gating_plugin:
            self._unschedulable.put(info, label)
            return False
        if info.initial_attempt_timestamp_s is None:
            info.initial_attempt_timestamp_s = self._clock.now()
        self._unschedulable.remove(info.pod.pod_key)
        self._active.add(info, label)
        return True

    def _to_backoff(self, info: QueuedPodInfo, label: str, *, is_own_update: bool) -> bool:
        """Put a pod into backoffQ; gates are asked here, as it may be popped from there directly."""
        self._gates.run(info)
        if info.gating_plugin:
            self._unschedulable.put(info, label)
            return False
        self._unschedulable.remove(info.pod.pod_key)
        self._backoff.add(info, label, is_own_update=is_own_update)
        return True

    def _flush_backoff(self, now_s: float) -> None:
        completed = self._backoff.pop_completed(now_s)
        for info in completed:
            self._to_active(info, BACKOFF_COMPLETE_LABEL, ask_gates=False)
        if completed:
            self._on_ready()

    def _flush_unschedulable(self, now_s: float) -> None:
        left_over = [
            info
            for info in self._unschedulable.infos()
            if now_s - info.timestamp_s > self._max_in_unschedulable_s
            and (not info.gating_plugin or self._gate_wants(info, UNSCHEDULABLE_TIMEOUT))
        ]
        for info in left_over:
            # differs: upstream marks gated pods as well, though they stay.
            info.was_flushed_from_unschedulable = True
        if left_over:
            self._move(left_over, Happening.of(UNSCHEDULABLE_TIMEOUT, None, None))

    # --- small things ------------------------------------------------------------------------------------------------

    def _rules_of(self, profiles: Mapping[str, QueueProfile]) -> tuple[QueueingHints, Gates]:
        hints = QueueingHints(profiles, metrics=self._metrics, perf_counter=self._perf_counter)
        gates = Gates(profiles, events_of=hints.events_of, metrics=self._metrics, perf_counter=self._perf_counter)
        return hints, gates

    def _newest(self, pod: Pod) -> Pod:
        info = self.get(pod.pod_key)
        # differs: upstream returns an empty pod of that name for a nominated pod that is in no queue.
        return info.pod if info is not None and info.pod.metadata.uid == pod.metadata.uid else pod

    def _count_rejectors(self, info: QueuedPodInfo, delta: int) -> None:
        if info.unschedulable_plugins or info.pending_plugins:
            profile = info.pod.spec.scheduler_name
            for plugin in info.unschedulable_plugins | info.pending_plugins:
                self._metrics.unschedulable_pods(plugin, profile, delta)


def _pod_happenings(old: Pod | None, new: Pod) -> list[Happening]:
    events = [UNSCHEDULABLE_POD_UPDATE] if old is None else pod_events(old, new)
    return [Happening.of(event, old, new) for event in events]
