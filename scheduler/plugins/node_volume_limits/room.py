"""Room: the nodes on which a pod's volumes fit for certain, found from columns.

All volumes of all pods on a node together, those attached without a pod, and the pod's own are at least as many as can
count against any driver's limit. Where even so many are within the limits nothing has to be looked up; on a cluster
that is not full of volumes these are all nodes. The others are judged one by one.

What CSINodes and VolumeAttachments say is kept as columns until one of them, or the order of the nodes, changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from scheduler.api import BoolColumn, IntColumn, Lister, NodeFacts, NodesView, NodeView
from scheduler.model.storage import CSINode, PersistentVolume, VolumeAttachment
from scheduler.plugins.node_volume_limits.attachable import attached_by_node
from scheduler.plugins.shared.csi_translation import CsiVolume

__all__ = ["Room", "limits_of"]

_UNLIMITED = np.iinfo(np.int64).max


def limits_of(csi_node: CSINode) -> dict[str, int]:
    """Return how many volumes each driver can attach; drivers without a limit are left out."""
    drivers = csi_node.spec.drivers
    return {
        d.name: d.allocatable.count for d in drivers if d.allocatable is not None and d.allocatable.count is not None
    }


def _volumes(node: NodeView) -> tuple[int, int]:
    """Return how many volumes the pods on the node have, and how many of those are not claims."""
    volumes = [volume for pod in node.pods for volume in pod.attachable_volumes]
    return len(volumes), sum(volume.persistent_volume_claim is None for volume in volumes)


class Room:
    """CSINodes and VolumeAttachments as columns of the nodes in a view."""

    __slots__ = (
        "_attached",
        "_attached_of",
        "_attachments",
        "_counted",
        "_csi_nodes",
        "_facts",
        "_limits",
        "_limits_of",
        "_volumes",
    )

    def __init__(
        self,
        csi_nodes: Lister[CSINode],
        volumes: Lister[PersistentVolume],
        attachments: Lister[VolumeAttachment],
    ) -> None:
        self._csi_nodes = csi_nodes
        self._volumes = volumes
        self._attachments = attachments
        self._facts = NodeFacts(2, _volumes)
        self._limits_of: tuple[int, Sequence[str]] = (-1, ())
        self._limits = _Limits((), csi_nodes)
        self._attached_of: tuple[int, int] = (-1, -1)
        self._attached: Mapping[str, set[CsiVolume]] = {}
        self._counted: tuple[Mapping[str, set[CsiVolume]], Sequence[str], IntColumn] = ({}, (), np.zeros(0, np.int64))

    def has_csi_node(self, nodes: NodesView) -> BoolColumn:
        """Return which nodes have a CSINode."""
        return self._limits_in(nodes).has_csi_node

    def attached(self) -> Mapping[str, set[CsiVolume]]:
        """Return the CSI volumes that are attached, or being attached, by node name."""
        versions = self._attachments.version, self._volumes.version
        if versions != self._attached_of:
            self._attached_of = versions
            self._attached = attached_by_node(self._attachments.list(), self._volumes)
        return self._attached

    def surely_fits(self, nodes: NodesView, drivers: Collection[str], num_wanted: int) -> BoolColumn:
        """Return the nodes with a CSINode on which ``num_wanted`` more volumes of these drivers certainly fit.

        A node without any limit takes everything. Where a pod has volumes other than claims nothing is certain: such a
        volume may turn out to be unreadable.
        """
        limits = self._limits_in(nodes)
        used = nodes.facts(self._facts)
        if used is None:
            return ~limits.has_limits
        count, num_others = used
        total = count + self._num_attached(nodes) + num_wanted
        fits: BoolColumn = (total <= limits.lowest(drivers)) & (num_others == 0)
        return fits | ~limits.has_limits

    def _num_attached(self, nodes: NodesView) -> IntColumn:
        """Return how many volumes are attached to each node."""
        attached = self.attached()
        known, names, column = self._counted
        if known is attached and names is nodes.names:
            return column
        column = np.zeros(len(nodes), np.int64)
        for name, volumes in attached.items():
            row = nodes.row(name)
            if row is not None:
                column[row] = len(volumes)
        if len(nodes) == nodes.num_all_nodes:
            self._counted = (attached, nodes.names, column)
        return column

    def _limits_in(self, nodes: NodesView) -> _Limits:
        version, names = self._limits_of
        if version != self._csi_nodes.version or names is not nodes.names:
            made = _Limits(nodes.names, self._csi_nodes)
            if len(nodes) != nodes.num_all_nodes:
                return made  # a part of the nodes, which nobody will ask about again
            self._limits_of, self._limits = (self._csi_nodes.version, nodes.names), made
        return self._limits


class _Limits:
    """The limits of some nodes by row.

    Attributes:
        has_csi_node: which nodes have a CSINode.
        has_limits: which have a limit for any driver.
    """

    __slots__ = ("_by_driver", "_by_row", "has_csi_node", "has_limits")

    def __init__(self, names: Sequence[str], csi_nodes: Lister[CSINode]) -> None:
        found = [csi_nodes.get(name) for name in names]
        self._by_row = [limits_of(csi_node) if csi_node is not None else {} for csi_node in found]
        self._by_driver: dict[str, IntColumn] = {}
        self.has_csi_node: BoolColumn = np.array([csi_node is not None for csi_node in found], np.bool_)
        self.has_limits: BoolColumn = np.array([bool(limits) for limits in self._by_row], np.bool_)

    def lowest(self, drivers: Collection[str]) -> IntColumn:
        """Return each node's lowest limit among these drivers."""
        lowest = np.full(len(self._by_row), _UNLIMITED, np.int64)
        for driver in drivers:
            np.minimum(lowest, self._of(driver), out=lowest)
        return lowest

    def _of(self, driver: str) -> IntColumn:
        column = self._by_driver.get(driver)
        if column is None:
            limits = (limits.get(driver, _UNLIMITED) for limits in self._by_row)
            column = self._by_driver[driver] = np.fromiter(limits, np.int64, len(self._by_row))
        return column
