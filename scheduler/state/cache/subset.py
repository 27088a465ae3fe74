"""NodesSubset: some rows of a snapshot, as if they were all.

A cycle narrows the nodes step by step (PreFilter's answer, the rows that passed the filters). Nothing is copied until
it is asked for: a column is gathered at its first use and kept with the view. A view of a view looks at the snapshot
directly. A view lives within one cycle; it does not follow later updates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.api.views import BoolColumn, CodedColumn, FloatColumns, IntColumn, NodeFacts, TermCounts
from scheduler.model.meta import LabelSelector, NodeName
from scheduler.model.pod import Pod
from scheduler.model.taints import Taint
from scheduler.state.cache.images import ImageSummary
from scheduler.state.cache.node_info import NodeInfo
from scheduler.state.index.by_code import sum_by_code

if TYPE_CHECKING:
    from scheduler.state.cache.snapshot import Snapshot

__all__ = ["NodesSubset"]

T = TypeVar("T")
S = TypeVar("S", bound=np.generic)
V = TypeVar("V", bound=Hashable)


class NodesSubset:
    """Rows of a snapshot in a given order; implements ``scheduler.api.NodesView``."""

    __slots__ = ("_memo", "_root", "_rows")

    def __init__(self, root: Snapshot, rows: NDArray[np.intp]) -> None:
        self._root = root
        self._rows = np.asarray(rows, np.intp)
        self._memo: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def num_all_nodes(self) -> int:
        """Return the number of nodes in the whole snapshot."""
        return self._root.num_all_nodes

    @property
    def used_claims(self) -> Collection[str]:
        """Return the claims that pods in the whole snapshot use."""
        return self._root.used_claims

    @property
    def names(self) -> Sequence[NodeName]:
        """Return the node names in row order."""
        return self._once("names", lambda: _pick(self._root.names, self._rows))

    @property
    def infos(self) -> Sequence[NodeInfo]:
        """Return the nodes in row order."""
        return self._once("infos", lambda: _pick(self._root.infos, self._rows))

    def row(self, name: str) -> int | None:
        """Return the row of the node in this view, or None if it is not in it."""
        root_row = self._root.row(name)
        if root_row is None:
            return None
        row = int(self._positions[root_row])
        return row if row >= 0 else None

    def take(self, rows: NDArray[np.intp]) -> NodesSubset:
        """Return a view of these rows of this view."""
        return NodesSubset(self._root, self._rows[rows])

    def allocatable(self, resource: str) -> IntColumn:
        """Return what each node offers of the resource."""
        return self._once(("allocatable", resource), lambda: self._gather(self._root.allocatable(resource)))

    def requested(self, resource: str) -> IntColumn:
        """Return the sum of the requests on each node."""
        return self._once(("requested", resource), lambda: self._gather(self._root.requested(resource)))

    def non_zero_requested(self, resource: str) -> IntColumn:
        """Return ``requested`` with container defaults."""
        return self._once(("non_zero", resource), lambda: self._gather(self._root.non_zero_requested(resource)))

    @property
    def num_pods(self) -> IntColumn:
        """Return the number of pods on each node."""
        return self._once("num_pods", lambda: self._gather(self._root.num_pods))

    @property
    def lowest_priority(self) -> IntColumn:
        """Return the lowest priority of the pods on each node; higher than any where there are none."""
        return self._once("lowest_priority", lambda: self._gather(self._root.lowest_priority))

    @property
    def unschedulable(self) -> BoolColumn:
        """Return which nodes are cordoned."""
        return self._once("unschedulable", lambda: self._gather(self._root.unschedulable))

    def label(self, key: str) -> CodedColumn[str]:
        """Return the values of a label."""
        return self._once(("label", key), lambda: self._gather_coded(self._root.label(key)))

    @property
    def taints(self) -> CodedColumn[tuple[Taint, ...]]:
        """Return each node's taints as one value."""
        return self._once("taints", lambda: self._gather_coded(self._root.taints))

    def facts(self, definition: NodeFacts) -> FloatColumns | None:
        """Return the definition's numbers of these nodes; None if it does not hold for some node of the snapshot."""
        columns = self._root.facts(definition)
        return None if columns is None else self._once(("facts", definition), lambda: columns[:, self._rows])

    def rows_using_host_ports(self) -> Sequence[int]:
        """Return the rows of this view on which any host port is in use."""
        return self._once("host_ports", lambda: self._here(self._root.rows_using_host_ports()).tolist())

    @property
    def rows_with_required_anti_affinity(self) -> Sequence[int]:
        """Return the rows of this view on which a pod repels others."""
        return self._once("anti_affinity", lambda: self._here(self._root.rows_with_required_anti_affinity).tolist())

    def image(self, name: str) -> tuple[NDArray[np.intp], ImageSummary] | None:
        """Return the rows of this view that have the image (maybe none), and the image; None if no node has it."""
        found = self._root.image(name)
        if found is None:
            return None
        rows, state = found
        return self._once(("image", name), lambda: self._here(rows)), state

    def matching_pods(
        self, namespaces: frozenset[str] | None, selector: LabelSelector | None, *, include_terminating: bool
    ) -> IntColumn:
        """Return how many pods of these namespaces (None: of all) the selector matches on each node."""
        return self._gather(self._root.matching_pods(namespaces, selector, include_terminating=include_terminating))

    def matching_pods_by(
        self, key: str, namespaces: frozenset[str] | None, selector: LabelSelector | None, *, include_terminating: bool
    ) -> IntColumn:
        """Return the same added up by code of a label, and a 0 at the end; nodes without the label are left out."""
        pods = self.matching_pods(namespaces, selector, include_terminating=include_terminating)
        return sum_by_code(self.label(key), pods)

    def repelling_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[TermCounts]:
        """Return the required anti-affinity terms of pods on any node of the snapshot that select ``pod``."""
        return self._root.repelling_terms(pod, namespace_labels)

    def preferring_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[TermCounts]:
        """Return the required affinity terms and preferences of pods on any node that select ``pod``."""
        return self._root.preferring_terms(pod, namespace_labels)

    @property
    def _positions(self) -> NDArray[np.intp]:
        """Snapshot row -> row of this view, or -1."""
        return self._once("positions", self._invert)

    def _invert(self) -> NDArray[np.intp]:
        positions = np.full(len(self._root), -1, np.intp)
        positions[self._rows] = np.arange(len(self._rows), dtype=np.intp)
        return positions

    def _here(self, root_rows: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
        positions = self._positions[np.asarray(root_rows, np.intp)]
        return positions[positions >= 0]

    def _gather(self, column: NDArray[S]) -> NDArray[S]:
        gathered = column[self._rows]
        gathered.flags.writeable = False
        return gathered

    def _gather_coded(self, column: CodedColumn[V]) -> CodedColumn[V]:
        return CodedColumn(self._gather(column.codes), column.values, column.code_of)

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        memo = self._memo
        found: T | None = memo.get(key)
        if found is None:
            found = memo[key] = make()
        return found


def _pick(values: Sequence[T], rows: NDArray[np.intp]) -> list[T]:
    return [values[row] for row in rows.tolist()]
