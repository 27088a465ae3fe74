"""What a plugin sees of the cluster: one node at a time, or all of them as columns.

Everything here is read-only and describes the snapshot of the running cycle: assumed pods are included, nominated
pods are not. Rows of all columns of one view belong together: row ``i`` is ``nodes.names[i]``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.api.status import Status
from scheduler.model.meta import LabelSelector, NodeName
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.ports import HostPort
from scheduler.model.requests import Resources
from scheduler.model.taints import Taint

__all__ = [
    "BoolColumn",
    "CodedColumn",
    "FloatColumns",
    "ImageState",
    "Int32Column",
    "IntColumn",
    "NodeFacts",
    "NodeView",
    "NodesView",
    "ScoreColumn",
    "TermCounts",
    "Verdicts",
]

BoolColumn = NDArray[np.bool_]
IntColumn = NDArray[np.int64]
Int32Column = NDArray[np.int32]
FloatColumns = NDArray[np.float64]
"""Several columns of floats: two dimensions, one row a column."""
ScoreColumn = NDArray[np.signedinteger[Any]]
"""Scores: int64, or a narrower type, which is added up several times faster; int16 holds 0..100 with room to spare."""

V = TypeVar("V", bound=Hashable)


class ImageState(Protocol):
    """An image that some node has."""

    @property
    def size_bytes(self) -> int:
        """Return the size that the first node reported."""

    @property
    def num_nodes(self) -> int:
        """Return how many nodes have it."""


class NodeView(Protocol):
    """One node with the pods on it (assumed ones included)."""

    @property
    def name(self) -> NodeName:
        """Return the node's name."""

    @property
    def node(self) -> Node:
        """Return the node object."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the node's labels."""

    @property
    def pods(self) -> Sequence[Pod]:
        """Return the pods on the node, in no particular order."""

    @property
    def pods_with_affinity(self) -> Sequence[Pod]:
        """Return the pods on the node that have pod affinity or anti-affinity."""

    @property
    def pods_with_required_anti_affinity(self) -> Sequence[Pod]:
        """Return the pods on the node that repel others."""

    @property
    def num_pods(self) -> int:
        """Return the number of pods on the node."""

    @property
    def allocatable(self) -> Resources:
        """Return what the node offers (CPU in milli-cores, else whole units; "pods" is the pod limit)."""

    @property
    def requested(self) -> Resources:
        """Return the sum of the pods' requests, same units."""

    @property
    def non_zero_requested(self) -> Resources:
        """Return ``cpu`` and ``memory`` requested with defaults for containers that state none."""

    @property
    def used_ports(self) -> Mapping[HostPort, int]:
        """Return the host ports in use and by how many pods."""

    @property
    def images(self) -> Mapping[str, ImageState]:
        """Return the images on the node by every name they have."""

    @property
    def pvc_ref_counts(self) -> Mapping[str, int]:
        """Return ``namespace/claim`` -> number of pods on the node that use it."""

    @property
    def generation(self) -> int:
        """Return a number that grows with every change of the node or its pods."""


class NodeFacts:
    """What a plugin makes of each node alone, as columns that are kept from one decision to the next.

    Make one when the plugin is made, and hand it to ``NodesView.facts`` in each decision.

    Attributes:
        width: how many numbers there are of each node.
        of_node: works them out; None for a node of which the plugin cannot say them. It may read anything of the node
            and its pods, and nothing else.
    """

    __slots__ = ("of_node", "width")

    def __init__(self, width: int, of_node: Callable[[NodeView], Sequence[float] | None]) -> None:
        self.width = width
        self.of_node = of_node


class CodedColumn(Generic[V]):
    """A column of few distinct values as integer codes: row ``i`` has ``values[codes[i]]``; code -1 means none.

    A rule is evaluated once a distinct value and spread over the rows by indexing, so matching 65,000 nodes against a
    selector costs as many Python steps as there are distinct values. ``values`` may hold values that no row has now.
    """

    __slots__ = ("_is_complete", "_present", "code_of", "codes", "values")

    def __init__(self, codes: Int32Column, values: Sequence[V], code_of: Mapping[V, int]) -> None:
        self.codes = codes
        self.values = values
        self.code_of = code_of
        self._is_complete: bool | None = None
        self._present: BoolColumn | None = None

    @property
    def is_complete(self) -> bool:
        """Say whether every row has a value; worked out once."""
        if self._is_complete is None:
            self._is_complete = bool((self.codes >= 0).all())
        return self._is_complete

    @property
    def present(self) -> BoolColumn:
        """Return by code whether any row has it; worked out once, must not be written to."""
        if self._present is None:
            self._present = np.bincount(self.codes + np.int32(1), minlength=len(self.values) + 1)[1:] > 0
        return self._present

    def test(self, predicate: Callable[[V], bool], *, missing: bool) -> BoolColumn:
        """Return ``predicate(value)`` for each row, ``missing`` for rows without a value; O(distinct values) calls."""
        answers = [bool(predicate(v)) for v in self.values]
        if answers.count(missing) == len(answers):  # every row gets the same, which is the usual case for many rules
            return np.full(len(self.codes), missing, np.bool_)
        # The entry for code -1 stands last, where numpy's negative index finds it.
        return np.array([*answers, missing], np.bool_)[self.codes]

    def isin(self, wanted: Iterable[V], *, missing: bool = False) -> BoolColumn:
        """Return for each row whether its value is one of ``wanted``; O(len(wanted)) look-ups."""
        lut = np.zeros(len(self.values) + 1, np.bool_)
        for value in wanted:
            code = self.code_of.get(value)
            if code is not None:
                lut[code] = True
        lut[-1] = missing
        return lut[self.codes]

    def map(self, function: Callable[[V], int], *, missing: int) -> IntColumn:
        """Return ``function(value)`` for each row, ``missing`` for rows without a value."""
        answers = [function(v) for v in self.values]
        if answers.count(missing) == len(answers):
            return np.full(len(self.codes), missing, np.int64)
        return np.array([*answers, missing], np.int64)[self.codes]


class TermCounts(Protocol):
    """What pod affinity terms that pods on nodes carry add up to, by value of one topology key; good for one cycle."""

    @property
    def topology_key(self) -> str:
        """Return the node label."""

    @property
    def is_required(self) -> bool:
        """Say whether these are required terms, which are counted, or preferences, whose weights are added."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the sum for each value that a carrier's node has; never empty."""

    def add_to(self, sums: IntColumn, column: CodedColumn[str], factor: int = 1) -> None:
        """Add ``factor`` times the counts to ``sums``: an entry for each code of ``column`` and one at the end."""


class NodesView(Protocol):
    """All nodes (or some of them) as columns; every array has ``len(view)`` rows and must not be written to."""

    def __len__(self) -> int: ...

    @property
    def names(self) -> Sequence[NodeName]:
        """Return the node names in row order."""

    @property
    def infos(self) -> Sequence[NodeView]:
        """Return the per-node views in row order."""

    def row(self, name: str) -> int | None:
        """Return the row of the node, or None if it is not in this view."""

    def take(self, rows: NDArray[np.intp]) -> NodesView:
        """Return a view of these rows, in this order; columns are gathered when they are first asked for."""

    def allocatable(self, resource: str) -> IntColumn:
        """Return what each node offers of the resource; 0 where it has none."""

    def requested(self, resource: str) -> IntColumn:
        """Return the sum of the requests on each node."""

    def non_zero_requested(self, resource: str) -> IntColumn:
        """Return ``requested`` with container defaults for cpu and memory; equal to ``requested`` for others."""

    @property
    def num_pods(self) -> IntColumn:
        """Return the number of pods on each node."""

    @property
    def lowest_priority(self) -> IntColumn:
        """Return the lowest priority of the pods on each node; higher than any priority where there are none."""

    @property
    def unschedulable(self) -> BoolColumn:
        """Return which nodes are cordoned."""

    def label(self, key: str) -> CodedColumn[str]:
        """Return the values of a label; code -1 where a node lacks it."""

    @property
    def taints(self) -> CodedColumn[tuple[Taint, ...]]:
        """Return each node's taints as one value; nodes with equal taints share a code (never -1)."""

    def facts(self, definition: NodeFacts) -> FloatColumns | None:
        """Return the definition's numbers, one column each; None if it does not hold for some node of the snapshot.

        Asking again costs as much as nodes have changed since.
        """

    def rows_using_host_ports(self) -> Sequence[int]:
        """Return the rows of the nodes on which any host port is in use."""

    @property
    def rows_with_required_anti_affinity(self) -> Sequence[int]:
        """Return the rows of the nodes with a pod that repels others."""

    def image(self, name: str) -> tuple[NDArray[np.intp], ImageState] | None:
        """Return the rows of the nodes in this view that have the image, and the image; None if no node has it."""

    def matching_pods(
        self, namespaces: frozenset[str] | None, selector: LabelSelector | None, *, include_terminating: bool
    ) -> IntColumn:
        """Return how many pods on each node are in one of the namespaces (None: any) and match the selector.

        A missing selector matches no pod, an empty one every pod. Asking the same again costs as much as pods came and
        went since.
        """

    def matching_pods_by(
        self, key: str, namespaces: frozenset[str] | None, selector: LabelSelector | None, *, include_terminating: bool
    ) -> IntColumn:
        """Return ``matching_pods`` added up by code of the label ``key``; one more entry at the end, a 0.

        Nodes without the label are left out. On all nodes, asking the same again costs as much as pods came and went
        since.
        """

    @property
    def used_claims(self) -> Collection[str]:
        """Return ``namespace/name`` of every persistent volume claim that a pod in the whole snapshot uses."""

    def repelling_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[TermCounts]:
        """Return the required anti-affinity terms, carried on any node of the snapshot, that select ``pod``.

        There is one entry a topology key. ``namespace_labels`` are those of the pod's namespace. Carriers on nodes that
        lack the topology key are left out. Asking again costs as much as carriers came and went since.
        """

    def preferring_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[TermCounts]:
        """Return the required affinity terms and the preferences that select ``pod``, as ``repelling_terms`` does.

        Preferences for anti-affinity count with a negative weight.
        """

    @property
    def num_all_nodes(self) -> int:
        """Return the number of nodes in the whole snapshot, which a narrowed view does not change."""


class Verdicts:
    """The whole-cluster answer of a Filter plugin: which rows pass, and on demand why the others do not.

    Reasons are asked for only when a pod fits nowhere (or someone asks to see them), so the common case costs one
    boolean array.

    Attributes:
        ok: bool, one row a node: True where the node passes.
        errors: the rows that could not be judged, whose status is an Error; None if there are none. If such a row is
            still in the running, the whole attempt fails, as it does when the per-node form answers with an Error.
    """

    __slots__ = ("_explain", "errors", "ok")

    def __init__(
        self,
        ok: BoolColumn,
        explain: Callable[[NDArray[np.intp]], Iterable[tuple[Status, NDArray[np.intp]]]],
        *,
        errors: BoolColumn | None = None,
    ) -> None:
        """Make a verdict.

        Args:
            ok: which rows pass.
            explain: gets rows that failed; returns their statuses, rows with an equal status together. Each given row
                must appear exactly once.
            errors: which of the rows that failed have an Error as status.
        """
        self.ok = ok
        self.errors = errors
        self._explain = explain

    @classmethod
    def all_equal(cls, ok: BoolColumn, status: Status) -> Verdicts:
        """Make a verdict in which every failing row has the same status."""
        return cls(ok, lambda rows: [(status, rows)])

    def explain(self, rows: NDArray[np.intp]) -> Iterable[tuple[Status, NDArray[np.intp]]]:
        """Return the statuses of ``rows`` (all failing), grouped."""
        return self._explain(rows) if len(rows) else []
