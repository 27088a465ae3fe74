"""schedule_one: one pod gets a node, or a reason.

    pop ─▶ profile ─▶ skip? ─▶ snapshot ─▶ PreFilter ─▶ Filter ─▶ [PostFilter] ─▶ PreScore ─▶ Score ─▶ choose
        ─▶ assume ─▶ Reserve ─▶ Permit ─▶ hand over to the binding cycle ─▶ next pod

The decision itself (``_choose_node``) touches nothing but the attempt's record; what follows takes effect in memory at
once (assume), so the next pod sees it, and outside later, by instructions in the outbox. Nothing here waits.
Source: ``pkg/scheduler/schedule_one.go`` v1.36; design: docs/design/0003-one-cycle-no-io.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.api import PODS_TO_ACTIVATE, Clock, Code, CycleState, Pod, QueuedPodInfo, Random, Status
from scheduler.config.types import SchedulerConfiguration
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.class_cache import ClassCache, ClassKey
from scheduler.cycle.conclude import activate_requested, unreserve_and_forget
from scheduler.cycle.failure import handle_failure, tell_unserved
from scheduler.cycle.feasible import find_feasible, num_nodes_to_find
from scheduler.cycle.metrics import CycleMetrics, NullCycleMetrics
from scheduler.cycle.score import score_feasible
from scheduler.cycle.select import Choice, choose_uniformly, select_node
from scheduler.cycle.standing import StandingAnswers
from scheduler.cycle.traces import Trace
from scheduler.failpoints import failpoint
from scheduler.framework.diagnosis import NO_NODES_MESSAGE, FitError, NoNodesError, one_node_fit_error
from scheduler.framework.extender import Extender
from scheduler.framework.runtime import Framework
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.errors import CacheError
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.outbox import EmitEvent, Outbox, StartBinding
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Store
from scheduler.telemetry.logging import get_logger

__all__ = ["PLUGIN_METRICS_SAMPLE", "Observer", "Scheduler"]

PLUGIN_METRICS_SAMPLE = 0.1
"""Share of the attempts in which the durations of single plugins are measured."""

Observer = Callable[[Attempt], None]
"""Sees every attempt when it has ended, before the next one changes the snapshot."""

_log = get_logger(__name__)


class _Failure(NamedTuple):
    status: Status
    nominate: str | None = ""  # "" clears a nomination, None leaves it


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Scheduler:
    """The engine: state, profiles, and the one loop body over them.

    Attributes:
        pods: the pods as the watch knows them.
        extenders: in calling order.
        choose: picks one of the best nodes.
        observer: called at the end of each attempt; None on the hot path.
        next_start_node_index: where the next search that does not look at all nodes begins.
        attempting: the pod being tried, None between attempts; see ``failure.abandon``.
        class_cache: rankings of nodes that equal pods share.
        standing: what plugins that read node objects alone said before.
    """

    queue: SchedulingQueue
    cache: Cache
    snapshot: Snapshot
    pods: Store[Pod]
    profiles: Mapping[str, Framework]
    outbox: Outbox
    clock: Clock
    random: Random
    configuration: SchedulerConfiguration
    perf_counter: Callable[[], float]
    extenders: Sequence[Extender] = ()
    metrics: CycleMetrics = field(default_factory=NullCycleMetrics)
    choose: Choice = choose_uniformly
    observer: Observer | None = None
    next_start_node_index: int = 0
    attempting: QueuedPodInfo | None = None
    class_cache: ClassCache = field(default_factory=ClassCache)
    standing: StandingAnswers = field(default_factory=StandingAnswers)

    def schedule_one(self) -> bool:
        """Try the next pod; returns False if the queue had none to offer."""
        info = self.queue.pop()
        if info is None:
            return False
        self.schedule(info)
        return True

    def schedule(self, info: QueuedPodInfo) -> None:
        """Try a pod that the queue has put in flight."""
        self.attempting = info
        failpoint("decide.popped", info.pod)
        self._attempt(info)
        self.attempting = None

    def _attempt(self, info: QueuedPodInfo) -> None:
        framework = self.profiles.get(info.pod.spec.scheduler_name)
        if framework is None:
            tell_unserved(self, info.pod)
        if framework is None or self._skips(framework, info.pod):
            self.queue.done(info.pod.uid)
            return
        self._try(framework, info)

    def _skips(self, framework: Framework, pod: Pod) -> bool:
        """Say whether the pod needs no attempt: it is being deleted, or was assumed while it waited."""
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            self.outbox.push(
                EmitEvent(pod, framework.profile_name, "Warning", "FailedScheduling", action="Scheduling", note=note)
            )
            return True
        return self.cache.is_assumed(pod.uid)

    def _try(self, framework: Framework, info: QueuedPodInfo) -> None:
        started_s = self.perf_counter()
        state = CycleState(record_plugin_metrics=self.random.random() < PLUGIN_METRICS_SAMPLE)
        state.write(PODS_TO_ACTIVATE, {})
        self.cache.update_snapshot(self.snapshot)
        attempt = Attempt(framework, state, self.queue.as_nominated(info.pod), self.snapshot)
        failure = self._find_node(attempt, started_s)
        if failure is None:
            failure = self._take_place(attempt, info, started_s)
        if failure is not None:
            attempt.status = failure.status
        if self.observer is not None:
            self.observer(attempt)
        if failure is not None:
            handle_failure(self, framework, info, failure.status, nominate=failure.nominate, started_s=started_s)

    def _find_node(self, attempt: Attempt, started_s: float) -> _Failure | None:
        """Choose a node; if none fits, let PostFilter make room for a later attempt."""
        status = self._choose_node(attempt)
        failure = None if status is None else _Failure(status)
        if status is None and not attempt.node_name:
            failure = self._post_filter(attempt)
        self.metrics.algorithm(self.perf_counter() - started_s)
        return failure

    def _choose_node(self, attempt: Attempt) -> Status | None:
        """Fill in the node, or "" if none fits; returns why the attempt must end otherwise."""
        if not len(self.snapshot):
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_NODES_MESSAGE,), cause=NoNodesError())
        is_decided, key = self._decide_from_what_is_kept(attempt)
        if is_decided:
            return None
        trace = Trace(self.perf_counter)
        status = find_feasible(self, attempt)
        trace.step("Computing predicates done")
        if status is None and len(attempt.feasible) == 1:
            attempt.node_name = self.snapshot.names[int(attempt.feasible[0])]
        elif status is None and len(attempt.feasible):
            status = score_feasible(self, attempt)
            if status is None:
                select_node(self, attempt)
                if key is not None:
                    self.class_cache.remember(key, self, attempt)
            trace.step("Prioritizing done")
        trace.log_if_long(attempt.pod.pod_key)
        return status

    def _decide_from_what_is_kept(self, attempt: Attempt) -> tuple[bool, ClassKey | None]:
        """Decide without asking all plugins about all nodes, if that can be done; returns the pod's class, too."""
        framework = attempt.framework
        standing = framework.standing.key(attempt.pod)
        if standing is None:
            return False, None
        at_once = self._looks_at_all_nodes_as_they_are(attempt)
        key = self.class_cache.key_of(attempt, standing) if at_once else None
        if key is not None and self.class_cache.try_reuse(key, self, attempt):
            return True, key
        known = self.standing.of(framework, standing, attempt.pod, self.snapshot)
        if known is None:
            return False, key
        attempt.answers = known.answers
        # What is measured plugin by plugin takes the ordinary way.
        if not at_once or known.ranking is None or attempt.state.record_plugin_metrics:
            return False, key
        if not known.ranking.decide(self, attempt):
            return False, key
        self.standing.hits += 1
        if key is not None:
            self.class_cache.remember(key, self, attempt)
        return True, key

    def _looks_at_all_nodes_as_they_are(self, attempt: Attempt) -> bool:
        """Say whether all nodes are looked at, by plugins alone and without nominated pods on them."""
        if self.extenders or self.queue.nominated_nodes or attempt.pod.status.nominated_node_name:
            return False
        size = len(attempt.nodes)
        return num_nodes_to_find(self, attempt.framework, size) >= size

    def _post_filter(self, attempt: Attempt) -> _Failure:
        """Say why the pod fits nowhere, and what PostFilter made of it."""
        status = attempt.explain()
        if status is not None:
            return _Failure(status)
        error = FitError(attempt.pod, len(self.snapshot), attempt.diagnosis)
        if not attempt.framework.has_post_filter_plugins:
            return _Failure(error.status())
        statuses = attempt.diagnosis.statuses
        result, status = attempt.framework.run_post_filter(attempt.state, attempt.pod, statuses)
        if status is not None:
            attempt.diagnosis.post_filter_msg = status.message
            if status.code is Code.ERROR:
                _log.error("post-filter failed", pod=attempt.pod.pod_key, plugin=status.plugin, error=status.message)
        return _Failure(error.status(), None if result is None else result.nominated_node)

    def _take_place(self, attempt: Attempt, info: QueuedPodInfo, started_s: float) -> _Failure | None:
        """Let the decision take effect in memory (assume, Reserve, Permit) and order its binding."""
        assumed = attempt.pod.on_node(attempt.node_name)
        try:
            self.cache.assume_pod(assumed)
        except CacheError as error:
            return _Failure(Status.error(str(error), error))
        failpoint("decide.assumed", assumed)
        self.queue.delete_nominated_pod_if_exists(assumed)
        job = StartBinding(attempt.framework, attempt.state, info, assumed, attempt.node_name, started_s)
        try:
            return self._admit(attempt, job)
        except Exception:  # a bug, which the supervisor of the attempt will report
            attempt.framework.waiting.remove(assumed.uid)
            unreserve_and_forget(self, job)
            raise

    def _admit(self, attempt: Attempt, job: StartBinding) -> _Failure | None:
        """Ask Reserve and Permit, and order the binding."""
        framework, state, assumed, node_name = job.framework, job.state, job.assumed, job.node_name
        status = framework.run_reserve(state, assumed, node_name)
        if status is None:
            status, waits = framework.run_permit(state, assumed, node_name)
            if status is not None and status.code is Code.WAIT:
                framework.hold(assumed, waits)
                job.is_waiting, status = True, None
        if status is not None:
            unreserve_and_forget(self, job)
            if status.is_rejected:
                status = one_node_fit_error(attempt.pod, self.snapshot, node_name, status).status(status.code)
            return _Failure(status)
        failpoint("decide.permitted", assumed)
        activate_requested(self, state)
        framework.bindings += 1
        self.outbox.push(job)
        return None
