"""Scoring: domains with fewer matching pods are better (soft constraints).

PreScore counts; Score adds, for each constraint whose label the node has, the pods of the node's domain, weighted with
the logarithm of the number of domains, so that many small domains count as much as few large ones; NormalizeScore
turns "few" into "good". Counts are exact integers and the rest is float64 in upstream's order of operations, so scores
are equal to the last bit.

Source: ``podtopologyspread/scoring.go``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.api import (
    MAX_NODE_SCORE,
    BoolColumn,
    CodedColumn,
    Int32Column,
    IntColumn,
    NodesView,
    NodeView,
    Pod,
    StateKey,
)
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.topology_spread.constraints import HOSTNAME, Constraint, has_all_keys
from scheduler.plugins.topology_spread.domains import count_by_code
from scheduler.plugins.topology_spread.inclusion import Inclusion
from scheduler.plugins.topology_spread.logarithm import log

__all__ = ["STATE", "ScoreState", "count_for_scores", "normalize"]

FloatColumn = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _SoftRule:
    """One soft constraint with its counts.

    Attributes:
        constraint: the rule.
        weight: of one pod.
        counts: matching pods by code of the label; None for hostnames, where each node counts for itself.
        column: the label, in all nodes.
    """

    constraint: Constraint
    weight: float
    counts: IntColumn | None
    column: CodedColumn[str]

    def score(self, pods: int) -> float:
        return float(pods) * self.weight + float(self.constraint.max_skew - 1)

    def scores(self, pods: IntColumn) -> FloatColumn:
        scores = pods.astype(np.float64)
        scores *= self.weight
        scores += float(self.constraint.max_skew - 1)
        return scores


@dataclass(frozen=True, slots=True)
class ScoreState:
    """What PreScore hands to Score.

    Attributes:
        constraints: the soft constraints.
        rules: the same with their counts; empty if no feasible node is in the contest.
        needs_all_keys: whether a node without one of the labels is ignored (its score is 0).
        feasible: the view that was counted for.
        ignored_feasible: which of its rows are ignored; None means none.
    """

    constraints: Sequence[Constraint]
    rules: Sequence[_SoftRule]
    needs_all_keys: bool
    feasible: NodesView
    ignored_feasible: BoolColumn | None

    def is_ignored(self, node: NodeView) -> bool:
        """Say whether the node is out of the contest."""
        return self.needs_all_keys and not has_all_keys(node.node, self.constraints)

    def ignored(self, nodes: NodesView) -> BoolColumn | None:
        """Return which nodes are out of the contest; None means none."""
        if nodes is self.feasible:
            return self.ignored_feasible
        if not self.needs_all_keys:
            return None
        return _lacking_a_key(nodes, self.constraints)

    def score(self, pod: Pod, node: NodeView) -> int:
        """Return the weighted number of pods in the node's domains."""
        if self.is_ignored(node):
            return 0
        total = 0.0
        for rule in self.rules:
            value = node.labels.get(rule.constraint.topology_key)
            if value is not None:
                total += rule.score(_count(rule, value, pod, node))
        return _round(total)

    def score_all(self, pod: Pod, nodes: NodesView) -> IntColumn:
        """Return the same for every row."""
        totals = np.zeros(len(nodes), np.float64)
        for rule in self.rules:
            totals += _scores(rule, pod, nodes)
        rounded = _round_all(totals)
        ignored = self.ignored(nodes)
        if ignored is not None:
            rounded[ignored] = 0
        return rounded


STATE: Final[StateKey[ScoreState]] = StateKey("PreScorePodTopologySpread")


def count_for_scores(
    pod: Pod, constraints: Sequence[Constraint], feasible: NodesView, nodes: NodesView, *, needs_all_keys: bool
) -> ScoreState:
    """Count the matching pods of every domain in which a feasible node is.

    Args:
        pod: to be scheduled.
        constraints: its soft constraints.
        feasible: the nodes to be scored.
        nodes: all nodes.
        needs_all_keys: whether a node without one of the labels is ignored.
    """
    ignored = _lacking_a_key(feasible, constraints) if needs_all_keys else None
    scored = feasible if ignored is None else feasible.take(np.flatnonzero(~ignored))
    rules: list[_SoftRule] = []
    if len(scored):
        inclusion = Inclusion(pod, nodes, constraints, need_all_keys=needs_all_keys)
        rules = [_soft_rule(pod, constraint, scored, nodes, inclusion) for constraint in constraints]
    return ScoreState(constraints, rules, needs_all_keys, feasible, ignored)


def normalize(scores: IntColumn, ignored: BoolColumn | None) -> IntColumn:
    """Bring scores to 0..100, fewest pods best; ignored nodes get 0."""
    counted = scores if ignored is None else scores[~ignored]
    highest = max(0, int(counted.max())) if len(counted) else 0
    if highest == 0:
        result = np.full(len(scores), MAX_NODE_SCORE, np.int64)
    else:
        result = (highest + int(counted.min()) - scores) * MAX_NODE_SCORE // highest
    if ignored is not None:
        result[ignored] = 0
    return result


def _soft_rule(
    pod: Pod, constraint: Constraint, scored: NodesView, nodes: NodesView, inclusion: Inclusion
) -> _SoftRule:
    column = nodes.label(constraint.topology_key)
    if constraint.topology_key == HOSTNAME:
        return _SoftRule(constraint, log(len(scored) + 2), None, column)
    num_domains = _num_domains(scored.label(constraint.topology_key))
    counts = _count_domains(pod, constraint, nodes, inclusion.rows(constraint))
    return _SoftRule(constraint, log(num_domains + 2), counts, column)


def _count_domains(pod: Pod, constraint: Constraint, nodes: NodesView, rows: BoolColumn | None) -> IntColumn:
    column = nodes.label(constraint.topology_key)
    if rows is None and column.is_complete:
        namespaces = frozenset((pod.metadata.namespace,))
        return nodes.matching_pods_by(
            constraint.topology_key, namespaces, constraint.counted_selector, include_terminating=False
        )
    codes, size = _codes_with_none(column)
    return count_by_code(codes, _matching(pod, constraint, nodes), rows, size)


def _codes_with_none(column: CodedColumn[str]) -> tuple[Int32Column, int]:
    """Return the codes with a place for nodes without the label, and the number of codes.

    parity: where such nodes are not ignored, they are one domain together with those whose value is empty.
    """
    size = len(column.values)
    if column.is_complete:
        return column.codes, size
    return np.where(column.codes < 0, np.int32(column.code_of.get("", size)), column.codes), size + 1


def _num_domains(column: CodedColumn[str]) -> int:
    if column.is_complete:
        return int(np.count_nonzero(column.present))
    codes, size = _codes_with_none(column)
    present = np.zeros(size, np.bool_)
    present[codes] = True
    return int(np.count_nonzero(present))


def _scores(rule: _SoftRule, pod: Pod, nodes: NodesView) -> FloatColumn:
    column = nodes.label(rule.constraint.topology_key)
    if rule.counts is None:
        scores = rule.scores(_matching(pod, rule.constraint, nodes))
        if not column.is_complete:
            scores[column.codes < 0] = 0.0
        return scores
    by_code = np.zeros(len(rule.column.values) + 1, np.float64)  # the last one is for nodes without the label
    by_code[:-1] = rule.scores(rule.counts[: len(rule.column.values)])
    return by_code.take(column.codes)


def _count(rule: _SoftRule, value: str, pod: Pod, node: NodeView) -> int:
    if rule.counts is None:
        # parity: on hostnames the node's own pods count, whatever the policies say of the node.
        return _count_on_node(rule.constraint, pod, node)
    code = rule.column.code_of.get(value)
    return int(rule.counts[code]) if code is not None else 0


def _count_on_node(constraint: Constraint, pod: Pod, node: NodeView) -> int:
    selector, namespace = constraint.counted_selector, pod.metadata.namespace
    return sum(
        other.metadata.namespace == namespace
        and not other.is_terminating
        and label_selector_matches(selector, other.metadata.labels)
        for other in node.pods
    )


def _matching(pod: Pod, constraint: Constraint, nodes: NodesView) -> IntColumn:
    namespaces = frozenset((pod.metadata.namespace,))
    return nodes.matching_pods(namespaces, constraint.counted_selector, include_terminating=False)


def _lacking_a_key(nodes: NodesView, constraints: Sequence[Constraint]) -> BoolColumn | None:
    lacking: BoolColumn | None = None
    for constraint in constraints:
        column = nodes.label(constraint.topology_key)
        if not column.is_complete:
            missing = column.codes < 0
            lacking = missing if lacking is None else lacking | missing
            if lacking.all():
                break
    return lacking


def _round(value: float) -> int:
    """Round half away from zero, as Go's ``math.Round``."""
    whole = math.trunc(value)
    return whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole


def _round_all(values: FloatColumn) -> IntColumn:
    whole: IntColumn = values.astype(np.int64)
    rest = values - whole
    whole += rest >= 0.5
    whole -= rest <= -0.5
    return whole
