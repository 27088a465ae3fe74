"""Manifests as a real API server shows them, made fast: a template is encoded once, then names are put into the bytes.

Both benchmarks need tens of thousands of realistic objects. "Realistic" means what costs decoding time: managedFields,
the token volume, tolerations and defaults that admission adds to every pod, conditions and images on nodes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

GIB = 1 << 30
SCHEDULER_NAME = "bench"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
ZONES = 3
CREATED = "2026-01-01T00:00:00Z"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "32Gi",
    pods: str = "110",
    zone: str = "",
    labels: Mapping[str, str] | None = None,
    taints: tuple[Manifest, ...] = (),
) -> Manifest:
    """Return a ready node as one would send it; the defaults are scheduler_perf's ``node-default``."""
    all_labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(labels or {})}
    if zone:
        all_labels[ZONE] = zone
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all_labels},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}],
        },
    }


def pod(
    name: str,
    namespace: str,
    *,
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    spec: Manifest | None = None,
    node_name: str = "",
    host_port: int = 0,
) -> Manifest:
    """Return a pod as one would send it: one ``pause`` container, grace period 0, our scheduler."""
    port: Manifest = {"containerPort": host_port or 80}
    if host_port:
        port["hostPort"] = host_port
    container: Manifest = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "ports": [port]}
    if requests:
        container["resources"] = {"requests": dict(requests), "limits": dict(requests)}
    whole: Manifest = {"schedulerName": SCHEDULER_NAME, "terminationGracePeriodSeconds": 0, "containers": [container]}
    whole |= spec or {}
    if node_name:
        whole["nodeName"] = node_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": whole,
    }


def as_served_pod(manifest: Manifest, uid: str, version: str) -> Manifest:
    """Return the pod as a watch shows it: with what defaulting, admission and the server add."""
    whole = copy.deepcopy(manifest)
    whole["metadata"] |= {
        "uid": uid,
        "resourceVersion": version,
        "creationTimestamp": CREATED,
        "generation": 1,
        "managedFields": [_managed("kube-controller-manager", "Update", _POD_FIELDS)],
    }
    spec = whole["spec"]
    spec |= {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
        "volumes": [*spec.get("volumes", ()), _TOKEN_VOLUME],
    }
    spec.setdefault("priority", 0)
    for container in spec["containers"]:
        container |= {
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "volumeMounts": [{"name": _TOKEN_VOLUME["name"], "readOnly": True, "mountPath": "/var/run/secrets"}],
        }
    whole["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return whole


def as_served_node(manifest: Manifest, uid: str, version: str) -> Manifest:
    """Return the node as a watch shows it, with a dozen images and the kubelet's conditions."""
    whole = copy.deepcopy(manifest)
    whole["metadata"] |= {
        "uid": uid,
        "resourceVersion": version,
        "creationTimestamp": CREATED,
        "managedFields": [_managed("kubelet", "Update", _NODE_FIELDS)],
    }
    whole["status"]["images"] = [
        {"names": [f"registry.example/app-{i}@sha256:{i:064x}", f"registry.example/app-{i}:v1"], "sizeBytes": 90 << 20}
        for i in range(12)
    ]
    whole["status"]["conditions"] = [
        {
            "type": kind,
            "status": status,
            "reason": "Kubelet",
            "lastHeartbeatTime": CREATED,
            "message": "kubelet says so",
        }
        for kind, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"))
    ] + whole["status"]["conditions"]
    return whole


class Template:
    """Bytes of a manifest with ``@TOKENS@`` in them, filled in at the speed of ``bytes.replace``."""

    def __init__(self, manifest: Manifest) -> None:
        self._bytes = json.dumps(manifest, separators=(",", ":")).encode()

    def fill(self, **tokens: str) -> bytes:
        """Return the bytes with each ``@NAME@`` replaced by ``tokens["NAME"]``."""
        filled = self._bytes
        for name, value in tokens.items():
            filled = filled.replace(b"@%s@" % name.encode(), value.encode())
        return filled


def _managed(manager: str, operation: str, fields: Manifest) -> Manifest:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


_TOKEN_VOLUME: Manifest = {
    "name": "kube-api-access-x7k2p",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ],
    },
}
_POD_FIELDS: Manifest = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:ownerReferences": {".": {}}},
    "f:spec": {
        "f:containers": {
            'k:{"name":"pause"}': {
                **{f"f:{field}": {} for field in ("image", "imagePullPolicy", "name", "terminationMessagePath")},
                "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}, "f:requests": {".": {}, "f:cpu": {}}},
            }
        },
        **{f"f:{field}": {} for field in ("dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName")},
    },
}
_NODE_FIELDS: Manifest = {
    "f:metadata": {"f:labels": {".": {}, f"f:{HOSTNAME}": {}, f"f:{ZONE}": {}}},
    "f:status": {"f:allocatable": {".": {}, "f:cpu": {}, "f:memory": {}}, "f:conditions": {}, "f:images": {}},
}
