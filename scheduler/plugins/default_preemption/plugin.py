"""The plugin: PostFilter makes room, PreEnqueue keeps the pod back until the room is there.

    eligible? ─▶ candidates (dry runs) ─▶ extenders ─▶ pick ─▶ evict, nominate

Source: ``default_preemption.go``, ``preemption.go`` (``Evaluator.Preempt``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from scheduler.api import (
    ActionType,
    ClusterEvent,
    Code,
    CycleState,
    EventRegistration,
    EventResource,
    Handle,
    NodesView,
    Pod,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    QueueingHint,
    Status,
)
from scheduler.config.args import DefaultPreemptionArgs
from scheduler.framework.diagnosis import Diagnosis, FitError
from scheduler.model.policy import PodDisruptionBudget
from scheduler.plugins.default_preemption.budgets import Budgets
from scheduler.plugins.default_preemption.candidates import SEARCH, Search, num_candidates, potential_rows, search
from scheduler.plugins.default_preemption.consent import ask_extenders
from scheduler.plugins.default_preemption.execution import Execution
from scheduler.plugins.default_preemption.pick import best_nodes
from scheduler.plugins.default_preemption.victims import DryRun

__all__ = [
    "ASYNC_PREEMPTION",
    "NAME",
    "NEVER",
    "NOT_HELPFUL",
    "NO_CANDIDATE",
    "TERMINATING",
    "WAITING",
    "DefaultPreemption",
    "is_terminating_by_preemption",
    "new",
]

NAME = "DefaultPreemption"
ASYNC_PREEMPTION = "SchedulerAsyncPreemption"

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"
WAITING = "waiting for the preemption for this pod to be finished"

_PREFIX = "preemption: "
_DISRUPTION_TARGET = "DisruptionTarget"
_BY_SCHEDULER = "PreemptionByScheduler"
_ABSENT = Status.unresolvable(NOT_HELPFUL)

_Answer = tuple[PostFilterResult | None, Status | None]


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin):
    """See the package."""

    name: ClassVar[str] = NAME
    __slots__ = ("_args", "_budgets", "_execution", "_handle", "_is_gated", "_pods")

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._pods = handle.lister(Pod)
        self._budgets = Budgets(handle.lister(PodDisruptionBudget))
        self._is_gated = handle.is_enabled(ASYNC_PREEMPTION)
        self._execution = Execution(handle, self._pods, NAME, is_gated=self._is_gated)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable(WAITING) if self._execution.is_waiting(pod) else None

    def events(self) -> Sequence[EventRegistration]:
        if not self._is_gated:
            return ()
        # A pod at the gate is asked anew after each deletion. Whether the deletion helps is for those plugins to say
        # that rejected it.
        deleted = ClusterEvent(EventResource.POD, ActionType.DELETE)
        return (EventRegistration(deleted, lambda pod, old, new: QueueingHint.SKIP),)  # noqa: ARG005  a hint's signature

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> _Answer:
        self._handle.note_preemption()
        result, status = self._preempt(state, pod, statuses)
        if status is not None and status.message:
            status = replace(status, reasons=(_PREFIX + status.message,))
        return result, status

    def _preempt(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> _Answer:
        newest = self._pods.get(pod.pod_key)
        if newest is None:
            return None, Status.error(f'pod "{pod.name}" not found')
        nodes = self._handle.nodes()
        objection = self._objection(newest, pod.status.nominated_node_name, statuses, nodes)
        if objection is not None:
            return None, Status.unschedulable(objection)
        now_s = self._handle.clock.now()
        found = self._search(state, newest, statuses, nodes, now_s)
        if not found.candidates:
            if found.errors:
                return None, Status.error(_aggregate(found.errors))
            return PostFilterResult(nominated_node=""), Status.unschedulable(_why_not(newest, nodes, found))
        return self._settle(newest, found, nodes, now_s)

    def _objection(self, pod: Pod, nominated: str, statuses: Mapping[str, Status], nodes: NodesView) -> str | None:
        """Return why the pod, which is ``nominated`` to this node or "", may not preempt others (now), or None."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        row = nodes.row(nominated) if nominated else None
        if row is None:
            return None
        status = statuses.get(nominated)
        if status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None  # nothing will help there: look elsewhere
        for other in nodes.infos[row].pods:
            # differs: upstream does not count a victim as long as its eviction is on its way to the API server. A pod
            # whose own victims are gone would find its place taken by the nomination of another pod, whose victims are
            # not gone yet, and evict more pods than needed.
            is_going = is_terminating_by_preemption(other) or self._execution.is_leaving(other)
            if other.priority < pod.priority and is_going:
                return TERMINATING
        return None

    def _search(
        self, state: CycleState, pod: Pod, statuses: Mapping[str, Status], nodes: NodesView, now_s: float
    ) -> Search:
        rows = potential_rows(statuses, nodes)
        found = Search()
        if len(rows):
            spare = self._handle.sparing(state, pod)
            dry_run = DryRun(self._handle, state, pod, self._budgets.by_namespace(), now_s, spare)
            found = search(dry_run, nodes, rows, num_candidates(self._args, len(rows)), self._handle.random)
        state.write(SEARCH, found)
        return found

    def _settle(self, pod: Pod, found: Search, nodes: NodesView, now_s: float) -> _Answer:
        candidates = ask_extenders(self._handle.extenders(), pod, found.candidates, nodes)
        if isinstance(candidates, Status):
            return None, candidates
        best = best_nodes(candidates, now_s)
        if not best:
            return None, Status.unschedulable(NO_CANDIDATE)
        found.ties = best if len(best) > 1 else []
        found.chosen = best[self._handle.random.randrange(len(best))] if found.ties else best[0]
        self._execution.start(pod, found.chosen, candidates[found.chosen])
        return PostFilterResult(nominated_node=found.chosen), None


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Say whether the pod is on its way out because a scheduler evicted it."""
    if not pod.is_terminating:
        return False
    for condition in pod.status.conditions:
        if condition.type == _DISRUPTION_TARGET:
            return condition.status == "True" and condition.reason == _BY_SCHEDULER
    return False


def _why_not(pod: Pod, nodes: NodesView, found: Search) -> str:
    """Return the text of a FitError over the nodes that were tried; the others count as not helpful."""
    diagnosis = Diagnosis(nodes)
    diagnosis.absent_status = _ABSENT
    for status, rows in found.rejected.items():
        diagnosis.add_group(status, np.array(rows, np.intp))
    return str(FitError(pod, len(nodes), diagnosis))


def _aggregate(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def new(args: object, handle: Handle) -> DefaultPreemption:
    """Make the plugin."""
    return DefaultPreemption(args if isinstance(args, DefaultPreemptionArgs) else DefaultPreemptionArgs(), handle)
