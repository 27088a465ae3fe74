"""The cluster as its users and controllers see it: its objects, and what can be done to them without a request."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from scheduler.testing.apiserver.binding import bind
from scheduler.testing.apiserver.deletion import DeleteOptions, delete
from scheduler.testing.apiserver.resources import BY_PATH, Resource, by_kind
from scheduler.testing.apiserver.status import ApiStatusError
from scheduler.testing.apiserver.store import Change
from scheduler.testing.apiserver.target import Target
from tests.simulation.model_api import Json, ModelApi

__all__ = ["CLAIMS", "LEASES", "NODES", "PODS", "URGENT", "VOLUMES", "Cluster"]

URGENT = "urgent"
"""Name of the priority class that preempts."""

PODS, NODES = BY_PATH[("", "v1", "pods")], BY_PATH[("", "v1", "nodes")]
CLAIMS, VOLUMES = BY_PATH[("", "v1", "persistentvolumeclaims")], BY_PATH[("", "v1", "persistentvolumes")]
LEASES = BY_PATH[("coordination.k8s.io", "v1", "leases")]
_SIZE = {"storage": "1Gi"}
_PROVISIONERS = {"made": "disk.example.com", "local": "kubernetes.io/no-provisioner"}


class _Ear:
    """Somebody who is told of changes."""

    def __init__(self, offer: Callable[[Change], None]) -> None:
        self.offer = offer


class Cluster:
    """The objects of one model API server; pods and claims are those of the namespace "default"."""

    def __init__(self, api: ModelApi) -> None:
        self.api = api
        for name in ("default", "kube-system"):
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}}
        self.create({**urgent, "value": 1_000})

    def listen(self, resource: Resource, hear: Callable[[Change], None]) -> None:
        """Have a function told of every change of a kind, in the moment that it happens."""
        self.api.store.table(resource).subscribers[_Ear(hear)] = None

    def now(self) -> dt.datetime:
        """Return the server's time."""
        return self.api.objects.clock()

    # --- looking; what is returned is not to be changed ---

    def pods(self) -> list[Json]:
        """Return all pods."""
        return self.all(PODS)

    def nodes(self) -> list[Json]:
        """Return all nodes."""
        return self.all(NODES)

    def all(self, resource: Resource) -> list[Json]:
        """Return all objects of a kind."""
        return [stored.data for stored in self.api.store.table(resource).objects.values()]

    def pod(self, name: str) -> Json | None:
        """Return a pod."""
        return self._get(PODS, f"default/{name}")

    def node(self, name: str) -> Json | None:
        """Return a node."""
        return self._get(NODES, name)

    def claim(self, name: str) -> Json | None:
        """Return a persistent volume claim."""
        return self._get(CLAIMS, f"default/{name}")

    def volume(self, name: str) -> Json | None:
        """Return a persistent volume."""
        return self._get(VOLUMES, name)

    def _get(self, resource: Resource, key: str) -> Json | None:
        stored = self.api.store.table(resource).objects.get(key)
        return None if stored is None else stored.data

    # --- changing ---

    def create(self, obj: Json) -> None:
        """Create an object."""
        resource = by_kind(obj["apiVersion"], obj["kind"])
        namespace = obj["metadata"].get("namespace", "default") if resource.namespaced else ""
        self.api.objects.create(Target(resource, namespace), obj)

    def change(self, resource: Resource, name: str, changes: Json, subresource: str = "") -> None:
        """Merge something into an object, if it exists."""
        target = Target(resource, "default" if resource.namespaced else "", name, subresource)
        if target.key in self.api.store.table(resource).objects:
            self.api.objects.patch(target, "application/merge-patch+json", changes)

    def delete_pod(self, name: str, *, grace_s: int | None) -> None:
        """Delete a pod that may exist."""
        if self.pod(name) is not None:
            delete(self.api.objects, Target(PODS, "default", name), DeleteOptions(grace_s))

    def bind_pod(self, name: str, node: str, uid: str = "", requester: str = "") -> str:
        """Bind a pod, for a scheduler or as a foreign one, and return why it cannot be; "" if it is bound."""
        binding = {
            "metadata": {"name": name, **({"uid": uid} if uid else {})},
            "target": {"kind": "Node", "name": node},
        }
        self.api.requester = requester
        try:
            bind(self.api.objects, Target(PODS, "default", name), binding)
        except ApiStatusError as error:
            if error.code not in {404, 409}:
                raise
            return str(error)
        finally:
            self.api.requester = ""
        return ""

    def delete_node(self, name: str) -> None:
        """Delete a node that may exist; the pods on it stay until they are collected."""
        if self.node(name) is not None:
            delete(self.api.objects, Target(NODES, "", name), DeleteOptions())

    # --- volumes ---

    def provide_class(self, name: str) -> None:
        """Create a storage class, "made" or "local", that waits for the pod's node."""
        resource = by_kind("storage.k8s.io/v1", "StorageClass")
        if name not in self.api.store.table(resource).objects:
            storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
            how = {"provisioner": _PROVISIONERS[name], "volumeBindingMode": "WaitForFirstConsumer"}
            self.create({**storage_class, **how})

    def provide_claim(self, name: str, storage_class: str) -> None:
        """Create a claim, unless it is there."""
        if self.claim(name) is None:
            spec = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": _SIZE},
                "storageClassName": storage_class,
            }
            self.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})

    def provide_volume(self, name: str, node: str, claim: Json | None = None) -> None:
        """Create a volume that one node reaches, for a claim if one is given; unless it is there."""
        if self.volume(name) is not None:
            return
        hosts = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
        spec: Json = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": _SIZE,
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": hosts}]}},
            "storageClassName": "local",
        }
        if claim is not None:
            metadata = claim["metadata"]
            reference = {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")}
            spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}
            spec["storageClassName"] = claim["spec"]["storageClassName"]
        self.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})

    @staticmethod
    def reach(volume: Json) -> str:
        """Return the name of the only node that reaches a volume."""
        (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        name: Any = term["matchExpressions"][0]["values"][0]
        return str(name)
