"""Claims and volumes: the facts about them that several volume plugins need.

Source: ``component-helpers/storage/volume`` and ``component-helpers/storage/ephemeral``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scheduler.api import Pod
from scheduler.model.quantity import parse_quantity_nano
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim
from scheduler.model.volumes import Volume

__all__ = [
    "WAIT_FOR_FIRST_CONSUMER",
    "ClaimUse",
    "claim_class",
    "claim_not_found",
    "claim_of",
    "claims_of",
    "class_not_found",
    "is_claim_of",
    "is_fully_bound",
    "is_made_for",
    "not_made_for",
    "storage_nano",
    "used_claim_names",
    "uses_claim",
    "volume_class",
    "volume_not_found",
]

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_STORAGE = "storage"


class ClaimUse(NamedTuple):
    """One volume of a pod that stands on a claim of the pod's namespace."""

    name: str
    is_ephemeral: bool


def claim_of(pod: Pod, volume: Volume) -> ClaimUse | None:
    """Return the claim that one of the pod's volumes stands on; None if it stands on none."""
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
    if volume.ephemeral is not None:
        return ClaimUse(f"{pod.name}-{volume.name}", is_ephemeral=True)
    return None


def claims_of(pod: Pod) -> Iterator[ClaimUse]:
    """Yield the claims that the pod's volumes stand on, those of generic ephemeral volumes included, in order."""
    for volume in pod.attachable_volumes:
        use = claim_of(pod, volume)
        if use is not None:
            yield use


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Say whether one of the pod's volumes, generic ephemeral ones included, stands on the claim."""
    return claim.namespace == pod.namespace and claim.name in used_claim_names(pod)


def used_claim_names(pod: Pod) -> Iterator[str]:
    """Yield the names of the claims that the pod's volumes stand on, those of generic ephemeral volumes included."""
    return (use.name for use in claims_of(pod))


def is_claim_of(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Say whether the pod names the claim itself; claims of generic ephemeral volumes do not count."""
    return claim.namespace == pod.namespace and claim.name in pod.claim_names


def is_made_for(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Say whether the claim was made for a generic ephemeral volume of this very pod."""
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    return claim.namespace == pod.namespace and controller is not None and controller.uid == pod.uid


def not_made_for(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return upstream's text for a claim that has the right name by accident."""
    return f"PVC {claim.key} was not created for pod {pod.pod_key} (pod is not owner)"


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Return the storage class that the claim asks for, "" for none; the beta annotation goes first."""
    return claim.annotations.get(_BETA_CLASS, claim.spec.storage_class_name or "")


def volume_class(volume: PersistentVolume) -> str:
    """Return the volume's storage class, "" for none; the beta annotation goes first."""
    return volume.annotations.get(_BETA_CLASS, volume.spec.storage_class_name)


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Say whether the volume controller has finished binding the claim."""
    return claim.spec.volume_name != "" and _BIND_COMPLETED in claim.annotations


def storage_nano(quantities: Mapping[str, str | int | float]) -> int:
    """Return the amount of storage in 1e-9 bytes; 0 if none is stated."""
    return parse_quantity_nano(quantities.get(_STORAGE, 0))


def claim_not_found(name: str) -> str:
    """Return the API's text for a missing claim."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    """Return the API's text for a missing volume."""
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    """Return the API's text for a missing storage class."""
    return f'storageclass.storage.k8s.io "{name}" not found'
