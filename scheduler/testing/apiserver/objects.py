"""The verbs on stored objects: create, read, update, patch, with the real server's order of checks.

Every function either commits one change (or none, for writes that alter nothing) or raises ApiStatusError and leaves
the store as it was. Deleting is in `deletion`, binding in `binding`.
"""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from collections.abc import Callable
from typing import Any

from scheduler.testing.apiserver.defaults import apply_defaults, reset_status
from scheduler.testing.apiserver.events_view import event_problems, from_core, to_core
from scheduler.testing.apiserver.patches import APPLY_PATCH, apply_patch
from scheduler.testing.apiserver.pods import (
    admit_priority,
    default_pod,
    prepare_new_pod,
    resize_problems,
    update_problems,
)
from scheduler.testing.apiserver.resources import BY_PATH, Resource
from scheduler.testing.apiserver.status import (
    FieldProblem,
    Json,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    invalid,
    not_found,
)
from scheduler.testing.apiserver.store import Store, Stored
from scheduler.testing.apiserver.target import Target, timestamp, uid_mismatch, without_nulls
from scheduler.testing.apiserver.validation import check_shape, problems_of, required

__all__ = ["Objects"]

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
GENERATED_LENGTH = 5
DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_NAMESPACES = BY_PATH[("", "v1", "namespaces")]
_NODES = BY_PATH[("", "v1", "nodes")]
_PRIORITY_CLASSES = BY_PATH[("scheduling.k8s.io", "v1", "priorityclasses")]
_STORAGE_CLASSES = BY_PATH[("storage.k8s.io", "v1", "storageclasses")]
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


class Objects:
    """The verbs, over one store and one clock."""

    def __init__(self, store: Store, now: Callable[[], dt.datetime]) -> None:
        self.store = store
        self.clock = now

    def now(self) -> str:
        """Return the present time as the API prints it."""
        return timestamp(self.clock())

    def get(self, target: Target) -> Stored:
        """Return the stored object.

        Raises:
            ApiStatusError: 404.

        """
        stored = self.store.table(target.resource).objects.get(target.key)
        if stored is None:
            raise not_found(target.resource.plural, target.name, target.resource.group)
        return stored

    # --- create ------------------------------------------------------------------------------------------------------

    def create(self, target: Target, obj: Json, *, dry_run: bool = False) -> Stored:
        """Create an object in the collection `target`.

        Raises:
            ApiStatusError: 400, 403, 404 (namespace), 409, 422.

        """
        resource = target.resource
        obj = self._decoded(target, obj)
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise internal("resourceVersion should not be set on objects to be created")
        self._check_namespace(target, metadata.get("name", ""))
        target = target._replace(name=self._name_for(target, metadata))
        self._prepare_new(resource, obj)
        self._refuse(resource, obj, self._problems(resource, obj))
        if self.store.table(resource).objects.get(target.key) is not None:
            raise already_exists(resource.plural, target.name, resource.group)
        if dry_run:
            return Stored(obj, self.store.revision)
        return self.store.put(resource, target.key, obj)

    def _name_for(self, target: Target, metadata: Json) -> str:
        name: str = metadata.get("name") or ""
        if not name and metadata.get("generateName"):
            suffix = "".join(secrets.choice(NAME_ALPHABET) for _ in range(GENERATED_LENGTH))
            name = metadata["name"] = metadata["generateName"] + suffix
        if target.resource.namespaced:
            metadata["namespace"] = target.namespace
        return name

    def _prepare_new(self, resource: Resource, obj: Json) -> None:
        metadata = obj["metadata"]
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = self.now()
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"):
            metadata.pop(field, None)
        metadata.pop("generation", None)
        if resource.has_generation:
            metadata["generation"] = 1
        if resource.has_status and not resource.keeps_status_on_create:
            reset_status(resource.kind, obj)
        self._default(resource, obj)
        if resource.kind == "Pod":
            admit_priority(obj, self._all(_PRIORITY_CLASSES))
            prepare_new_pod(obj, self.now(), self.node_labels(obj["spec"].get("nodeName", "")))
        elif resource.kind == "PersistentVolumeClaim":
            self._set_default_storage_class(obj)

    def _set_default_storage_class(self, claim: Json) -> None:
        if "storageClassName" in claim["spec"]:
            return
        for storage_class in self._all(_STORAGE_CLASSES):
            annotations = storage_class["metadata"].get("annotations") or {}
            if annotations.get(DEFAULT_CLASS_ANNOTATION) == "true":
                claim["spec"]["storageClassName"] = storage_class["metadata"]["name"]

    def _check_namespace(self, target: Target, name: str) -> None:
        if not target.resource.namespaced:
            return
        stored = self.store.table(_NAMESPACES).objects.get(target.namespace)
        if stored is None:
            raise not_found("namespaces", target.namespace)
        if (stored.data.get("status") or {}).get("phase") == "Terminating":
            text = f"unable to create new content in namespace {target.namespace} because it is being terminated"
            raise forbidden(target.resource.plural, name, text)

    # --- update ------------------------------------------------------------------------------------------------------

    def update(self, target: Target, obj: Json, *, dry_run: bool = False) -> tuple[Stored, bool]:
        """Replace an object (or its sub-resource); returns it, and whether it was created.

        Raises:
            ApiStatusError: 400, 404, 409 (version or UID differ), 422.

        """
        obj = self._decoded(target, obj)
        name = obj["metadata"].get("name") or target.name
        if name != target.name:
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
        obj["metadata"]["name"] = name
        old = self.store.table(target.resource).objects.get(target.key)
        if old is None and target.resource.create_on_update and not target.subresource:
            obj["metadata"].pop("resourceVersion", None)
            return self.create(target._replace(name=""), obj, dry_run=dry_run), True
        old = self.get(target)
        uid = obj["metadata"].get("uid")
        if uid and uid != old.data["metadata"]["uid"]:
            raise self._conflict(target, uid_mismatch(uid, old))
        return self._replace(target, old, obj, dry_run=dry_run), False

    def patch(self, target: Target, content_type: str, patch: Any, *, dry_run: bool = False) -> tuple[Stored, bool]:
        """Patch an object (or its sub-resource); returns it, and whether it was created (by an apply).

        Raises:
            ApiStatusError: 400, 404, 409, 415, 422.

        """
        resource = target.resource
        old = self.store.table(resource).objects.get(target.key)
        if old is None and content_type == APPLY_PATCH and not target.subresource and isinstance(patch, dict):
            return self.create(target._replace(name=""), patch, dry_run=dry_run), True
        old = self.get(target)
        shown = from_core(old.data) if resource.view_of else old.data
        patched = self._decoded(target, apply_patch(content_type, shown, patch))
        metadata = patched["metadata"]
        if metadata.get("name") != target.name:
            text = f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({target.name})"
            raise bad_request(text)
        if metadata.get("uid") != old.data["metadata"]["uid"]:
            problem = f'Invalid value: "{metadata.get("uid")}": field is immutable'
            self._refuse(resource, patched, [FieldProblem("metadata.uid", "FieldValueInvalid", problem)])
        return self._replace(target, old, patched, dry_run=dry_run), False

    def _replace(self, target: Target, old: Stored, obj: Json, *, dry_run: bool) -> Stored:
        resource, metadata, old_metadata = target.resource, obj["metadata"], old.data["metadata"]
        version = metadata.get("resourceVersion") or ""
        if not version and not resource.unconditional_update:
            problem = FieldProblem(
                "metadata.resourceVersion",
                "FieldValueInvalid",
                "Invalid value: 0: must be specified for an update",
            )
            raise invalid(resource.plural, target.name, [problem], resource.group)
        if version not in ("", "0") and version != old_metadata["resourceVersion"]:
            raise self._conflict(target)
        for field in _SYSTEM_FIELDS:
            metadata.pop(field, None)
            if field in old_metadata:
                metadata[field] = old_metadata[field]
        metadata.pop("managedFields", None)
        if resource.namespaced:
            metadata["namespace"] = target.namespace
        new = self._merged(target, old.data, obj)
        return self._commit_update(target, old, new, dry_run=dry_run)

    def _merged(self, target: Target, old: Json, obj: Json) -> Json:
        """Return the new object: a sub-resource takes its own part from the request, the rest stays."""
        resource = target.resource
        if target.subresource == "status":
            status: Json = obj.get("status") or {}
            if resource.kind == "Pod":
                status = _with_condition_times(status)
                status.setdefault("qosClass", old["status"].get("qosClass", "BestEffort"))
                obj["metadata"].pop("ownerReferences", None)
                if "ownerReferences" in old["metadata"]:
                    obj["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
            new = {**old, "metadata": obj["metadata"], "status": status}
            self._default(resource, new)
            return new
        if resource.has_status:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]
        self._default(resource, obj)
        if resource.kind == "Pod":
            check = resize_problems if target.subresource == "resize" else update_problems
            self._keep_admitted(obj["spec"], old["spec"])
            self._refuse(resource, obj, check(obj, old))
        self._refuse(resource, obj, self._problems(resource, obj))
        return obj

    @staticmethod
    def _keep_admitted(spec: Json, old_spec: Json) -> None:
        """Fill in what admission once set, so that a PUT of the original manifest changes nothing."""
        for field in ("priority", "preemptionPolicy"):
            if field in old_spec:
                spec.setdefault(field, old_spec[field])
        held = spec.get("tolerations") or []
        added = [each for each in old_spec.get("tolerations") or () if "tolerationSeconds" in each and each not in held]
        spec["tolerations"] = [*held, *added]

    def _commit_update(self, target: Target, old: Stored, new: Json, *, dry_run: bool) -> Stored:
        resource, metadata = target.resource, new["metadata"]
        if resource.has_generation and target.subresource != "status" and new.get("spec") != old.data.get("spec"):
            metadata["generation"] = metadata.get("generation", 0) + 1
        metadata["resourceVersion"] = old.data["metadata"]["resourceVersion"]
        if new == old.data:
            return old  # parity: a write that changes nothing makes no new version
        if dry_run:
            return Stored(new, old.revision)
        is_over = not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and is_over and not (new.get("spec") or {}).get("finalizers"):
            self.store.remove(resource, target.key)
            return Stored(new, old.revision)
        return self.store.put(resource, target.key, new)

    # --- shared by the verbs -----------------------------------------------------------------------------------------

    def node_labels(self, name: str) -> Json:
        """Return the labels of a node; empty when there is no such node."""
        stored = self.store.table(_NODES).objects.get(name)
        return {} if stored is None else stored.data["metadata"].get("labels") or {}

    def _all(self, resource: Resource) -> list[Json]:
        return [stored.data for _, stored in self.store.table(resource).scan("")]

    def _decoded(self, target: Target, obj: Json) -> Json:
        """Return a private copy of the request's object, typed as this resource and without nulls."""
        resource = target.resource
        kind, version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
        if (kind, version) != (resource.kind, resource.api_version):
            text = f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {resource.kind}'
            raise bad_request(text)
        check_shape(resource.kind, resource.version, obj)
        copied: Json = without_nulls(obj)
        copied.pop("kind", None)
        copied.pop("apiVersion", None)
        copied.setdefault("metadata", {})
        if resource.kind == "Pod":
            copied.setdefault("spec", {})
        namespace = copied["metadata"].get("namespace")
        if resource.namespaced and namespace and namespace != target.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        return to_core(copied) if resource.view_of else copied

    @staticmethod
    def _default(resource: Resource, obj: Json) -> None:
        if resource.kind == "Pod":
            default_pod(obj)
        else:
            apply_defaults(resource.kind, obj)

    @staticmethod
    def _problems(resource: Resource, obj: Json) -> list[FieldProblem]:
        if resource.kind == "Event":
            name_missing = [] if obj["metadata"].get("name") else [required("metadata.name")]
            return name_missing + event_problems(obj, is_new_api=bool(resource.view_of))
        return problems_of(resource.kind, obj)

    @staticmethod
    def _refuse(resource: Resource, obj: Json, problems: list[FieldProblem]) -> None:
        if problems:
            group = "" if resource.kind == "Event" else resource.group
            raise invalid(resource.kind, obj["metadata"].get("name", ""), problems, group)

    @staticmethod
    def _conflict(target: Target, message: str | None = None) -> Exception:
        resource = target.resource
        if message is None:
            return conflict(resource.plural, target.name, group=resource.group)
        return conflict(resource.plural, target.name, message, resource.group)


def _with_condition_times(status: Json) -> Json:
    """Print the two times of each pod condition as the typed API does: null when unset."""
    conditions = status.get("conditions")
    if not conditions:
        return status
    for condition in conditions:
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)
    return status
