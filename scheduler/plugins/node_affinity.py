"""NodeAffinity: nodes are chosen by their labels and names (spec §4.6).

A pod whose every required term names its nodes (daemon pods do) is decided in PreFilter: only the named nodes are
looked at, which turns a scan of all nodes into a look-up.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from scheduler.api import (
    ActionType,
    BoolColumn,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    IntColumn,
    Node,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueingHint,
    ScorePlugin,
    StateKey,
    Status,
    Verdicts,
    default_normalize,
)
from scheduler.api.events import HintIndex, IndexedRegistration, Offer, WantedKey
from scheduler.config.args import NodeAffinityArgs
from scheduler.model.pod import NodeAffinity as NodeAffinityRules
from scheduler.model.pod import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from scheduler.model.selectors import (
    FIELD_NAME,
    node_selector_matches,
    node_selector_term_matches,
    required_node_affinity_matches,
    validate_preferred_terms,
)
from scheduler.plugins.shared.label_keys import ANY, Thing, changed_keys, offered
from scheduler.plugins.shared.node_labels import match_node_selector, match_required, match_term

__all__ = ["NAME", "REASON_CONFLICT", "REASON_ENFORCED", "REASON_POD", "NodeAffinity", "new"]

NAME = "NodeAffinity"
REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"

_NODES = "nodes"
_NEED_LABEL = frozenset({"In", "Exists", "Gt", "Lt"})
_REJECTED_BY_POD = Status.unresolvable(REASON_POD)
_REJECTED_BY_ADDED = Status.unresolvable(REASON_ENFORCED)
_PREFERRED: StateKey[tuple[PreferredSchedulingTerm, ...]] = StateKey("PreScoreNodeAffinity")


class NodeAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by required and scores by preferred node affinity, the pod's own and the profile's added one."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ("_added_preferred", "_added_required")

    def __init__(
        self, added_required: NodeSelector | None, added_preferred: tuple[PreferredSchedulingTerm, ...]
    ) -> None:
        self._added_required = added_required
        self._added_preferred = added_preferred

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del state, nodes
        required = _required(pod)
        if required is None and self._added_required is None and not pod.spec.node_selector:
            return None, Status.skip()
        names = _named_nodes(required.node_selector_terms) if required is not None else None
        if names is None:
            return None, None
        if not names:
            return None, Status.unresolvable(REASON_CONFLICT)
        return PreFilterResult(names), None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state
        if self._added_required is not None and not node_selector_matches(self._added_required, node.node):
            return _REJECTED_BY_ADDED
        return None if required_node_affinity_matches(pod, node.node) else _REJECTED_BY_POD

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del state
        of_pod = match_required(pod, nodes)
        if self._added_required is None:
            return Verdicts.all_equal(of_pod, _REJECTED_BY_POD)
        of_added = match_node_selector(self._added_required, nodes)
        return Verdicts(of_pod & of_added, lambda rows: _explain(of_added, rows))

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        del nodes
        preferred = _preferred(pod)
        if not preferred and not self._added_preferred:
            return Status.skip()
        problem = validate_preferred_terms(preferred)
        if problem is not None:
            return Status.error(problem)
        state.write(_PREFERRED, self._added_preferred + preferred)
        return None

    def _scored_terms(self, state: CycleState, pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
        terms = state.get(_PREFERRED)
        # parity: a profile may have Score without PreScore
        return self._added_preferred + _preferred(pod) if terms is None else terms

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        terms = self._scored_terms(state, pod)
        return sum(term.weight for term in terms if node_selector_term_matches(term.preference, node.node))

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        scores = np.zeros(len(nodes), np.int64)
        for term in self._scored_terms(state, pod):
            scores += match_term(term.preference, nodes) * np.int64(term.weight)
        return scores

    def normalize(self, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn) -> IntColumn:
        del state, pod, nodes
        return default_normalize(scores)

    def node_signature(self, pod: Pod) -> Hashable:
        affinity = pod.spec.affinity
        return tuple(pod.spec.node_selector.items()), affinity.node_affinity if affinity is not None else None

    def events(self) -> Sequence[EventRegistration]:
        node_changed = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (IndexedRegistration(node_changed, self._after_node_change, index=_INDEX),)

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.QUEUE
        if self._added_required is not None and not node_selector_matches(self._added_required, new):
            return QueueingHint.SKIP
        # differs: upstream wakes a pod with a term that it cannot read after every change; such a term never matches.
        if not required_node_affinity_matches(pod, new):
            return QueueingHint.SKIP
        matched_before = isinstance(old, Node) and required_node_affinity_matches(pod, old)
        return QueueingHint.SKIP if matched_before else QueueingHint.QUEUE


def _wanted(pod: Pod) -> Iterable[WantedKey]:
    """Yield what a node must have, or have changed, to match the pod if it did not; a new node must have one of it."""
    required = _required(pod)
    for pair in pod.spec.node_selector.items():
        yield _NODES, pair
    if required is not None:
        for term in required.node_selector_terms:
            yield from ((_NODES, thing) for thing in _wanted_by(term))
    elif not pod.spec.node_selector:
        yield _NODES, ANY


def _wanted_by(term: NodeSelectorTerm) -> Iterator[Thing]:
    needs_any = True
    for requirement in term.match_expressions:
        if requirement.operator == "In":
            yield from ((requirement.key, value) for value in requirement.values)
        else:
            yield requirement.key
        needs_any &= requirement.operator not in _NEED_LABEL
    for requirement in term.match_fields:
        # Other fields than the name are the same on all nodes.
        if requirement.operator == "In" and requirement.key == FIELD_NAME:
            yield from ((FIELD_NAME, value) for value in requirement.values)
            needs_any = False
    if needs_any:
        yield ANY


def _offered(old: object | None, new: object | None) -> Iterable[Offer] | None:
    if not isinstance(new, Node):
        return None
    labels = new.metadata.labels
    if not isinstance(old, Node) or old.name != new.name:
        return [(_NODES, [*offered(labels), (FIELD_NAME, new.name)])]
    changed = changed_keys(old.metadata.labels, labels)
    return [(_NODES, [*changed, *((key, labels[key]) for key in changed if key in labels)])]


_INDEX = HintIndex(_wanted, _offered)


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity
    return affinity.node_affinity.preferred if affinity is not None and affinity.node_affinity is not None else ()


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the nodes that the terms name: union over terms, intersection inside one; None if a term names none."""
    if not terms:
        return None
    union: frozenset[str] = frozenset()
    for term in terms:
        sets = [frozenset(r.values) for r in term.match_fields if r.key == FIELD_NAME and r.operator == "In"]
        if not sets:
            return None
        union |= frozenset.intersection(*sets)
    return union


def _explain(of_added: BoolColumn, rows: np.ndarray) -> list[tuple[Status, np.ndarray]]:
    added_ok = of_added[rows]
    groups = ((_REJECTED_BY_ADDED, rows[~added_ok]), (_REJECTED_BY_POD, rows[added_ok]))
    return [(status, members) for status, members in groups if len(members)]


def new(args: object, handle: Handle) -> NodeAffinity:
    """Make the plugin from its validated ``NodeAffinityArgs``."""
    del handle
    added = args.added_affinity if isinstance(args, NodeAffinityArgs) else None
    rules = added if added is not None else NodeAffinityRules()
    return NodeAffinity(rules.required, rules.preferred)
