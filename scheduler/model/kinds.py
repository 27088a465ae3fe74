"""The kinds that Podium watches: how the API server calls them and where it serves them."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.model.dra import DeviceClass, ResourceClaim, ResourceSlice
from scheduler.model.meta import KubeObject, Namespace
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.policy import PodDisruptionBudget, PriorityClass
from scheduler.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from scheduler.model.workload import ReplicaSet, ReplicationController, Service, StatefulSet

__all__ = ["KINDS", "KindInfo", "kind_named"]


@dataclass(frozen=True, slots=True)
class KindInfo:
    """One kind as the API server serves it.

    Attributes:
        kind: name in manifests, e.g. ``Pod``.
        group: API group, "" for the core group.
        version: API version.
        plural: name in paths, e.g. ``pods``.
        namespaced: whether objects live in namespaces.
        field_selector: restricts what is listed and watched.
        resource: name of the kind in cluster events (a value of ``scheduler.api.EventResource``), "" if no events
            are about it.
    """

    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool
    field_selector: str = ""
    resource: str = ""

    @property
    def api_version(self) -> str:
        """Return ``apiVersion`` as manifests state it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """Return the path of the collection over all namespaces."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return f"{root}/{self.version}/{self.plural}"

    def object_path(self, namespace: str, name: str) -> str:
        """Return the path of one object."""
        root = f"/apis/{self.group}" if self.group else "/api"
        within = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}/{self.version}{within}/{self.plural}/{name}"


LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""Finished pods take nothing from their nodes; a pod that finishes arrives as deleted."""

_STORAGE = "storage.k8s.io"
_DRA = "resource.k8s.io"


def _core(kind: str, plural: str, *, namespaced: bool = True, field_selector: str = "", resource: str = "") -> KindInfo:
    return KindInfo(kind, "", "v1", plural, namespaced, field_selector, resource)


def _storage(kind: str, plural: str, *, namespaced: bool = False) -> KindInfo:
    return KindInfo(kind, _STORAGE, "v1", plural, namespaced, resource=f"{_STORAGE}/{kind}")


def _dra(kind: str, plural: str, *, namespaced: bool = False) -> KindInfo:
    return KindInfo(kind, _DRA, "v1", plural, namespaced, resource=f"{_DRA}/{kind}")


KINDS: dict[type[KubeObject], KindInfo] = {
    Pod: _core("Pod", "pods", field_selector=LIVE_PODS, resource="Pod"),
    Node: _core("Node", "nodes", namespaced=False, resource="Node"),
    Namespace: _core("Namespace", "namespaces", namespaced=False),
    PersistentVolume: _core("PersistentVolume", "persistentvolumes", namespaced=False, resource="PersistentVolume"),
    PersistentVolumeClaim: _core("PersistentVolumeClaim", "persistentvolumeclaims", resource="PersistentVolumeClaim"),
    Service: _core("Service", "services"),
    ReplicationController: _core("ReplicationController", "replicationcontrollers"),
    ReplicaSet: KindInfo("ReplicaSet", "apps", "v1", "replicasets", namespaced=True),
    StatefulSet: KindInfo("StatefulSet", "apps", "v1", "statefulsets", namespaced=True),
    PodDisruptionBudget: KindInfo("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", namespaced=True),
    PriorityClass: KindInfo("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
    StorageClass: _storage("StorageClass", "storageclasses"),
    CSINode: _storage("CSINode", "csinodes"),
    CSIDriver: _storage("CSIDriver", "csidrivers"),
    CSIStorageCapacity: _storage("CSIStorageCapacity", "csistoragecapacities", namespaced=True),
    VolumeAttachment: _storage("VolumeAttachment", "volumeattachments"),
    ResourceClaim: _dra("ResourceClaim", "resourceclaims", namespaced=True),
    ResourceSlice: _dra("ResourceSlice", "resourceslices"),
    DeviceClass: _dra("DeviceClass", "deviceclasses"),
}

_BY_NAME = {info.kind: kind for kind, info in KINDS.items()}


def kind_named(name: str) -> type[KubeObject]:
    """Return the kind that manifests call ``name``.

    Raises:
        LookupError: no such kind is watched.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise LookupError(f"kind {name!r} is none of those that are watched: {', '.join(_BY_NAME)}") from None
