"""Snapshot: the cluster as one scheduling cycle sees it, as columns.

Row ``i`` of every column is the ``i``-th node of the zone-interleaved order. The cache brings a snapshot up to date at
the start of a cycle by rewriting the rows of nodes that changed since; when nodes came or went, the order is read anew
and the columns are permuted.

The snapshot *shares* its ``NodeInfo`` objects with the cache instead of copying them. That is sound because the core
is single-threaded and no event is applied during a cycle. The only change that a cycle can see is its own
``assume_pod``, after the decision: ``infos`` show it at once, columns after the next update (differs: upstream's
snapshot shows it in neither). Whoever wants to change a node hypothetically works on ``NodeInfo.clone()``. Readers
outside of a cycle (explain, the comparer) update the snapshot first.

One snapshot follows one cache. Arrays, names and lists handed out are valid until the next update.

Invariant (tested): after any history the columns equal those of a snapshot made from scratch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from scheduler.api.views import BoolColumn, CodedColumn, FloatColumns, IntColumn, NodeFacts, TermCounts
from scheduler.model.meta import LabelSelector, NodeName, ObjectMeta
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.requests import CPU, MEMORY
from scheduler.model.taints import Taint
from scheduler.state.cache.claims import ClaimUse
from scheduler.state.cache.columns import CodedStore, LabelColumns, ResourceColumns
from scheduler.state.cache.facts import FactStores
from scheduler.state.cache.generation import next_generation
from scheduler.state.cache.images import ImageStates, ImageSummary
from scheduler.state.cache.node_info import NO_PODS_PRIORITY, NodeInfo
from scheduler.state.cache.rows import ChangeLog, Reorder, RowSet, read_only
from scheduler.state.cache.shared import Shared
from scheduler.state.cache.subset import NodesSubset
from scheduler.state.index.matching import MatchingPods
from scheduler.state.index.terms import TermIndex

__all__ = ["Snapshot"]

_UNWRITTEN = Node(ObjectMeta())
_MAX_IMAGES = 512


class Snapshot:
    """All nodes; implements ``scheduler.api.NodesView``.

    Attributes:
        generation: every change up to this generation is in the columns.
        order_version: the version of the node order that the rows have; the cache's business.
        names: node names in row order.
        infos: the nodes in row order.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything; the next update builds the snapshot from scratch."""
        self.generation = 0
        self.order_version = -1
        self.names: list[NodeName] = []
        self.infos: list[NodeInfo] = []
        self._row_of: dict[str, int] = {}
        # The node objects that the rows were written from; a node may change or go before the next update.
        self._nodes: list[Node] = []
        self._order_generation = 0
        self._log = ChangeLog()
        self._renewals = ChangeLog()
        self._facts = FactStores()
        self._allocatable = ResourceColumns[Node](attrgetter("allocatable"))
        self._requested = ResourceColumns[NodeInfo](attrgetter("requested"))
        self._non_zero = ResourceColumns[NodeInfo](attrgetter("non_zero_requested"))
        self._labels = LabelColumns()
        self._taints: CodedStore[tuple[Taint, ...]] = CodedStore(())
        self._with_host_ports = RowSet()
        self._with_affinity = RowSet()
        self._with_anti_affinity = RowSet()
        self._claims = ClaimUse()
        self._images = ImageStates()
        self._image_rows: dict[str, tuple[int, NDArray[np.intp]]] = {}
        self._matching = MatchingPods()
        self._terms = TermIndex()
        self._slots = np.zeros(0, np.intp)
        nothing = np.zeros(0, np.int64)
        self._set_plain_columns(nothing, nothing, np.zeros(0, np.bool_), nothing)

    # --- NodesView ---

    def __len__(self) -> int:
        return len(self.names)

    @property
    def num_all_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.names)

    def row(self, name: str) -> int | None:
        """Return the row of the node, or None if there is no such node."""
        return self._row_of.get(name)

    def get(self, name: str) -> NodeInfo | None:
        """Return the node, or None if there is no such node."""
        row = self._row_of.get(name)
        return None if row is None else self.infos[row]

    def take(self, rows: NDArray[np.intp]) -> NodesSubset:
        """Return a view of these rows, in this order."""
        return NodesSubset(self, rows)

    def allocatable(self, resource: str) -> IntColumn:
        """Return what each node offers of the resource; 0 where it has none."""
        return self._allocatable.column(resource, self._nodes, self._row_of)

    def requested(self, resource: str) -> IntColumn:
        """Return the sum of the requests on each node, at most the largest int64."""
        return self._requested.column(resource, self.infos, self._row_of)

    def non_zero_requested(self, resource: str) -> IntColumn:
        """Return ``requested`` with container defaults for cpu and memory; equal to ``requested`` for others."""
        if resource in (CPU, MEMORY):
            return self._non_zero.column(resource, self.infos, self._row_of)
        return self.requested(resource)

    @property
    def num_pods(self) -> IntColumn:
        """Return the number of pods on each node."""
        return self._num_pods_view

    @property
    def lowest_priority(self) -> IntColumn:
        """Return the lowest priority of the pods on each node; higher than any where there are none."""
        return self._lowest_priority_view

    @property
    def unschedulable(self) -> BoolColumn:
        """Return which nodes are cordoned."""
        return self._unschedulable_view

    def label(self, key: str) -> CodedColumn[str]:
        """Return the values of a label; code -1 where a node lacks it."""
        return self._labels.column(key, self._nodes)

    @property
    def taints(self) -> CodedColumn[tuple[Taint, ...]]:
        """Return each node's taints as one value, in the order of the node object."""
        return self._taints.column

    def facts(self, definition: NodeFacts) -> FloatColumns | None:
        """Return the definition's numbers of all nodes; None if it does not hold for one of them."""
        return self._facts.columns(definition, self.infos)

    def rows_using_host_ports(self) -> Sequence[int]:
        """Return the rows of the nodes on which any host port is in use, ascending."""
        return self._with_host_ports.rows()

    def image(self, name: str) -> tuple[NDArray[np.intp], ImageSummary] | None:
        """Return the rows (ascending) of the nodes that have the image, and the image; None if no node has it."""
        state = self._images.get(name)
        if state is None:
            return None
        known = self._image_rows.get(name)
        if known is None or known[0] != state.generation:
            rows = sorted(row for row in map(self._row_of.get, state.nodes) if row is not None)
            if len(self._image_rows) >= _MAX_IMAGES:
                self._image_rows.clear()
            known = self._image_rows[name] = (state.generation, np.array(rows, np.intp))
        return known[1], state

    def matching_pods(
        self, namespaces: frozenset[str] | None, selector: LabelSelector | None, *, include_terminating: bool
    ) -> IntColumn:
        """Return how many pods of these namespaces (None: of all) the selector matches on each node.

        Like ``infos``, this shows the cycle's own ``assume_pod`` at once.
        """
        return self._matching.counts(self._slots, namespaces, selector, include_terminating=include_terminating)

    def matching_pods_by(
        self, key: str, namespaces: frozenset[str] | None, selector: LabelSelector | None, *, include_terminating: bool
    ) -> IntColumn:
        """Return the same added up by code of a label, and a 0 at the end; nodes without the label are left out."""
        return self._matching.counts_by(
            key, self.label(key), self._slots, namespaces, selector, include_terminating=include_terminating
        )

    def repelling_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[TermCounts]:
        """Return the required anti-affinity terms of pods on nodes that select ``pod``."""
        return self._terms.repelling.selecting(pod, namespace_labels)

    def preferring_terms(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Sequence[TermCounts]:
        """Return the required affinity terms and preferences of pods on nodes that select ``pod``."""
        return self._terms.preferring.selecting(pod, namespace_labels)

    # --- beyond NodesView ---

    @property
    def generations(self) -> IntColumn:
        """Return each node's generation as of the last update."""
        return self._generations_view

    @property
    def images_generation(self) -> int:
        """Return a number that grows whenever any image's size or number of nodes changes."""
        return self._images.generation

    @property
    def rows_with_affinity(self) -> Sequence[int]:
        """Return the rows of the nodes with a pod that has pod affinity or anti-affinity, ascending."""
        return self._with_affinity.rows()

    @property
    def rows_with_required_anti_affinity(self) -> Sequence[int]:
        """Return the rows of the nodes with a pod that repels others, ascending."""
        return self._with_anti_affinity.rows()

    @property
    def used_claims(self) -> Collection[str]:
        """Return ``namespace/name`` of every persistent volume claim that a pod on some node uses."""
        return self._claims.used()

    def changes_since(self, generation: int) -> list[int] | None:
        """Return the rows that changed after ``generation``, an earlier ``snapshot.generation``; in no given order.

        None means that rows are not comparable any more: the order was read anew since, start from scratch.
        """
        if generation < self._order_generation:
            return None
        rows = self._log.since(generation)
        if rows is None:
            found: list[int] = np.flatnonzero(self._generations > generation).tolist()
            return found
        return rows

    def renewals_since(self, generation: int) -> list[int] | None:
        """Return the rows whose node object was replaced after ``generation``; None if that is not known any more.

        The other rows of ``changes_since`` differ in their pods alone.
        """
        return None if generation < self._order_generation else self._renewals.since(generation)

    # --- written by the cache alone ---

    def reorder(self, version: int, names: list[NodeName], infos: list[NodeInfo], shared: Shared) -> None:
        """Give the rows a new order; rows of nodes that were not here before are to be rewritten."""
        sources = np.fromiter(map(self._row_of.get, names, repeat(-1)), np.intp, len(names))
        change = Reorder(sources, len(self.names))
        self.order_version = version
        self.names, self.infos = names, infos
        self._images, self._matching, self._terms = shared.images, shared.matching, shared.terms
        self._slots = self._matching.slots(names)
        self._row_of = {name: row for row, name in enumerate(names)}
        self._nodes = change.move_list(self._nodes, _UNWRITTEN)
        self._allocatable.reorder(change, self._row_of)
        self._requested.reorder(change, self._row_of)
        self._non_zero.reorder(change, self._row_of)
        self._labels.reorder(change)
        self._taints.reorder(change)
        for rows in (self._with_host_ports, self._with_affinity, self._with_anti_affinity):
            rows.reorder(change)
        self._claims.reorder(change)
        self._facts.reorder(change)
        self._image_rows.clear()
        self._set_plain_columns(
            change.move(self._num_pods),
            change.move(self._lowest_priority, NO_PODS_PRIORITY),
            change.move(self._unschedulable),
            change.move(self._generations),
        )
        # A node may have gone without a trace in the generations; readers must still see that something happened.
        self.generation = self._order_generation = next_generation()

    def rewrite(self, changed: Sequence[NodeInfo]) -> None:
        """Bring the rows of these nodes up to date; newest first. Placeholders have no row and are passed over."""
        for info in reversed(changed):
            row = self._row_of.get(info.name)
            if row is None or not info.has_node:
                continue
            if self._nodes[row] is not info.node:
                self._write_node(row, info.node)
                self._renewals.add(info.generation, row)
            self._write_pods(row, info)
            self._facts.mark(row)
            self._generations[row] = info.generation
            self._log.add(info.generation, row)
        self.generation = max(self.generation, changed[0].generation)

    def _write_node(self, row: int, node: Node) -> None:
        self._nodes[row] = node
        self._allocatable.write(row, node.name, node)
        self._labels.write(row, node)
        self._taints.write(row, node.spec.taints)
        self._unschedulable[row] = node.spec.unschedulable

    def _write_pods(self, row: int, info: NodeInfo) -> None:
        self._requested.write(row, info.name, info)
        self._non_zero.write(row, info.name, info)
        self._num_pods[row] = info.num_pods
        self._lowest_priority[row] = info.lowest_priority
        self._with_host_ports.put(row, bool(info.used_ports))
        has_affinity = info.num_pods_with_affinity > 0
        if has_affinity or row in self._with_affinity:  # repelling others is one kind of it
            self._with_affinity.put(row, has_affinity)
            self._with_anti_affinity.put(row, info.num_pods_with_required_anti_affinity > 0)
        self._claims.put(row, info.pvc_ref_counts)

    def _set_plain_columns(
        self, num_pods: IntColumn, lowest_priority: IntColumn, unschedulable: BoolColumn, generations: IntColumn
    ) -> None:
        self._num_pods, self._num_pods_view = num_pods, read_only(num_pods)
        self._lowest_priority, self._lowest_priority_view = lowest_priority, read_only(lowest_priority)
        self._unschedulable, self._unschedulable_view = unschedulable, read_only(unschedulable)
        self._generations, self._generations_view = generations, read_only(generations)
