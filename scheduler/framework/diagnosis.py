"""Diagnosis: why a pod fits nowhere, and the FitError text made of it.

Rejections are kept as groups (one status, many rows), because a pod that fits on none of 5,000 nodes usually has a
handful of different reasons. Names are looked up only when PostFilter asks for single nodes.

Every node falls in one of three sets, later ones winning:

    absent     neither looked at nor named: ``absent_status`` (PreFilter rejections, narrowing, an early stop)
    grouped    rejected by a Filter plugin: ``add_group``
    single     judged on its own (nominated node, extender): ``set_node``

Source of the text: ``FitError.Error`` in ``pkg/scheduler/framework/types.go``; it is wire-visible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from scheduler.api import Code, NodesView, Pod, Status

__all__ = ["NO_NODES_MESSAGE", "Diagnosis", "FitError", "NoNodesError", "NodeStatuses", "one_node_fit_error"]

NO_NODES_MESSAGE = "no nodes available to schedule pods"

_ABSENT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class NoNodesError(Exception):
    """The cluster has no node at all."""

    def __init__(self) -> None:
        super().__init__(NO_NODES_MESSAGE)


class Diagnosis:
    """What is known about the nodes that a pod cannot run on.

    Attributes:
        nodes: all nodes of the snapshot; rows of groups are rows of this view.
        absent_status: what holds for nodes without a status of their own.
        unschedulable_plugins: plugins that rejected the pod anywhere (Pending ones included).
        pending_plugins: those that answered Pending.
        pre_filter_msg: the text with which PreFilter rejected the pod, or "".
        post_filter_msg: what PostFilter said, or "".
    """

    __slots__ = (
        "_groups",
        "_singles",
        "absent_status",
        "nodes",
        "pending_plugins",
        "post_filter_msg",
        "pre_filter_msg",
        "unschedulable_plugins",
    )

    def __init__(self, nodes: NodesView) -> None:
        self.nodes = nodes
        self.absent_status = _ABSENT
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.pre_filter_msg = ""
        self.post_filter_msg = ""
        self._groups: list[tuple[Status, NDArray[np.intp]]] = []
        self._singles: dict[str, Status] = {}

    def add_group(self, status: Status, rows: NDArray[np.intp]) -> None:
        """Record that all ``rows`` were rejected with ``status``; a row may be in one group only."""
        if len(rows):
            self._groups.append((status, rows))
            self.add_plugin(status)

    def set_node(self, name: str, status: Status) -> None:
        """Record one node's rejection; it wins over a group that has the node."""
        self._singles[name] = status
        self.add_plugin(status)

    def forget_node(self, name: str) -> None:
        """Drop a node's single status: the node is about to be judged again with all others."""
        self._singles.pop(name, None)

    def add_plugin(self, status: Status) -> None:
        """Note the plugin behind a rejection, so that its events wake the pod."""
        if status.plugin and status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
            if status.code is Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def reject_all(self, status: Status) -> None:
        """Record that PreFilter rejected the pod for the whole cluster."""
        self.absent_status = status
        self.pre_filter_msg = status.message
        self.add_plugin(status)

    @property
    def statuses(self) -> NodeStatuses:
        """Return node name -> status for every node of the snapshot."""
        return NodeStatuses(self)

    def explicit(self) -> dict[str, Status]:
        """Return node name -> status for the nodes that have one of their own."""
        names = self.nodes.names
        result: dict[str, Status] = {}
        for status, rows in self._groups:
            for row in rows.tolist():
                result[names[row]] = status
        result.update(self._singles)
        return result

    def counts(self, num_all_nodes: int) -> dict[str, int]:
        """Return reason -> number of nodes that give it, absent nodes included."""
        counts: dict[str, int] = {}
        num_explicit = 0
        for status, size in self._sizes():
            num_explicit += size
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + size
        if num_explicit < num_all_nodes:
            for reason in self.absent_status.reasons:
                counts[reason] = counts.get(reason, 0) + num_all_nodes - num_explicit
        return counts

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """Return the rows of the nodes whose status has this code, absent nodes included; ascending."""
        mask = np.full(len(self.nodes), self.absent_status.code is code, np.bool_)
        for status, rows in self._groups:
            mask[rows] = status.code is code
        for name, status in self._singles.items():
            row = self.nodes.row(name)
            if row is not None:
                mask[row] = status.code is code
        return np.flatnonzero(mask)

    def _sizes(self) -> Iterator[tuple[Status, int]]:
        hidden = self._rows_of_singles()
        for status, rows in self._groups:
            yield status, len(rows) - (int(np.isin(rows, hidden).sum()) if len(hidden) else 0)
        for status in self._singles.values():
            yield status, 1

    def _rows_of_singles(self) -> list[int]:
        rows = (self.nodes.row(name) for name in self._singles)
        return [row for row in rows if row is not None]


class NodeStatuses(Mapping[str, Status]):
    """Why each node was rejected, by name; covers every node of the snapshot, in row order.

    Looking single nodes up builds one dictionary at the first use (about 0.3 ms at 5,000 nodes).
    """

    __slots__ = ("_diagnosis", "_explicit")

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._diagnosis = diagnosis
        self._explicit: dict[str, Status] | None = None

    def __getitem__(self, name: str) -> Status:
        explicit = self._explicit
        if explicit is None:
            explicit = self._explicit = self._diagnosis.explicit()
        status = explicit.get(name)
        if status is not None:
            return status
        if self._diagnosis.nodes.row(name) is None:
            raise KeyError(name)
        return self._diagnosis.absent_status

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """Return the rows of the nodes whose status has this code, without looking at them one by one."""
        return self._diagnosis.rows_with(code)

    def __iter__(self) -> Iterator[str]:
        return iter(self._diagnosis.nodes.names)

    def __len__(self) -> int:
        return len(self._diagnosis.nodes)


class FitError(Exception):
    """A pod fits on no node; travels as the cause of a Status.

    Attributes:
        pod: the pod.
        num_all_nodes: number of nodes that the text speaks of.
        diagnosis: why.
    """

    def __init__(self, pod: Pod, num_all_nodes: int, diagnosis: Diagnosis) -> None:
        super().__init__()
        self.pod = pod
        self.num_all_nodes = num_all_nodes
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        diagnosis = self.diagnosis
        text = f"0/{self.num_all_nodes} nodes are available:"
        if diagnosis.pre_filter_msg:
            text += f" {diagnosis.pre_filter_msg}."
        else:
            # parity: sorted as texts, so "10 …" stands before "2 …".
            entries = sorted(f"{count} {reason}" for reason, count in diagnosis.counts(self.num_all_nodes).items())
            if entries:
                text += f" {', '.join(entries)}."
        if diagnosis.post_filter_msg:
            text += f" {diagnosis.post_filter_msg}"
        return text

    def status(self, code: Code = Code.UNSCHEDULABLE) -> Status:
        """Return the status that carries this error; take it once PostFilter has spoken."""
        return Status(code, (str(self),), cause=self)


def one_node_fit_error(pod: Pod, nodes: NodesView, node_name: str, status: Status) -> FitError:
    """Return the FitError of a rejection by Reserve or Permit: the text speaks of one node."""
    diagnosis = Diagnosis(nodes)
    diagnosis.set_node(node_name, status)
    return FitError(pod, 1, diagnosis)
