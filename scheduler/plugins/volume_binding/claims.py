"""The claims of a pod by what is left to do for them: nothing, bind when the node is known, or wait.

A claim is *bound* if the volume controller has finished with it. An unbound claim of a class that waits for its first
consumer is *delayed*: the scheduler chooses. All others must be bound before the pod can go anywhere.
Source: ``podHasPVCs`` and ``GetPodVolumeClaims``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.api import Lister, Pod
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler.plugins.shared.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_not_found,
    claims_of,
    is_fully_bound,
    is_made_for,
    not_made_for,
    volume_class,
)
from scheduler.plugins.volume_binding.assume_cache import AssumeCache
from scheduler.plugins.volume_binding.decisions import BindingError

__all__ = [
    "REASON_UNBOUND_IMMEDIATE",
    "PodClaims",
    "are_all_bound",
    "claims_problem",
    "sort_claims",
    "waiting_for_ephemeral",
]

REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_LOST = "Lost"


@dataclass(slots=True)
class PodClaims:
    """A pod's claims.

    Attributes:
        bound: their volumes only have to be reachable.
        delayed: the scheduler chooses a volume, or a node to make one on.
        has_immediate: some claim should have been bound already.
        volumes: the volumes of the delayed claims' classes, by class.
    """

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    has_immediate: bool = False
    volumes: dict[str, list[PersistentVolume]] = field(default_factory=dict)


def waiting_for_ephemeral(name: str) -> str:
    """Return the reason for a generic ephemeral volume whose claim has not been made yet."""
    return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'


def claims_problem(pod: Pod, claims: Lister[PersistentVolumeClaim]) -> str | None:
    """Return why the pod cannot use one of its claims, whatever the node; None if all are fit for use."""
    for name, is_ephemeral in claims_of(pod):
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return waiting_for_ephemeral(name) if is_ephemeral else claim_not_found(name)
        if claim.status.phase == _LOST:
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral and not is_made_for(pod, claim):
            return not_made_for(pod, claim)
    return None


def sort_claims(
    pod: Pod,
    claims: AssumeCache[PersistentVolumeClaim],
    volumes: AssumeCache[PersistentVolume],
    classes: Lister[StorageClass],
) -> PodClaims:
    """Sort the pod's claims.

    Raises:
        BindingError: a claim went missing, is another pod's, or has a class without a binding mode.
    """
    found = PodClaims()
    for name, is_ephemeral in claims_of(pod):
        claim = _get(pod, name, claims, is_ephemeral=is_ephemeral)
        if is_fully_bound(claim):
            found.bound.append(claim)
        elif _is_delayed(claim, classes) and not claim.spec.volume_name:
            found.delayed.append(claim)
        else:
            found.has_immediate = True
    if found.delayed:
        found.volumes = {claim_class(claim): [] for claim in found.delayed}
        for volume in volumes.list():
            of_class = found.volumes.get(volume_class(volume))
            if of_class is not None:
                of_class.append(volume)
    return found


def are_all_bound(pod: Pod, claims: AssumeCache[PersistentVolumeClaim]) -> bool:
    """Say whether nothing is left to do for any claim of the pod."""
    try:
        return all(
            is_fully_bound(_get(pod, name, claims, is_ephemeral=is_ephemeral)) for name, is_ephemeral in claims_of(pod)
        )
    except BindingError:
        return False


def _get(
    pod: Pod, name: str, claims: AssumeCache[PersistentVolumeClaim], *, is_ephemeral: bool
) -> PersistentVolumeClaim:
    key = f"{pod.namespace}/{name}"
    claim = claims.get(key)
    if claim is None:
        raise BindingError(f'error getting PVC "{key}": {claims.not_found(key)}')
    if is_ephemeral and not is_made_for(pod, claim):
        raise BindingError(not_made_for(pod, claim))
    return claim


def _is_delayed(claim: PersistentVolumeClaim, classes: Lister[StorageClass]) -> bool:
    name = claim_class(claim)
    storage_class = classes.get(name) if name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise BindingError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
