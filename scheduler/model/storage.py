"""Storage kinds: the fields that the volume plugins read."""

from __future__ import annotations

import msgspec

from scheduler.model.meta import Condition, Int32, KubeObject, LabelSelector, Value
from scheduler.model.pod import NodeSelector, QuantityText, ResourceRequirements
from scheduler.model.volumes import (
    AWSElasticBlockStoreSource,
    AzureDiskSource,
    AzureFileSource,
    CinderSource,
    GCEPersistentDiskSource,
    PortworxSource,
    VsphereSource,
)

__all__ = [
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSIPersistentVolumeSource",
    "CSIStorageCapacity",
    "ClaimReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "StorageClass",
    "TopologyRequirement",
    "TopologyTerm",
    "VolumeAttachment",
    "VolumeAttachmentSource",
    "VolumeAttachmentSpec",
    "VolumeAttachmentStatus",
    "VolumeNodeAffinity",
]


class ClaimReference(Value, frozen=True):
    """``claimRef``: the claim a volume is bound to, or reserved for if the UID is empty."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Value, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class CSIPersistentVolumeSource(Value, frozen=True):
    """A volume that a CSI driver serves."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Value, frozen=True):
    """``spec`` of a volume."""

    capacity: dict[str, QuantityText] = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxSource | None = None
    vsphere_volume: VsphereSource | None = None


class PersistentVolumeStatus(Value, frozen=True):
    """``status`` of a volume."""

    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    """A volume of the cluster."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(Value, frozen=True):
    """``spec`` of a claim."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Value, frozen=True):
    """``status`` of a claim."""

    phase: str = ""
    capacity: dict[str, QuantityText] = {}
    conditions: tuple[Condition, ...] = ()


class PersistentVolumeClaim(KubeObject, frozen=True):
    """A wish for a volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologyRequirement(Value, frozen=True):
    """A key and the values that a node's label may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Value, frozen=True):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True):
    """How volumes of a class are made."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeNodeResources(Value, frozen=True):
    """How many volumes of a driver fit on a node; None means no limit."""

    count: Int32 | None = None


class CSINodeDriver(Value, frozen=True):
    """A CSI driver as installed on one node."""

    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Value, frozen=True):
    """``spec`` of a CSINode."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True):
    """The CSI drivers of one node; it has the node's name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Value, frozen=True):
    """``spec`` of a CSI driver."""

    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject, frozen=True):
    """A CSI driver of the cluster."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True):
    """What a driver can still provide for one class in one part of the topology."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(Value, frozen=True):
    """What is attached: a persistent volume, or an inline volume in the form of one."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Value, frozen=True):
    """``spec`` of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Value, frozen=True):
    """``status`` of an attachment."""

    attached: bool = False


class VolumeAttachment(KubeObject, frozen=True):
    """A volume attached, or to be attached, to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
