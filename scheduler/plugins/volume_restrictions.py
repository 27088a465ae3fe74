"""VolumeRestrictions: volumes that not every pod can have at the same time (spec §4.11).

Two rules. Certain in-tree disks (GCE PD, EBS, iSCSI, RBD) are attached to one pod of a node at a time, or to several
that only read. A claim with the access mode ReadWriteOncePod has one pod in the whole cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import ClassVar

import numpy as np

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Lister,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
    StateKey,
    Status,
    Verdicts,
)
from scheduler.api.events import HintIndex, IndexedRegistration, Offer, WantedKey
from scheduler.model.storage import PersistentVolumeClaim
from scheduler.model.volumes import Volume
from scheduler.plugins.shared.indexed import about_claims
from scheduler.plugins.shared.storage import claim_not_found, is_claim_of

__all__ = ["NAME", "REASON_CLAIM_IN_USE", "REASON_DISK_CONFLICT", "VolumeRestrictions", "new"]

NAME = "VolumeRestrictions"
REASON_DISK_CONFLICT = "node(s) had no available disk"
REASON_CLAIM_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_DISK_CONFLICT = Status.unschedulable(REASON_DISK_CONFLICT)
_CLAIM_IN_USE = Status.unschedulable(REASON_CLAIM_IN_USE)
_SKIP = Status.skip()
_ONE_POD = "ReadWriteOncePod"
_A_DISK = ""  # no claim has that name


class _Exclusive:
    """The pod's claims that only one pod may use, and how often others use them.

    Attributes:
        claims: names of the claims.
        uses: uses by pods that have a node; preemption's "what if" changes it.
    """

    __slots__ = ("claims", "uses")

    def __init__(self, claims: frozenset[str], uses: int) -> None:
        self.claims = claims
        self.uses = uses

    def clone(self) -> _Exclusive:
        """Return a copy for a dry run."""
        return _Exclusive(self.claims, self.uses)

    def uses_by(self, pod: Pod) -> int:
        """Return how many volumes of the pod stand on these claims."""
        # parity: claims of equal name in another namespace are counted, too
        sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
        return sum(source is not None and source.claim_name in self.claims for source in sources)


_STATE: StateKey[_Exclusive] = StateKey("PreFilterVolumeRestrictions")


class VolumeRestrictions(PreFilterPlugin, FilterPlugin):
    """Keeps a pod away from volumes that are taken."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ("_claims",)

    def __init__(self, claims: Lister[PersistentVolumeClaim]) -> None:
        self._claims = claims

    def node_signature(self, pod: Pod) -> Hashable | None:
        return None if pod.spec.volumes and (pod.attachable_volumes or any(map(_is_disk, pod.spec.volumes))) else ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        if not pod.spec.volumes:
            return None, _SKIP
        exclusive: set[str] = set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = self._claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return None, Status.unresolvable(claim_not_found(name))
            if _ONE_POD in claim.spec.access_modes:
                exclusive.add(name)
        uses = sum(f"{pod.namespace}/{name}" in nodes.used_claims for name in exclusive) if exclusive else 0
        if not uses and not any(map(_is_disk, pod.spec.volumes)):
            return None, _SKIP
        state.write(_STATE, _Exclusive(frozenset(exclusive), uses))
        return None, None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        del pod, node
        exclusive = state.read(_STATE)
        exclusive.uses += exclusive.uses_by(added)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        del pod, node
        exclusive = state.read(_STATE)
        exclusive.uses -= exclusive.uses_by(removed)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        if _has_conflict(_disks(pod), node.pods):
            return _DISK_CONFLICT
        return _CLAIM_IN_USE if state.read(_STATE).uses > 0 else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        disks = _disks(pod)
        in_use = state.read(_STATE).uses > 0
        free = np.ones(len(nodes), np.bool_)
        if disks:
            free[:] = [not _has_conflict(disks, info.pods) for info in nodes.infos]
        if not in_use:
            return Verdicts.all_equal(free, _DISK_CONFLICT)

        def explain(rows: np.ndarray) -> list[tuple[Status, np.ndarray]]:
            groups = ((_DISK_CONFLICT, rows[~free[rows]]), (_CLAIM_IN_USE, rows[free[rows]]))
            return [(status, some) for status, some in groups if len(some)]

        return Verdicts(np.zeros(len(nodes), np.bool_), explain)

    def events(self) -> Sequence[EventRegistration]:
        return (
            IndexedRegistration(
                ClusterEvent(EventResource.POD, ActionType.DELETE), _after_pod_deleted, index=HintIndex(_uses, _freed)
            ),
            EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
            about_claims(
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
                _after_claim_added,
                lambda pod: pod.claim_names,
            ),
        )


_disk_sources = attrgetter("gce_persistent_disk", "aws_elastic_block_store", "rbd", "iscsi")
_NO_DISK = _disk_sources(Volume())


def _is_disk(volume: Volume) -> bool:
    return _disk_sources(volume) != _NO_DISK


def _disks(pod: Pod) -> list[Volume]:
    return [volume for volume in pod.spec.volumes if _is_disk(volume)]


def _has_conflict(disks: Sequence[Volume], pods: Iterable[Pod]) -> bool:
    return any(_conflict(disk, other) for pod in pods for other in pod.spec.volumes for disk in disks)


def _conflict(a: Volume, b: Volume) -> bool:
    """Say whether two pods of one node cannot have these two volumes at the same time."""
    if a.gce_persistent_disk is not None and b.gce_persistent_disk is not None:
        gce, other_gce = a.gce_persistent_disk, b.gce_persistent_disk
        return gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only)
    if a.aws_elastic_block_store is not None and b.aws_elastic_block_store is not None:
        return a.aws_elastic_block_store.volume_id == b.aws_elastic_block_store.volume_id
    if a.iscsi is not None and b.iscsi is not None:
        return a.iscsi.iqn == b.iscsi.iqn and not (a.iscsi.read_only and b.iscsi.read_only)
    if a.rbd is not None and b.rbd is not None:
        rbd, other = a.rbd, b.rbd
        is_same = (
            rbd.pool == other.pool and rbd.image == other.image and not set(rbd.monitors).isdisjoint(other.monitors)
        )
        return is_same and not (rbd.read_only and other.read_only)
    return False


def _after_pod_deleted(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del new
    if not isinstance(old, Pod):
        return QueueingHint.QUEUE
    if old.namespace != pod.namespace:
        return QueueingHint.SKIP
    # What the deleted pod had is looked at first: most pods have neither disks nor claims.
    freed = _disks(old)
    if freed and any(_conflict(disk, other) for disk in _disks(pod) for other in freed):
        return QueueingHint.QUEUE
    shares = bool(old.claim_names) and not old.claim_names.isdisjoint(pod.claim_names)
    return QueueingHint.QUEUE if shares else QueueingHint.SKIP


def _uses(pod: Pod) -> Iterable[WantedKey]:
    disks = (_A_DISK,) if any(map(_is_disk, pod.spec.volumes)) else ()
    return [(pod.metadata.namespace, what) for what in (*pod.claim_names, *disks)]


def _freed(old: object | None, new: object | None) -> Iterable[Offer] | None:
    del new
    if not isinstance(old, Pod):
        return None
    return [(old.metadata.namespace, (*old.claim_names, _A_DISK))] if old.spec.volumes else ()


def _after_claim_added(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    is_mine = not isinstance(new, PersistentVolumeClaim) or is_claim_of(pod, new)
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP


def new(args: object, handle: Handle) -> VolumeRestrictions:
    """Make the plugin; it has no arguments."""
    del args
    return VolumeRestrictions(handle.lister(PersistentVolumeClaim))
