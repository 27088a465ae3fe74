"""Which CSI volumes a pod attaches: by claim, by generic ephemeral volume, or inline and migrated.

A volume that is not there yet, or cannot be found, is counted under a made-up handle, for it will be attached once the
claim is bound. The handles begin with a random text, so that they cannot equal one that a driver gives out.

In-tree volumes count as volumes of the CSI driver that replaced their plugin, on nodes that have a CSINode.
Source: ``filterAttachableVolumes`` in ``nodevolumelimits/csi.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api import Lister, Pod, Random
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from scheduler.model.volumes import Volume
from scheduler.plugins.shared.csi_translation import (
    MIGRATED,
    CsiVolume,
    TranslationError,
    driver_of,
    is_migratable,
    translate_inline,
    translate_volume,
)
from scheduler.plugins.shared.storage import (
    ClaimUse,
    claim_class,
    claim_not_found,
    claim_of,
    is_made_for,
    not_made_for,
)

__all__ = [
    "CLAIM_UNNAMED",
    "Attachable",
    "ClaimMissingError",
    "VolumeUnreadableError",
    "attached_by_node",
    "random_prefix",
]

CLAIM_UNNAMED = "PersistentVolumeClaim had no name"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # parity: rand.String leaves out what could make words
_PREFIX_CHARS = 32


class ClaimMissingError(Exception):
    """A pending pod names a claim that does not exist; the text is the reason."""


class VolumeUnreadableError(Exception):
    """It cannot be said what a volume is; the text is upstream's error."""


class Attachable:
    """Finds the volumes that pods attach."""

    __slots__ = ("_claims", "_classes", "_prefix", "_volumes")

    def __init__(
        self,
        claims: Lister[PersistentVolumeClaim],
        volumes: Lister[PersistentVolume],
        classes: Lister[StorageClass],
        prefix: str,
    ) -> None:
        """Make the finder; ``prefix`` begins the handles of volumes that do not exist yet."""
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._prefix = prefix

    def of_pending(self, pod: Pod, *, has_csi_node: bool) -> set[CsiVolume]:
        """Return what a pending pod would attach to a node.

        Raises:
            ClaimMissingError: a claim does not exist.
            VolumeUnreadableError: a volume cannot be understood.
        """
        return self._of_pod(pod, is_pending=True, has_csi_node=has_csi_node)

    def of_running(self, pod: Pod) -> set[CsiVolume]:
        """Return what a pod attaches to its node, which has a CSINode; missing claims are passed over.

        Raises:
            VolumeUnreadableError: a volume cannot be understood.
        """
        return self._of_pod(pod, is_pending=False, has_csi_node=True)

    def _of_pod(self, pod: Pod, *, is_pending: bool, has_csi_node: bool) -> set[CsiVolume]:
        found: set[CsiVolume] = set()
        for volume in pod.attachable_volumes:
            attached: CsiVolume | None = None
            use = claim_of(pod, volume)
            if use is not None:
                claim = self._claim(pod, use, is_pending=is_pending)
                if claim is not None:
                    attached = self._of_claim(claim, has_csi_node=has_csi_node)
            elif has_csi_node:
                attached = _of_inline(volume)
            if attached is not None:
                found.add(attached)
        return found

    def _claim(self, pod: Pod, use: ClaimUse, *, is_pending: bool) -> PersistentVolumeClaim | None:
        name, is_ephemeral = use
        if not name:
            raise VolumeUnreadableError(CLAIM_UNNAMED)
        claim = self._claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            if is_pending:
                raise ClaimMissingError(f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}")
            return None
        if is_ephemeral and not is_made_for(pod, claim):
            raise VolumeUnreadableError(not_made_for(pod, claim))
        return claim

    def _of_claim(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> CsiVolume | None:
        name = claim.spec.volume_name
        volume = self._volumes.get(name) if name else None
        if volume is None:
            return self._of_class(claim, has_csi_node=has_csi_node)
        if volume.spec.csi is not None:
            return _unless_empty(CsiVolume(volume.spec.csi.driver, volume.spec.csi.volume_handle))
        if not has_csi_node:
            return None
        try:
            translated = translate_volume(volume)
        except TranslationError:
            return None
        return None if translated is None else _unless_empty(translated[0])

    def _of_class(self, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> CsiVolume | None:
        """Return a volume yet to be made; a claim without a class must be bound before the pod can go anywhere."""
        name = claim_class(claim)
        storage_class = self._classes.get(name) if name else None
        if storage_class is None:
            return None
        provisioner = storage_class.provisioner
        if is_migratable(provisioner):
            if not has_csi_node or provisioner not in MIGRATED:
                return None
            provisioner = driver_of(provisioner)
        return _unless_empty(CsiVolume(provisioner, f"{self._prefix}-{claim.key}"))


def _of_inline(volume: Volume) -> CsiVolume | None:
    try:
        return translate_inline(volume)
    except TranslationError as error:
        raise VolumeUnreadableError(f"converting volume({volume.name}) from inline to csi: {error}") from error


def _unless_empty(volume: CsiVolume) -> CsiVolume | None:
    return volume if volume.driver and volume.handle else None


def attached_by_node(
    attachments: Iterable[VolumeAttachment], volumes: Lister[PersistentVolume]
) -> dict[str, set[CsiVolume]]:
    """Return the CSI volumes that are attached, or being attached, by node name."""
    by_node: dict[str, set[CsiVolume]] = {}
    for attachment in attachments:
        spec = attachment.spec
        name = spec.source.persistent_volume_name
        volume = volumes.get(name) if spec.attacher and name is not None else None
        if volume is not None and volume.spec.csi is not None:
            attached = CsiVolume(spec.attacher, volume.spec.csi.volume_handle)
            by_node.setdefault(spec.node_name, set()).add(attached)
    return by_node


def random_prefix(random: Random) -> str:
    """Return a text that no driver's handle begins with."""
    return "".join(_ALPHABET[random.randrange(len(_ALPHABET))] for _ in range(_PREFIX_CHARS))
