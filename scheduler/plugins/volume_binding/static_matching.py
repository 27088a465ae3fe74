"""Static matching: which existing volume a claim takes on a node.

A volume that was set aside for the claim wins, or rules the node out if the node does not reach it. Otherwise it is
the smallest volume that is large enough, free, of the right class, mode and attributes, selected by the claim, and
within reach of the node. What does not depend on the node is decided once for each claim.
Source: ``FindMatchingVolume`` in ``component-helpers/storage/volume/pv_helpers.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from scheduler.model.selectors import label_selector_matches, validate_label_selector
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.shared.pinned_list import PinnedList, affinity_pin
from scheduler.plugins.shared.storage import claim_class, storage_nano, volume_class
from scheduler.plugins.shared.volume_affinity import is_reachable
from scheduler.plugins.volume_binding.decisions import BindingError

__all__ = ["Candidates", "is_bound_to"]

_AVAILABLE = "Available"
_FILESYSTEM = "Filesystem"


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Say whether the volume is bound to the claim or set aside for it."""
    ref = volume.spec.claim_ref
    if ref is None or ref.name != claim.name or ref.namespace != claim.namespace:
        return False
    return not ref.uid or ref.uid == claim.uid


class Candidates:
    """The volumes that a claim may take on some node."""

    __slots__ = ("_free", "_reserved")

    def __init__(self, claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> None:
        """Sort out the volumes of the claim's class.

        Raises:
            BindingError: the claim's selector cannot be understood.
        """
        problem = validate_label_selector(claim.spec.selector)
        if problem is not None:
            raise BindingError(f"error creating internal label selector for claim: {claim.key}: {problem}")
        fitting = [volume for volume in volumes if _fits(volume, claim)]
        self._reserved = [volume for volume in fitting if is_bound_to(volume, claim)]
        free = [v for v in fitting if v.spec.claim_ref is None and _may_take(v, claim)]
        # Of equal volumes the first one goes first, as it would in a search for the smallest.
        free.sort(key=lambda volume: storage_nano(volume.spec.capacity))
        self._free = PinnedList((volume, affinity_pin(volume.spec.node_affinity)) for volume in free)

    def choose(self, labels: Mapping[str, str], taken: Collection[str]) -> PersistentVolume | None:
        """Return the volume for a node with these labels; None if there is none.

        Args:
            labels: the node's.
            taken: names of volumes that the pod's other claims take.
        """
        for volume in self._reserved:
            if volume.name not in taken:
                return volume if is_reachable(volume.spec.node_affinity, labels) else None
        for volume in self._free.offered_to(labels):
            if volume.name not in taken and is_reachable(volume.spec.node_affinity, labels):
                return volume
        return None


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Check what also holds for a volume that was set aside for the claim."""
    spec, wanted = volume.spec, claim.spec
    if spec.claim_ref is not None and not is_bound_to(volume, claim):
        return False
    return (
        storage_nano(spec.capacity) >= storage_nano(wanted.resources.requests)
        and (spec.volume_mode or _FILESYSTEM) == (wanted.volume_mode or _FILESYSTEM)
        and (spec.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _may_take(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == _AVAILABLE
        and (selector is None or label_selector_matches(selector, volume.labels))
        and volume_class(volume) == claim_class(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )
