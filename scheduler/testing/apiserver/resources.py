"""The resources that the embedded server has: one table, read by routing, discovery and the rules of each verb.

A resource with `view_of` is another API version's window on the same stored objects (events.k8s.io on events).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BY_PATH", "RESOURCES", "Resource", "by_kind"]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One row: names, and how the real server treats objects of this resource."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = False
    short_names: tuple[str, ...] = ()
    singular: str = ""
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    keeps_status_on_create: bool = False
    """Nodes may be created with a status; everywhere else a status comes only through the sub-resource."""
    has_generation: bool = False
    returns_deleted: bool = False
    """DELETE answers with the object instead of a Status."""
    unconditional_update: bool = True
    """PUT may omit the resourceVersion."""
    create_on_update: bool = False
    """PUT of an unknown name creates it."""
    view_of: str = ""
    """Plural of the core resource whose objects these are."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of the API version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def collection_path(self, namespace: str | None = None) -> str:
        """Path of the collection, of one namespace or of all."""
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{middle}/{self.plural}"


def _storage(
    plural: str,
    kind: str,
    *,
    namespaced: bool = False,
    returns_deleted: bool = True,
    unconditional_update: bool = False,
    subresources: tuple[str, ...] = (),
) -> Resource:
    return Resource(
        plural,
        kind,
        "storage.k8s.io",
        namespaced=namespaced,
        returns_deleted=returns_deleted,
        unconditional_update=unconditional_update,
        subresources=subresources,
    )


def _dra(plural: str, kind: str, *, namespaced: bool = False, subresources: tuple[str, ...] = ()) -> Resource:
    return Resource(
        plural,
        kind,
        "resource.k8s.io",
        namespaced=namespaced,
        returns_deleted=True,
        subresources=subresources,
        has_generation=plural in ("resourceslices", "deviceclasses"),
    )


def _workload(plural: str, kind: str, group: str, short: str) -> Resource:
    return Resource(
        plural,
        kind,
        group,
        namespaced=True,
        short_names=(short,),
        subresources=("status",),
        categories=("all",),
        has_generation=True,
    )


RESOURCES: tuple[Resource, ...] = (
    Resource("namespaces", "Namespace", short_names=("ns",), subresources=("status",), returns_deleted=True),
    Resource("nodes", "Node", short_names=("no",), subresources=("status",), keeps_status_on_create=True),
    Resource(
        "pods",
        "Pod",
        namespaced=True,
        short_names=("po",),
        subresources=("status", "binding", "resize"),
        categories=("all",),
        has_generation=True,
        returns_deleted=True,
    ),
    Resource("events", "Event", namespaced=True, short_names=("ev",), create_on_update=True),
    Resource(
        "events",
        "Event",
        "events.k8s.io",
        namespaced=True,
        short_names=("ev",),
        create_on_update=True,
        view_of="events",
    ),
    Resource("configmaps", "ConfigMap", namespaced=True, short_names=("cm",)),
    Resource(
        "services",
        "Service",
        namespaced=True,
        short_names=("svc",),
        subresources=("status",),
        categories=("all",),
        returns_deleted=True,
        create_on_update=True,
    ),
    Resource(
        "persistentvolumes",
        "PersistentVolume",
        short_names=("pv",),
        subresources=("status",),
        returns_deleted=True,
    ),
    Resource(
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        namespaced=True,
        short_names=("pvc",),
        subresources=("status",),
        returns_deleted=True,
    ),
    _workload("replicationcontrollers", "ReplicationController", "", "rc"),
    _workload("replicasets", "ReplicaSet", "apps", "rs"),
    _workload("statefulsets", "StatefulSet", "apps", "sts"),
    Resource(
        "leases",
        "Lease",
        "coordination.k8s.io",
        namespaced=True,
        unconditional_update=False,
        create_on_update=True,
    ),
    Resource(
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        "policy",
        namespaced=True,
        short_names=("pdb",),
        subresources=("status",),
        has_generation=True,
        unconditional_update=False,
    ),
    Resource("priorityclasses", "PriorityClass", "scheduling.k8s.io", short_names=("pc",), has_generation=True),
    _storage("storageclasses", "StorageClass", unconditional_update=True),
    _storage("csinodes", "CSINode"),
    _storage("csidrivers", "CSIDriver"),
    _storage("csistoragecapacities", "CSIStorageCapacity", namespaced=True, returns_deleted=False),
    _storage("volumeattachments", "VolumeAttachment", subresources=("status",)),
    _dra("resourceclaims", "ResourceClaim", namespaced=True, subresources=("status",)),
    _dra("resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True),
    _dra("resourceslices", "ResourceSlice"),
    _dra("deviceclasses", "DeviceClass"),
    # A custom resource whose definition is always installed, and whose schema is not checked.
    Resource(
        "schedulerprofiles",
        "SchedulerProfile",
        "scheduling.podium.dev",
        "v1alpha1",
        short_names=("sprof",),
        subresources=("status",),
        has_generation=True,
        unconditional_update=False,
    ),
)

BY_PATH: dict[tuple[str, str, str], Resource] = {(r.group, r.version, r.plural): r for r in RESOURCES}
_BY_KIND: dict[tuple[str, str], Resource] = {(r.api_version, r.kind): r for r in RESOURCES}


def by_kind(api_version: str, kind: str) -> Resource:
    """Return the resource of a kind.

    Raises:
        KeyError: the server has no such kind.

    """
    return _BY_KIND[(api_version, kind)]
