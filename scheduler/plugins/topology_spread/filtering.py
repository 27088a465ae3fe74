"""Filtering: no domain may have more than ``maxSkew`` pods above the emptiest one.

PreFilter counts once over all nodes; Filter compares. A dry run (nominated pods, preemption) works on a clone in which
single pods are added and removed: the counts stay shared and the clone notes the domains that differ.

Source: ``podtopologyspread/filtering.go``. Upstream keeps two "critical paths" to follow the minimum, which is exact as
long as one node is tried out in a clone; here the minimum is exact always.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, CodedColumn, IntColumn, Node, NodesView, Pod, StateKey, Status, Verdicts
from scheduler.plugins.topology_spread.constraints import Constraint, has_all_keys
from scheduler.plugins.topology_spread.domains import NO_DOMAINS, Domains
from scheduler.plugins.topology_spread.inclusion import Inclusion, includes

__all__ = ["REASON_CONSTRAINTS", "REASON_MISSING_LABEL", "STATE", "FilterState", "count_domains"]

REASON_CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON_CONSTRAINTS} (missing required label)"

_SKEWED = Status.unschedulable(REASON_CONSTRAINTS)
_MISSING = Status.unresolvable(REASON_MISSING_LABEL)


class _Rule:
    """One hard constraint with its counts, as they are in the cluster and as a dry run has changed them.

    Attributes:
        constraint: the rule.
        changed: value -> count, of domains that a dry run has changed.
    """

    __slots__ = ("_domains", "_minimum", "_self_match", "changed", "constraint")

    def __init__(self, constraint: Constraint, domains: Domains, self_match: int) -> None:
        self.constraint = constraint
        self.changed: dict[str, int] = {}
        self._domains = domains
        self._self_match = self_match
        self._minimum: int | None = None

    def clone(self) -> _Rule:
        copy = _Rule(self.constraint, self._domains, self._self_match)
        copy.changed = self.changed.copy()
        copy._minimum = self._minimum
        return copy

    def change(self, value: str, delta: int) -> None:
        """Count a pod of the domain in or out."""
        self.changed[value] = self._count(value) + delta
        self._minimum = None

    def is_skewed(self, value: str) -> bool:
        """Say whether one more pod in the domain would be too many."""
        return self._count(value) > self._limit

    def has_room(self, column: CodedColumn[str]) -> BoolColumn:
        """Return by code of the label whether the domain has room for the pod; nodes without it find the last entry."""
        has_room = np.zeros(len(column.values) + 1, np.bool_)
        np.less_equal(self._counts(column), self._limit, out=has_room[:-1])
        return has_room

    @property
    def _limit(self) -> int:
        """Return the highest count that leaves room for the pod."""
        if self._minimum is None:
            self._minimum = self._find_minimum()
        return self.constraint.max_skew + self._minimum - self._self_match

    def _find_minimum(self) -> int:
        domains, changed = self._domains, self.changed
        codes = [code for value in changed if (code := domains.code(value)) is not None]
        if domains.number + len(changed) - len(codes) < self.constraint.min_domains:
            return 0
        if not changed:
            return domains.minimum
        return min(*changed.values(), domains.minimum_without(np.array(codes, np.intp)))

    def _count(self, value: str) -> int:
        count = self.changed.get(value)
        if count is not None:
            return count
        code = self._domains.code(value)
        return int(self._domains.counts[code]) if code is not None else 0

    def _counts(self, column: CodedColumn[str]) -> IntColumn:
        counts, size = self._domains.counts, len(column.values)
        if len(counts) != size:  # nothing was counted
            counts = np.zeros(size, np.int64)
        if not self.changed:
            return counts
        counts = counts.copy()
        for value, count in self.changed.items():
            if value in column.code_of:
                counts[column.code_of[value]] = count
        return counts


class FilterState:
    """What PreFilter hands to Filter; ``clone`` makes it fit for dry runs."""

    __slots__ = ("_constraints", "_rules")

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = rules
        self._constraints = tuple(rule.constraint for rule in rules)

    def clone(self) -> FilterState:
        """Return an independent copy; the counts of the cluster are shared."""
        return FilterState([rule.clone() for rule in self._rules])

    def change(self, pod: Pod, other: Pod, node: Node, delta: int) -> None:
        """Count ``other``, which comes to the node or leaves it, in or out."""
        # parity: whether ``other`` is terminating plays no part here, although it does in the first count.
        if other.metadata.namespace != pod.metadata.namespace or not has_all_keys(node, self._constraints):
            return
        for rule in self._rules:
            if rule.constraint.matches(other.labels) and includes(rule.constraint, pod, node):
                rule.change(node.metadata.labels[rule.constraint.topology_key], delta)

    def filter(self, node: Node) -> Status | None:
        """Judge one node; the first constraint that objects is the one that is named."""
        labels = node.metadata.labels
        for rule in self._rules:
            value = labels.get(rule.constraint.topology_key)
            if value is None:
                return _MISSING
            if rule.is_skewed(value):
                return _SKEWED
        return None

    def filter_all(self, nodes: NodesView) -> Verdicts:
        """Judge all nodes."""
        ok: BoolColumn | None = None
        for rule in self._rules:
            column = nodes.label(rule.constraint.topology_key)
            has_room = rule.has_room(column)
            if column.is_complete and has_room[:-1].all():
                continue
            of_rule = has_room.take(column.codes)
            ok = of_rule if ok is None else ok & of_rule
            if not ok.any():
                break
        if ok is None:
            ok = np.ones(len(nodes), np.bool_)
        return Verdicts(ok, lambda rows: self._explain(nodes, rows))

    def _explain(self, nodes: NodesView, rows: NDArray[np.intp]) -> list[tuple[Status, NDArray[np.intp]]]:
        """Group the failing rows by the first constraint's objection."""
        undecided = np.ones(len(rows), np.bool_)
        is_missing = np.zeros(len(rows), np.bool_)
        for rule in self._rules:
            column = nodes.label(rule.constraint.topology_key)
            codes = column.codes[rows]
            is_missing |= undecided & (codes < 0)
            undecided &= rule.has_room(column).take(codes)
            if not undecided.any():
                break
        groups = ((_MISSING, rows[is_missing]), (_SKEWED, rows[~is_missing]))
        return [(status, members) for status, members in groups if len(members)]


STATE: Final[StateKey[FilterState]] = StateKey("PreFilterPodTopologySpread")


def count_domains(pod: Pod, constraints: Sequence[Constraint], nodes: NodesView) -> FilterState:
    """Count the matching pods of every domain of every constraint."""
    inclusion = Inclusion(pod, nodes, constraints, need_all_keys=True)
    labels = pod.metadata.labels
    return FilterState([_Rule(c, _domains(pod, c, nodes, inclusion), int(c.matches(labels))) for c in constraints])


def _domains(pod: Pod, constraint: Constraint, nodes: NodesView, inclusion: Inclusion) -> Domains:
    if inclusion.is_empty:
        return NO_DOMAINS
    key, namespaces = constraint.topology_key, frozenset((pod.metadata.namespace,))
    column, rows, selector = nodes.label(key), inclusion.rows(constraint), constraint.counted_selector
    if rows is None:
        sums = nodes.matching_pods_by(key, namespaces, selector, include_terminating=False)
        return Domains(column, sums[:-1], column.present)
    return Domains.of_rows(column, nodes.matching_pods(namespaces, selector, include_terminating=False), rows)
