"""InterPodAffinity, the plugin: puts filtering, scoring and hints behind the extension points.

No pod but the incoming one is looked at in a cycle. The counts come from two indexes that are kept as pods come and go:
pods that match a selector (for the pod's own terms) and terms carried by pods (for those of others).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    IntColumn,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Verdicts,
)
from scheduler.api.events import HintIndex, IndexedRegistration
from scheduler.config.args import InterPodAffinityArgs
from scheduler.model.affinity import PodAffinityTerms
from scheduler.model.meta import Namespace
from scheduler.plugins.inter_pod_affinity.filtering import FILTER_STATE, judge, judge_all, prepare, update
from scheduler.plugins.inter_pod_affinity.hints import Hints
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces
from scheduler.plugins.inter_pod_affinity.scoring import (
    SCORE_STATE,
    prepare_scores,
    score_domains,
    score_node,
    spread_out,
)
from scheduler.plugins.inter_pod_affinity.wanted import (
    offered_by_nodes,
    offered_by_pods,
    wanted_of_nodes,
    wanted_of_pods,
)

__all__ = ["MAX_TERMS", "NAME", "InterPodAffinity", "new", "too_many_terms"]

NAME = "InterPodAffinity"
MAX_TERMS = 512
"""Most terms that a pod may have; each is a question about all pods, and the others wait while it is answered."""


def too_many_terms(number: int) -> str:
    """Return the reason for a pod with more than ``MAX_TERMS`` terms."""
    return f"pod has {number} pod affinity terms, podium evaluates at most {MAX_TERMS}"


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by required and scores by preferred affinity and anti-affinity, of the pod and of those that run."""

    name: ClassVar[str] = NAME
    __slots__ = ("_args", "_handle", "_hints", "_namespaces")

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._namespaces = Namespaces(handle.lister(Namespace))
        self._hints = Hints(self._namespaces)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        terms = pod.affinity_terms
        if terms.problem is not None:
            return None, Status.unresolvable(f"parsing pod: {terms.problem}")
        if (number := _count(terms)) > MAX_TERMS:
            # differs: upstream evaluates any number
            return None, Status.unresolvable(too_many_terms(number))
        prepared = prepare(pod, nodes, self._namespaces)
        if prepared is None:
            return None, Status.skip()
        state.write(FILTER_STATE, prepared)
        return None, None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        update(state.read(FILTER_STATE), pod, added, node.labels, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        update(state.read(FILTER_STATE), pod, removed, node.labels, -1)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del pod
        return judge(state.read(FILTER_STATE), node)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del pod
        return judge_all(state.read(FILTER_STATE), nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        del nodes
        terms = pod.affinity_terms
        has_preferences = bool(terms.preferred_affinity or terms.preferred_anti_affinity)
        # parity: with preferences of its own the pod sees those of the others, whatever the option says
        if self._args.ignore_preferred_terms_of_existing_pods and not has_preferences:
            return Status.skip()
        hard_weight = self._args.hard_pod_affinity_weight
        scores = prepare_scores(pod, self._handle.nodes(), self._namespaces, hard_weight)
        if not scores:
            return Status.skip()
        state.write(SCORE_STATE, scores)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        del pod
        return score_node(state.read(SCORE_STATE), node)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        del pod
        return score_domains(state.read(SCORE_STATE), nodes)

    def normalize(self, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn) -> IntColumn:
        del state, pod, nodes
        return spread_out(scores)

    def events(self) -> Sequence[EventRegistration]:
        pod_changed = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
        node_changed = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        of_pods = HintIndex(wanted_of_pods, partial(offered_by_pods, self._namespaces))
        of_nodes = HintIndex(wanted_of_nodes, offered_by_nodes)
        hints = self._hints
        return (
            IndexedRegistration(ClusterEvent(EventResource.POD, pod_changed), hints.after_pod_change, index=of_pods),
            IndexedRegistration(
                ClusterEvent(EventResource.NODE, node_changed), hints.after_node_change, index=of_nodes
            ),
        )


def _count(terms: PodAffinityTerms) -> int:
    return (
        len(terms.required_affinity)
        + len(terms.required_anti_affinity)
        + len(terms.preferred_affinity)
        + len(terms.preferred_anti_affinity)
    )


def new(args: object, handle: Handle) -> InterPodAffinity:
    """Make the plugin from its validated ``InterPodAffinityArgs``."""
    return InterPodAffinity(args if isinstance(args, InterPodAffinityArgs) else InterPodAffinityArgs(), handle)
