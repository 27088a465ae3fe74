"""NodeVolumeLimits: counts the CSI volumes on a node against what its drivers can attach (spec §4.12).

Counted are the distinct volumes of the pods on the node and those that are attached without a pod (attachments that
linger, or belong to pods we do not see). Nodes without a CSINode, and drivers without a limit there, take any number.

differs: the gate VolumeLimitScaling (alpha, off) is not built: a driver that is missing on a node keeps no pod away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from scheduler.api import (
    CycleState,
    EventRegistration,
    FilterPlugin,
    Handle,
    Lister,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    StateKey,
    Status,
    Verdicts,
)
from scheduler.model.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler.plugins.node_volume_limits.attachable import (
    Attachable,
    ClaimMissingError,
    VolumeUnreadableError,
    random_prefix,
)
from scheduler.plugins.node_volume_limits.hints import REGISTRATIONS
from scheduler.plugins.node_volume_limits.room import Room, limits_of
from scheduler.plugins.shared.csi_translation import CsiVolume
from scheduler.plugins.shared.rowwise import grouped_verdicts

__all__ = ["NAME", "REASON_TOO_MANY", "NodeVolumeLimits", "new"]

NAME = "NodeVolumeLimits"
REASON_TOO_MANY = "node(s) exceed max volume count"

_REJECTED = Status.unschedulable(REASON_TOO_MANY)
_SKIP = Status.skip()
_NONE: frozenset[CsiVolume] = frozenset()


class _Attempt:
    """What one attempt finds out once: the pod's volumes on nodes with and without CSINode."""

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted: dict[bool, set[CsiVolume] | Status] = {}


_STATE: StateKey[_Attempt] = StateKey("PreFilterNodeVolumeLimits")


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin):
    """Keeps a pod off nodes that cannot attach its volumes."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ("_attachable", "_csi_nodes", "_room")

    def __init__(self, attachable: Attachable, csi_nodes: Lister[CSINode], room: Room) -> None:
        self._attachable = attachable
        self._csi_nodes = csi_nodes
        self._room = room

    def node_signature(self, pod: Pod) -> Hashable | None:
        return None if pod.attachable_volumes else ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del nodes
        if not pod.attachable_volumes:
            return None, _SKIP
        state.write(_STATE, _Attempt())
        return None, None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        attempt = state.get(_STATE) or _Attempt()
        csi_node = self._csi_nodes.get(node.name)
        wanted = self._wanted(attempt, pod, has_csi_node=csi_node is not None)
        if isinstance(wanted, Status):
            return wanted
        limits = limits_of(csi_node) if csi_node is not None else {}
        return self._judge(wanted, limits, node) if wanted and limits else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        attempt = state.get(_STATE) or _Attempt()
        has_csi_node = self._room.has_csi_node(nodes)
        statuses: list[Status | None] = [None]
        group = np.zeros(len(nodes), np.intp)
        for kind in (False, True):
            rows = has_csi_node if kind else ~has_csi_node
            if not rows.any():
                continue
            wanted = self._wanted(attempt, pod, has_csi_node=kind)
            if isinstance(wanted, Status):
                group[rows] = len(statuses)
                statuses.append(wanted)
            elif kind and wanted:
                rows = rows & ~self._room.surely_fits(nodes, {volume.driver for volume in wanted}, len(wanted))
                # Each of the others has its own count, so this goes from node to node.
                for row in np.flatnonzero(rows).tolist():
                    group[row] = len(statuses)
                    statuses.append(self.filter(state, pod, nodes.infos[row]))
        return grouped_verdicts(statuses, group)

    def _wanted(self, attempt: _Attempt, pod: Pod, *, has_csi_node: bool) -> set[CsiVolume] | Status:
        """Return the pod's volumes, or the status of every such node if they cannot be told."""
        if has_csi_node not in attempt.wanted:
            try:
                attempt.wanted[has_csi_node] = self._attachable.of_pending(pod, has_csi_node=has_csi_node)
            except ClaimMissingError as error:
                attempt.wanted[has_csi_node] = Status.unresolvable(str(error))
            except VolumeUnreadableError as error:
                attempt.wanted[has_csi_node] = Status.error(str(error))
        return attempt.wanted[has_csi_node]

    def _judge(self, wanted: set[CsiVolume], limits: Mapping[str, int], node: NodeView) -> Status | None:
        attached = self._room.attached().get(node.name, _NONE)
        pods = [pod for pod in node.pods if pod.attachable_volumes]
        if _surely_fits(pods, len(attached) + len(wanted), {v.driver for v in wanted}, limits):
            return None
        present: set[CsiVolume] = set()
        try:
            for pod in pods:
                present |= self._attachable.of_running(pod)
        except VolumeUnreadableError as error:
            return Status.error(str(error))
        # parity: a volume that is attached but that no pod on the node uses counts even if it is one of the pod's own
        counts = Counter(volume.driver for volume in present | attached)
        for driver, count in Counter(volume.driver for volume in wanted - present).items():
            if driver in limits and counts[driver] + count > limits[driver]:
                return _REJECTED
        return None

    def events(self) -> Sequence[EventRegistration]:
        return REGISTRATIONS


def _surely_fits(pods: Sequence[Pod], others: int, drivers: set[str], limits: Mapping[str, int]) -> bool:
    """Say whether all volumes together are within the limit of each driver, so that none need be looked up.

    False if a pod has volumes other than claims: such a volume may turn out to be unreadable, which is an error.
    """
    volumes = [volume for pod in pods for volume in pod.attachable_volumes]
    limit = min((limits[driver] for driver in drivers if driver in limits), default=None)
    if limit is not None and len(volumes) + others > limit:
        return False
    return all(volume.persistent_volume_claim is not None for volume in volumes)


def new(args: object, handle: Handle) -> NodeVolumeLimits:
    """Make the plugin; it has no arguments."""
    del args
    volumes = handle.lister(PersistentVolume)
    attachable = Attachable(
        handle.lister(PersistentVolumeClaim), volumes, handle.lister(StorageClass), random_prefix(handle.random)
    )
    csi_nodes = handle.lister(CSINode)
    return NodeVolumeLimits(attachable, csi_nodes, Room(csi_nodes, volumes, handle.lister(VolumeAttachment)))
