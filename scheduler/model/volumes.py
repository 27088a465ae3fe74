"""The ``volumes`` of a pod spec: only sources that scheduling reads."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from scheduler.model.meta import Int32, Value

__all__ = ["Volume"]


class PersistentVolumeClaimSource(Value, frozen=True):
    """A claim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(Value, frozen=True):
    """A generic ephemeral volume; its claim is named ``<pod>-<volume>``."""


class GCEPersistentDiskSource(Value, frozen=True):
    """An in-tree GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreSource(Value, frozen=True):
    """An in-tree EBS volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class ISCSISource(Value, frozen=True):
    """An iSCSI disk."""

    iqn: str = ""
    target_portal: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDSource(Value, frozen=True):
    """A Ceph block image."""

    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class CSISource(Value, frozen=True):
    """An inline CSI volume."""

    driver: str = ""


class ImageSource(Value, frozen=True):
    """An OCI image mounted as a volume."""

    reference: str = ""


class AzureDiskSource(Value, frozen=True):
    """An in-tree Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str | None = None


class CinderSource(Value, frozen=True):
    """An in-tree Cinder volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class PortworxSource(Value, frozen=True):
    """An in-tree Portworx volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class VsphereSource(Value, frozen=True):
    """An in-tree vSphere disk."""

    volume_path: str = ""


class AzureFileSource(Value, frozen=True):
    """An in-tree Azure file share."""

    share_name: str = ""


class Volume(Value, frozen=True):
    """One entry of ``spec.volumes``; sources that scheduling ignores are left out."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None
    csi: CSISource | None = None
    image: ImageSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxSource | None = None
    vsphere_volume: VsphereSource | None = None

    @property
    def is_attachable(self) -> bool:
        """Say whether the volume may take one of the node's places for volumes: by a claim, or as an in-tree disk."""
        return _attachable(self) != _NO_SOURCE


_attachable = attrgetter(
    "persistent_volume_claim",
    "ephemeral",
    "aws_elastic_block_store",
    "gce_persistent_disk",
    "azure_disk",
    "azure_file",
    "cinder",
    "portworx_volume",
    "vsphere_volume",
)
_NO_SOURCE = _attachable(Volume())  # compared as a whole: nearly every pod has a volume, and few have one of these
