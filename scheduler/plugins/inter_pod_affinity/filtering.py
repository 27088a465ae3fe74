"""Filter: where required affinity and anti-affinity let the pod run.

Three rules, in this order (the first that fails gives the reason):

1. affinity: in each of the node's domains of the pod's terms runs a pod that matches **all** of the terms. If no pod
   anywhere does, but the pod itself, it is the first of its kind and needs only a node that has all the labels.
2. anti-affinity: in none of the node's domains of the pod's terms runs a pod that matches that term.
3. symmetry: in none of the node's domains runs a pod whose anti-affinity term of that domain selects the pod.

Source: ``interpodaffinity/filtering.go`` v1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, IntColumn, NodesView, NodeView, Pod, StateKey, Status, TermCounts, Verdicts
from scheduler.model.affinity import AffinityTerm
from scheduler.plugins.inter_pod_affinity.domains import TopologyCounts
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces
from scheduler.plugins.inter_pod_affinity.terms import Question, conjunction, matches_all, question

__all__ = [
    "FILTER_STATE",
    "REASON_AFFINITY",
    "REASON_ANTI_AFFINITY",
    "REASON_EXISTING",
    "FilterState",
    "judge",
    "judge_all",
    "prepare",
    "update",
]

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

_NOT_NEAR = Status.unresolvable(REASON_AFFINITY)
_NOT_APART = Status.unschedulable(REASON_ANTI_AFFINITY)
_REPELLED = Status.unschedulable(REASON_EXISTING)


@dataclass(frozen=True, slots=True)
class FilterState:
    """What PreFilter found out about the pod; a dry run changes the counts of its clone.

    Attributes:
        near: who the pod must be near to, one for each affinity term.
        near_keys: topology keys of the affinity terms, each once.
        is_own_match: whether the pod matches all of its own affinity terms.
        apart: anti-affinity terms: who the pod must not be near to, and the topology key.
        namespace_labels: labels of the pod's namespace.
        affinity: pods that match all of ``near``.
        anti_affinity: pods that match a term of ``apart``, by that term's key.
        repelling: carriers of anti-affinity terms that select the pod, by the term's key.
    """

    near: tuple[Question, ...]
    near_keys: tuple[str, ...]
    is_own_match: bool
    apart: tuple[tuple[Question, str], ...]
    namespace_labels: Mapping[str, str]
    affinity: TopologyCounts
    anti_affinity: TopologyCounts
    repelling: TopologyCounts

    def clone(self) -> FilterState:
        """Return a copy for a dry run."""
        return FilterState(
            self.near,
            self.near_keys,
            self.is_own_match,
            self.apart,
            self.namespace_labels,
            self.affinity.clone(),
            self.anti_affinity.clone(),
            self.repelling.clone(),
        )


FILTER_STATE: StateKey[FilterState] = StateKey("PreFilterInterPodAffinity")


def prepare(pod: Pod, nodes: NodesView, namespaces: Namespaces) -> FilterState | None:
    """Count all that the rules ask for; ``nodes`` are all nodes. None if no rule concerns the pod."""
    namespace_labels = namespaces.labels(pod.metadata.namespace)
    carried = nodes.repelling_terms(pod, namespace_labels)
    terms = pod.affinity_terms
    if not carried and not terms.required_affinity and not terms.required_anti_affinity:
        return None
    near = tuple(question(term, namespaces) for term in terms.required_affinity)
    apart = tuple((question(term, namespaces), term.topology_key) for term in terms.required_anti_affinity)
    near_keys = _keys(terms.required_affinity)
    return FilterState(
        near,
        near_keys,
        matches_all(near, pod),
        apart,
        namespace_labels,
        _count_near(near, near_keys, nodes),
        _count_apart(apart, nodes),
        _count_repelling(carried, nodes),
    )


def _keys(terms: Sequence[AffinityTerm]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term.topology_key for term in terms))


def _count_near(near: Sequence[Question], keys: Sequence[str], nodes: NodesView) -> TopologyCounts:
    counts = TopologyCounts()
    if near:
        all_of_them = conjunction(near)
        for key in keys:
            counts.put(key, nodes.label(key), _by_code(all_of_them, key, nodes))
    return counts


def _count_apart(apart: Sequence[tuple[Question, str]], nodes: NodesView) -> TopologyCounts:
    counts = TopologyCounts()
    by_key: dict[str, IntColumn] = {}
    for asked, key in apart:
        by_code = _by_code(asked, key, nodes)
        by_key[key] = by_key[key] + by_code if key in by_key else by_code
    for key, by_code in by_key.items():
        counts.put(key, nodes.label(key), by_code)
    return counts


def _by_code(asked: Question, key: str, nodes: NodesView) -> IntColumn:
    return nodes.matching_pods_by(key, asked.namespaces, asked.selector, include_terminating=True)


def _count_repelling(carried: Sequence[TermCounts], nodes: NodesView) -> TopologyCounts:
    counts = TopologyCounts()
    for each in carried:
        column = nodes.label(each.topology_key)
        by_code = np.zeros(len(column.values) + 1, np.int64)
        each.add_to(by_code, column)
        counts.put(each.topology_key, column, by_code)
    return counts


def update(state: FilterState, pod: Pod, other: Pod, labels: Mapping[str, str], delta: int) -> None:
    """Count ``other`` in (1) or out (-1) on a node with these labels."""
    meta = pod.metadata
    for term in other.affinity_terms.required_anti_affinity:
        if term.matches(meta.namespace, meta.labels, state.namespace_labels):
            state.repelling.change(term.topology_key, labels, delta)
    if matches_all(state.near, other):
        for key in state.near_keys:
            state.affinity.change(key, labels, delta)
    for asked, key in state.apart:
        if asked.selects(other):
            state.anti_affinity.change(key, labels, delta)


def judge(state: FilterState, node: NodeView) -> Status | None:
    """Say whether the pod can run on the node."""
    labels = node.labels
    if not _is_near(state, labels):
        return _NOT_NEAR
    if state.anti_affinity.is_any_occupied(labels):
        return _NOT_APART
    return _REPELLED if state.repelling.is_any_occupied(labels) else None


def _is_near(state: FilterState, labels: Mapping[str, str]) -> bool:
    if not all(key in labels for key in state.near_keys):
        return False
    if all(state.affinity.by_key[key].count(labels[key]) > 0 for key in state.near_keys):
        return True
    return _is_first(state)


def _is_first(state: FilterState) -> bool:
    return state.is_own_match and not state.affinity.total


def judge_all(state: FilterState, nodes: NodesView) -> Verdicts:
    """Say for every row whether the pod can run there."""
    near = _near_rows(state, nodes)
    not_apart = state.anti_affinity.any_occupied(nodes)
    repelled = state.repelling.any_occupied(nodes)
    ok = np.ones(len(nodes), np.bool_) if near is None else near
    for bad in (not_apart, repelled):
        if bad is not None:
            ok = ok & ~bad
    return Verdicts(ok, lambda rows: _explain(rows, near, not_apart))


def _near_rows(state: FilterState, nodes: NodesView) -> BoolColumn | None:
    """Return where the affinity rule holds; None if there is none."""
    near: BoolColumn | None = None
    is_first = _is_first(state)
    for key in state.near_keys:
        column = nodes.label(key)
        of_key = column.codes >= 0 if is_first else state.affinity.by_key[key].occupied(column)
        near = of_key if near is None else near & of_key
    return near


def _explain(
    rows: NDArray[np.intp], near: BoolColumn | None, not_apart: BoolColumn | None
) -> list[tuple[Status, NDArray[np.intp]]]:
    groups: list[tuple[Status, NDArray[np.intp]]] = []
    for passed, status in ((near, _NOT_NEAR), (None if not_apart is None else ~not_apart, _NOT_APART)):
        if passed is not None:
            groups.append((status, rows[~passed[rows]]))
            rows = rows[passed[rows]]
    groups.append((_REPELLED, rows))
    return [(status, some) for status, some in groups if len(some)]
