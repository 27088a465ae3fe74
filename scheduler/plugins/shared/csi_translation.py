"""In-tree volumes seen as volumes of the CSI drivers that replaced them: names, handles and topology.

Only what scheduling reads is translated. For every plugin the names are known, because a volume *can* migrate whether
or not its migration is on; handles and topology are translated for the plugins in ``MIGRATED`` alone, which are those
that the scheduler takes to have moved. Source: ``k8s.io/csi-translation-lib``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from scheduler.model.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.model.storage import PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from scheduler.model.volumes import AzureDiskSource, Volume

__all__ = [
    "AWS_EBS",
    "AZURE_DISK",
    "AZURE_FILE",
    "CINDER",
    "GCE_PD",
    "MIGRATED",
    "PORTWORX",
    "VSPHERE",
    "CsiVolume",
    "TranslationError",
    "driver_of",
    "in_tree_plugin",
    "is_migratable",
    "translate_inline",
    "translate_volume",
]

AWS_EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
AZURE_FILE = "kubernetes.io/azure-file"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"
VSPHERE = "kubernetes.io/vsphere-volume"

MIGRATED = frozenset({AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX})
"""Plugins whose volumes the scheduler counts and places as CSI volumes on nodes that have the driver."""

_DRIVERS = {
    AWS_EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    AZURE_FILE: "file.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
    VSPHERE: "csi.vsphere.vmware.com",
}
_TOPOLOGY_KEYS = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_ZONE_DELIMITER = "__"
_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = re.compile(r"vol-[^/]*")


class TranslationError(ValueError):
    """The volume cannot be expressed as a CSI volume; the text is upstream's."""


class CsiVolume(NamedTuple):
    """A volume as its CSI driver knows it."""

    driver: str
    handle: str


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> str | None:
    """Return the name of the in-tree plugin that a pod's inline volume or a persistent volume belongs to."""
    if source.aws_elastic_block_store is not None:
        return AWS_EBS
    if source.gce_persistent_disk is not None:
        return GCE_PD
    if source.azure_disk is not None:
        return AZURE_DISK
    if source.cinder is not None:
        return CINDER
    if source.portworx_volume is not None:
        return PORTWORX
    if source.azure_file is not None:
        return AZURE_FILE
    return VSPHERE if source.vsphere_volume is not None else None


def is_migratable(plugin: str) -> bool:
    """Say whether there is a CSI driver that replaced the in-tree plugin of this name."""
    return plugin in _DRIVERS


def driver_of(plugin: str) -> str:
    """Return the CSI driver that replaced the plugin.

    Raises:
        KeyError: no driver replaced it.
    """
    return _DRIVERS[plugin]


def translate_inline(volume: Volume) -> CsiVolume | None:
    """Return the CSI volume that an inline volume of a pod has become; None if it is of no migrated plugin.

    Raises:
        TranslationError: it names no volume that the driver could serve.
    """
    plugin = in_tree_plugin(volume)
    if plugin is None or plugin not in MIGRATED:
        return None
    if volume.gce_persistent_disk is not None:  # an inline disk does not say where it is
        return CsiVolume(_DRIVERS[GCE_PD], _gce_zonal(_UNSPECIFIED, volume.gce_persistent_disk.pd_name))
    return CsiVolume(_DRIVERS[plugin], _plain_handle(volume))


def translate_volume(volume: PersistentVolume) -> tuple[CsiVolume, VolumeNodeAffinity | None] | None:
    """Return a persistent volume's CSI volume and the nodes that reach it; None if it is of no migrated plugin.

    Raises:
        TranslationError: it names no volume that the driver could serve.
    """
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or plugin not in MIGRATED:
        return None
    handle = _gce_handle(volume) if plugin == GCE_PD else _plain_handle(volume.spec)
    key = _TOPOLOGY_KEYS.get(plugin)
    affinity = volume.spec.node_affinity if key is None else _translate_topology(volume, key)
    return CsiVolume(_DRIVERS[plugin], handle), affinity


def _plain_handle(source: Volume | PersistentVolumeSpec) -> str:
    """Return the handle of plugins whose handle is told by the source alone."""
    if source.aws_elastic_block_store is not None:
        return _ebs_handle(source.aws_elastic_block_store.volume_id)
    if source.azure_disk is not None:
        return _azure_handle(source.azure_disk)
    if source.cinder is not None:
        return source.cinder.volume_id
    assert source.portworx_volume is not None, "callers come with a migrated plugin"
    return source.portworx_volume.volume_id


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    prefix = "failed to translate Kubernetes ID to EBS Volume ID"
    try:
        path = unquote(urlsplit(volume_id).path)
    except ValueError as error:
        raise TranslationError(f"{prefix} Invalid disk name ({volume_id}): {error}") from error
    handle = path.strip("/")
    if not _EBS_ID.fullmatch(handle):
        raise TranslationError(f"{prefix} Invalid format for AWS volume ({volume_id})")
    return handle


def _azure_handle(disk: AzureDiskSource) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _gce_handle(volume: PersistentVolume) -> str:
    assert volume.spec.gce_persistent_disk is not None, "callers come with a disk of that plugin"
    disk = volume.spec.gce_persistent_disk.pd_name
    zones = (volume.labels.get(_BETA_ZONE) or volume.labels.get(_ZONE, "")).split(_ZONE_DELIMITER)
    if len(zones) == 1:
        return _gce_zonal(zones[0] or _UNSPECIFIED, disk)
    return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk}"


def _gce_zonal(zone: str, disk: str) -> str:
    return f"projects/{_UNSPECIFIED}/zones/{zone}/disks/{disk}"


def _gce_region(zones: Sequence[str]) -> str:
    regions: set[str] = set()
    prefix = "failed to get region from zones"
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            text = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise TranslationError(f"{prefix}: {text}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        shown = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(f"{prefix}: multiple or no regions gotten from zones, got: map[{shown}]")
    return regions.pop()


# --- topology --------------------------------------------------------------------------------------------------------


def _translate_topology(volume: PersistentVolume, csi_key: str) -> VolumeNodeAffinity | None:
    """Express the volume's zones by the driver's own label; a beta region label gives way to today's.

    Zones in the node affinity go before zones in the volume's labels.
    """
    terms = _terms(volume.spec.node_affinity)
    zone, region = _topology_labels(volume, terms)
    if _values(terms, zone):
        terms = _renamed(terms, zone, csi_key)
    elif zone in volume.labels:
        terms = _with_zones(terms, csi_key, volume.labels[zone].split(_ZONE_DELIMITER))
    if region == _BETA_REGION and _values(terms, region):
        terms = _renamed(terms, region, _REGION)
    if terms == _terms(volume.spec.node_affinity):
        return volume.spec.node_affinity
    return VolumeNodeAffinity(NodeSelector(terms))


_Terms = tuple[NodeSelectorTerm, ...]


def _terms(affinity: VolumeNodeAffinity | None) -> _Terms:
    return affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()


def _topology_labels(volume: PersistentVolume, terms: _Terms) -> tuple[str, str]:
    """Return the zone and region labels of the generation that the volume uses; affinity goes before labels."""
    for names in ({r.key for term in terms for r in term.match_expressions}, volume.labels.keys()):
        if _ZONE in names:
            return _ZONE, _REGION
        if _BETA_ZONE in names:
            return _BETA_ZONE, _BETA_REGION
    return _ZONE, _REGION


def _values(terms: _Terms, key: str) -> list[str]:
    return [v for term in terms for r in term.match_expressions if r.key == key for v in r.values]


def _renamed(terms: _Terms, old: str, new: str) -> _Terms:
    def rename(requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return msgspec.structs.replace(requirement, key=new) if requirement.key == old else requirement

    return _mapped(terms, lambda expressions: tuple(rename(r) for r in expressions))


def _with_zones(terms: _Terms, key: str, zones: Sequence[str]) -> _Terms:
    valid = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not valid:
        return terms
    requirement = NodeSelectorRequirement(key, "In", valid)
    return _mapped(terms or (NodeSelectorTerm(),), lambda expressions: (*expressions, requirement))


_Expressions = tuple[NodeSelectorRequirement, ...]


def _mapped(terms: _Terms, change: Callable[[_Expressions], _Expressions]) -> _Terms:
    return tuple(msgspec.structs.replace(t, match_expressions=change(t.match_expressions)) for t in terms)
