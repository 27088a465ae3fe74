"""Reserving: the decisions for the chosen node are counted as done before they are written.

A volume gets its claimRef and a claim its selected node in the assume caches, so that the next pod sees the volume
taken. Source: ``AssumePodVolumes``, ``RevertAssumedPodVolumes``, ``GetBindVolumeToClaim``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from scheduler.model.meta import KubeObject
from scheduler.model.storage import ClaimReference, PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.volume_binding.assume_cache import AssumeCache, AssumeError
from scheduler.plugins.volume_binding.decisions import PodVolumes, Provision, StaticBinding
from scheduler.plugins.volume_binding.delayed import SELECTED_NODE
from scheduler.plugins.volume_binding.static_matching import is_bound_to

__all__ = ["BOUND_BY_CONTROLLER", "Caches"]

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume that was not set aside for its claim by a person."""

_YES = "yes"

K = TypeVar("K", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Caches:
    """Volumes and claims with our own decisions."""

    volumes: AssumeCache[PersistentVolume]
    claims: AssumeCache[PersistentVolumeClaim]

    def assume(self, node_name: str, decided: PodVolumes) -> PodVolumes:
        """Count the decisions as done; returns them with the objects as they are to be written.

        Raises:
            AssumeError: an object has changed since; nothing is assumed.
        """
        bindings: list[StaticBinding] = []
        provisions: list[Provision] = []
        try:
            for binding in decided.bindings:
                volume = _for_claim(binding.volume, binding.claim)
                if volume is not binding.volume:
                    self.volumes.assume(volume)
                bindings.append(StaticBinding(binding.claim, volume))
            for provision in decided.provisions:
                claim = _on_node(provision.claim, node_name)
                self.claims.assume(claim)
                provisions.append(Provision(claim, provision.capacity))
        except AssumeError:
            self.revert(PodVolumes(tuple(bindings), tuple(provisions)))
            raise
        return PodVolumes(tuple(bindings), tuple(provisions))

    def revert(self, decided: PodVolumes) -> None:
        """Take back what was assumed for these decisions and not written meanwhile."""
        for binding in decided.bindings:
            self.volumes.restore(binding.volume)
        for provision in decided.provisions:
            self.claims.restore(provision.claim)


def _for_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return the volume bound to the claim; the same object if it is bound already."""
    ref = ClaimReference(claim.namespace, claim.name, claim.uid)
    changed = volume
    if volume.spec.claim_ref != ref:
        changed = msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=ref))
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in volume.annotations:
        changed = _annotated(changed, BOUND_BY_CONTROLLER, _YES)
    return changed


def _on_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    return _annotated(claim, SELECTED_NODE, node_name)


def _annotated(obj: K, key: str, text: str) -> K:
    annotations = {**obj.metadata.annotations, key: text}
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, annotations=annotations))
