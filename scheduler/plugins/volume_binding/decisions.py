"""What VolumeBinding decides for a pod on one node, and the reasons against a node."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.model.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim

__all__ = [
    "NOTHING_TO_BIND",
    "REASON_NODE_CONFLICT",
    "REASON_NO_STORAGE",
    "REASON_NO_VOLUME",
    "REASON_VOLUME_GONE",
    "BindingError",
    "PodVolumes",
    "Provision",
    "StaticBinding",
]

REASON_NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_STORAGE = "node(s) did not have enough free storage"
REASON_VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class BindingError(Exception):
    """Something is wrong that says nothing about the node; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class StaticBinding:
    """An existing volume for a claim."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim for which a volume will be made on the chosen node, and where its driver has room for it.

    Attributes:
        claim: the claim.
        capacity: None if the driver does not publish capacities.
    """

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None = None


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The decisions for a pod on one node."""

    bindings: tuple[StaticBinding, ...] = ()
    provisions: tuple[Provision, ...] = ()


NOTHING_TO_BIND = PodVolumes()
