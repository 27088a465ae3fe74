"""Defaults and fresh status of the kinds other than pods; small, because schedulers read few of their fields."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.testing.apiserver.events_view import default_event
from scheduler.testing.apiserver.quantities import normalize_resource_list
from scheduler.testing.apiserver.status import Json

__all__ = ["apply_defaults", "reset_status"]

NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def apply_defaults(kind: str, obj: Json) -> None:
    """Set the API's defaults in place."""
    default = _DEFAULTS.get(kind)
    if default is not None:
        default(obj)


def reset_status(kind: str, obj: Json) -> None:
    """Give a new object the status that the server begins with, whatever the client sent."""
    obj.pop("status", None)
    phase = {"PersistentVolume": "Pending", "PersistentVolumeClaim": "Pending", "Namespace": "Active"}.get(kind)
    if phase is not None:
        obj["status"] = {"phase": phase}
    elif kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        obj["status"] = {"replicas": 0}
    elif kind == "PodDisruptionBudget":
        obj["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    elif kind == "Service":
        obj["status"] = {"loadBalancer": {}}
    elif kind == "ResourceClaim":
        obj["status"] = {}


def _namespace(obj: Json) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), NAMESPACE_LABEL: metadata.get("name", "")}
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def _node(obj: Json) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    for field in ("capacity", "allocatable"):
        normalize_resource_list(status, field)
    if status.get("capacity"):
        status.setdefault("allocatable", dict(status["capacity"]))


def _service(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _workload(obj: Json) -> None:
    obj.setdefault("spec", {}).setdefault("replicas", 1)


def _replication_controller(obj: Json) -> None:
    _workload(obj)
    labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not obj["spec"].get("selector"):
        obj["spec"]["selector"] = labels


def _persistent_volume(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def _persistent_volume_claim(obj: Json) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _storage_class(obj: Json) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(field, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def _csi_node(obj: Json) -> None:
    obj.setdefault("spec", {}).setdefault("drivers", [])


def _priority_class(obj: Json) -> None:
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


_DEFAULTS: dict[str, Callable[[Json], None]] = {
    "Namespace": _namespace,
    "Node": _node,
    "Event": default_event,
    "Service": _service,
    "ReplicationController": _replication_controller,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
    "PersistentVolume": _persistent_volume,
    "PersistentVolumeClaim": _persistent_volume_claim,
    "StorageClass": _storage_class,
    "CSIDriver": _csi_driver,
    "CSINode": _csi_node,
    "PriorityClass": _priority_class,
}
