"""Rows of the table of hostile objects: what is put into a cluster, and what must become of it.

A row is one object, as a manifest or as the bytes of the wire. What must become of it is a text, of which the beginning
is compared:

    scheduled                      the pod got a node
    pending: MESSAGE               it waits, and its PodScheduled condition says why
    error: MESSAGE                 the attempt failed, and the condition says why
    rejected: REASON               it cannot be understood; an event on the pod (or a line of the log) says why
    gated: PLUGIN                  a PreEnqueue plugin holds it back
    ignored                        it belongs to another scheduler, or has ended
    assigned                       it came with a node
    skipped                        it is being deleted
    taken                          an object of another kind that is understood

``api`` says what a real API server makes of it, which ``test_api_column`` checks: where it accepts a pod, the verdict
must be kube-scheduler's (``test_same_verdict``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ACCEPTED", "REFUSED", "WIRE", "Json", "Row", "merged", "node", "obj", "pod"]

Json = dict[str, Any]

ACCEPTED = "accepted"
REFUSED = "refused"
WIRE = "wire"
"""The API server would never send it, and cannot be asked about it: its JSON is broken, or it is of another server."""


@dataclass(frozen=True, slots=True)
class Row:
    """One hostile object.

    Attributes:
        name: what is odd about it.
        made: the manifest, or the bytes as they come.
        api: what a real API server says to it.
        expect: what must become of it.
        kind: of the object.
        others: objects that it is odd together with, put before it.
        pod: for other kinds: a pod that is tried when the object is there.
        then: what must become of that pod.
        differs: why Podium's verdict is not kube-scheduler's although the API server accepts the object.
    """

    name: str
    made: Json | bytes
    api: str
    expect: str
    kind: str = "Pod"
    others: tuple[Json, ...] = ()
    pod: Json | None = None
    then: str = ""
    differs: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def merged(base: Json, changes: Mapping[str, Any]) -> Json:
    """Return ``base`` with ``changes`` laid over it; objects are merged, all else is replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def obj(kind: str, version: str, changes: Mapping[str, Any], *, namespace: str | None = None) -> Json:
    """Return a manifest named "bad"."""
    metadata = {"name": "bad", "uid": f"uid-{kind}-bad", "resourceVersion": "7"}
    if namespace:
        metadata["namespace"] = namespace
    return merged({"apiVersion": version, "kind": kind, "metadata": metadata}, changes)


_CONTAINER = {"name": "c", "image": "example.com/app"}
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bad", "namespace": "default", "uid": "uid-bad", "resourceVersion": "7"},
    "spec": {"schedulerName": "default-scheduler", "containers": [_CONTAINER]},
    "status": {"phase": "Pending"},
}


def pod(spec: Mapping[str, Any] | None = None, *, container: Mapping[str, Any] | None = None, **parts: Any) -> Json:
    """Return a pod named "bad" with changes of its spec, its container, or other parts of the manifest."""
    made = merged(_POD, {"spec": dict(spec or {}), **parts})
    if container is not None:
        made["spec"]["containers"] = [merged(_CONTAINER, container)]
    return made


def node(changes: Mapping[str, Any]) -> Json:
    """Return a node named "bad" with room for everything."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
    labels = {"kubernetes.io/hostname": "bad", "only": "bad"}
    base = {"metadata": {"labels": labels}, "status": {"allocatable": room, "capacity": room}}
    return obj("Node", "v1", merged(base, changes))
