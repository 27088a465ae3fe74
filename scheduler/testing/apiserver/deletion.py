"""DELETE: preconditions, grace periods, finalizers.

Deleting is the one verb that may commit two changes: a pod whose grace period is over is first marked and then
removed, and watchers see both, as on the real server.

Deletion of a pod, by what it is:
    unbound or finished ──▶ grace 0 ──no finalizers──▶ removed
    bound ──▶ deletionTimestamp = now + grace, stays until a second delete with a shorter grace, or forced with 0
    finalizers left ──▶ marked only; removed by the update that takes the last finalizer away
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from scheduler.testing.apiserver.objects import Objects
from scheduler.testing.apiserver.status import Json, conflict, forbidden, success
from scheduler.testing.apiserver.store import Stored
from scheduler.testing.apiserver.target import Target, timestamp

__all__ = ["DeleteOptions", "delete"]

IMMORTAL_NAMESPACES = ("default", "kube-system", "kube-public")


class DeleteOptions(NamedTuple):
    """The part of metav1.DeleteOptions that has a meaning here."""

    grace_period_s: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


def delete(objects: Objects, target: Target, options: DeleteOptions) -> Stored | Json:
    """Delete an object; returns it, or a Status for resources that answer with one.

    Raises:
        ApiStatusError: 403, 404, 409 (a precondition does not hold).

    """
    resource = target.resource
    old = objects.get(target)
    _check_preconditions(target, old, options)
    if resource.kind == "Namespace" and target.name in IMMORTAL_NAMESPACES:
        raise forbidden("namespaces", target.name, "this namespace may not be deleted")
    last = old if options.dry_run else _deleted(objects, target, old, options)
    if resource.returns_deleted:
        return last
    details = {"name": target.name, "group": resource.group, "kind": resource.plural}
    details["uid"] = old.data["metadata"]["uid"]
    return success({key: value for key, value in details.items() if value})


def _deleted(objects: Objects, target: Target, old: Stored, options: DeleteOptions) -> Stored:
    metadata = old.data["metadata"]
    if target.resource.kind == "Pod":
        return _delete_pod(objects, target, old, options.grace_period_s)
    if target.resource.kind == "Namespace":
        marked = _marked(objects, old, 0)
        marked["status"] = {**(old.data.get("status") or {}), "phase": "Terminating"}
        return old if "deletionTimestamp" in metadata else objects.store.put(target.resource, target.key, marked)
    if metadata.get("finalizers"):
        if "deletionTimestamp" in metadata:
            return old
        return objects.store.put(target.resource, target.key, _marked(objects, old, 0))
    objects.store.remove(target.resource, target.key)
    return old


def _delete_pod(objects: Objects, target: Target, old: Stored, asked_s: int | None) -> Stored:
    metadata, spec = old.data["metadata"], old.data["spec"]
    grace_s = spec.get("terminationGracePeriodSeconds", 0) if asked_s is None else asked_s
    if not spec.get("nodeName") or old.data["status"].get("phase") in ("Failed", "Succeeded"):
        grace_s = 0
    grace_s = 1 if grace_s < 0 else grace_s
    if "deletionTimestamp" in metadata and (asked_s is None or grace_s >= metadata["deletionGracePeriodSeconds"]):
        return old  # a second deletion can only shorten the first
    marked = objects.store.put(target.resource, target.key, _marked(objects, old, grace_s))
    if grace_s == 0 and not metadata.get("finalizers"):
        objects.store.remove(target.resource, target.key)
        # parity: the answer shows the pod at the version of its removal
        final = {
            **marked.data,
            "metadata": {**marked.data["metadata"], "resourceVersion": str(objects.store.revision)},
        }
        return Stored(final, objects.store.revision)
    return marked


def _marked(objects: Objects, old: Stored, grace_s: int) -> Json:
    """Return the object marked as being deleted, a generation later."""
    metadata = dict(old.data["metadata"])
    metadata["deletionTimestamp"] = timestamp(objects.clock() + dt.timedelta(seconds=grace_s))
    metadata["deletionGracePeriodSeconds"] = grace_s
    if "generation" in metadata and "deletionTimestamp" not in old.data["metadata"]:
        metadata["generation"] += 1
    return {**old.data, "metadata": metadata}


def _check_preconditions(target: Target, old: Stored, options: DeleteOptions) -> None:
    metadata, kind = old.data["metadata"], target.resource.kind
    if options.uid is not None and options.uid != metadata["uid"]:
        text = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind, target.name, text, target.resource.group)
    version = options.resource_version
    if version is not None and version != metadata["resourceVersion"]:
        text = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
        raise conflict(kind, target.name, text, target.resource.group)
