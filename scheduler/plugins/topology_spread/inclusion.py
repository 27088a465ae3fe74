"""Inclusion: which nodes take part in the counting (``nodeAffinityPolicy``, ``nodeTaintsPolicy``).

Both forms, for one node and for all. Source: ``matchNodeInclusionPolicies`` in ``podtopologyspread/common.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.api import BoolColumn, Node, NodesView, Pod, Taint
from scheduler.model.selectors import required_node_affinity_matches
from scheduler.model.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from scheduler.plugins.shared.node_labels import match_required
from scheduler.plugins.topology_spread.constraints import Constraint

__all__ = ["Inclusion", "includes"]

_HARD = frozenset({NO_SCHEDULE, NO_EXECUTE})


def includes(constraint: Constraint, pod: Pod, node: Node) -> bool:
    """Say whether the node counts for the pod's constraint."""
    if constraint.honors_affinity and not required_node_affinity_matches(pod, node):
        return False
    return not constraint.honors_taints or _is_tolerated(pod, node.spec.taints)


class Inclusion:
    """The nodes that count, for all constraints of a pod; what they share is worked out once.

    Attributes:
        is_empty: whether no node has all the topology keys that are needed.
    """

    __slots__ = ("_affine", "_base", "_nodes", "_pod", "_tolerated", "is_empty")

    def __init__(self, pod: Pod, nodes: NodesView, constraints: Sequence[Constraint], *, need_all_keys: bool) -> None:
        """Look at all nodes.

        Args:
            pod: to be scheduled.
            nodes: all nodes.
            constraints: of the pod.
            need_all_keys: whether a node without one of the topology keys counts for none.
        """
        self._pod = pod
        self._nodes = nodes
        self._base = _with_keys(nodes, constraints) if need_all_keys else None
        self.is_empty = self._base is not None and not self._base.any()
        self._affine: BoolColumn | None = None
        self._tolerated: BoolColumn | None = None

    def rows(self, constraint: Constraint) -> BoolColumn | None:
        """Return which rows count for the constraint; None means all."""
        return _both(_both(self._base, self._affinity(constraint)), self._taints(constraint))

    def _affinity(self, constraint: Constraint) -> BoolColumn | None:
        if not constraint.honors_affinity or not _restricts_nodes(self._pod):
            return None
        if self._affine is None:
            self._affine = match_required(self._pod, self._nodes)
        return self._affine

    def _taints(self, constraint: Constraint) -> BoolColumn | None:
        if not constraint.honors_taints:
            return None
        if self._tolerated is None:
            self._tolerated = self._nodes.taints.test(lambda taints: _is_tolerated(self._pod, taints), missing=True)
        return self._tolerated


def _with_keys(nodes: NodesView, constraints: Iterable[Constraint]) -> BoolColumn | None:
    """Return which nodes have every topology key; None means all.

    A pod may name thousands of keys that no node has: the first of them ends the search.
    """
    found: BoolColumn | None = None
    for constraint in constraints:
        column = nodes.label(constraint.topology_key)
        if not column.is_complete:
            has_key = column.codes >= 0
            found = has_key if found is None else found & has_key
            if not found.any():
                break
    return found


def _both(first: BoolColumn | None, second: BoolColumn | None) -> BoolColumn | None:
    if first is None or second is None:
        return first if second is None else second
    return first & second


def _is_tolerated(pod: Pod, taints: Sequence[Taint]) -> bool:
    return not taints or find_untolerated(taints, pod.spec.tolerations, _HARD) is None


def _restricts_nodes(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    return bool(pod.spec.node_selector) or required is not None
