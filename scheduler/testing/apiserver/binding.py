"""The bind call: compare-and-set of a pod's node, the one write that must never happen twice.

All checks and the write happen in one step, so of two schedulers exactly one gets 201 and the other 409.
"""

from __future__ import annotations

from scheduler.testing.apiserver.objects import Objects
from scheduler.testing.apiserver.pods import copy_topology_labels
from scheduler.testing.apiserver.status import ApiStatusError, Json, bad_request, conflict, internal
from scheduler.testing.apiserver.store import Stored
from scheduler.testing.apiserver.target import Target, uid_mismatch, without_nulls

__all__ = ["bind"]


def bind(objects: Objects, target: Target, binding: Json, *, dry_run: bool = False) -> None:
    """Assign the pod `target` as `binding` says.

    Raises:
        ApiStatusError: 400 names differ, 404 no such pod, 409 the pod is assigned, being deleted, gated, or not the
            one that was meant (UID, version); 500 a bad target (parity: the real server does not call it 422).

    """
    metadata = binding.get("metadata") or {}
    if metadata.get("name") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    destination = binding.get("target") or {}
    kind, node_name = destination.get("kind") or "", destination.get("name") or ""
    if kind not in ("", "Node"):
        raise internal(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not node_name:
        raise internal("target.name: Required value")
    stored = objects.get(target._replace(subresource=""))
    _check(target, stored, metadata)
    if not dry_run:
        labels = objects.node_labels(node_name) if kind == "Node" else {}
        pod = _bound(stored.data, node_name, objects.now(), without_nulls(metadata), labels)
        objects.store.put(target.resource, target.key, pod)


def _check(target: Target, stored: Stored, wanted: Json) -> None:
    pod, name = stored.data, target.name
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != pod["metadata"]["uid"]:
        raise conflict("pods", name, uid_mismatch(uid, stored))
    held = pod["metadata"]["resourceVersion"]
    if version and version != held:
        text = (
            f"Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {held}"
        )
        raise conflict("pods", name, text)
    if "deletionTimestamp" in pod["metadata"]:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    if pod["spec"].get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")


def _refused(name: str, message: str) -> ApiStatusError:
    return conflict("pods/binding", name, message)


def _bound(pod: Json, node_name: str, now: str, wanted: Json, node_labels: Json) -> Json:
    """Return the assigned pod; the stored one is shared with watchers and stays as it is."""
    metadata = dict(pod["metadata"])
    for field in ("labels", "annotations"):
        if wanted.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **wanted[field]}
    copy_topology_labels(metadata, node_labels)
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    status["conditions"] = _with_scheduled(status.get("conditions") or [], now)
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}


def _with_scheduled(conditions: list[Json], now: str) -> list[Json]:
    """Return the conditions with PodScheduled true, in its place if it was there."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    if any(each.get("type") == "PodScheduled" for each in conditions):
        return [scheduled if each.get("type") == "PodScheduled" else each for each in conditions]
    return [*conditions, scheduled]
