"""Base of the builders: an immutable manifest with small edits that each give a new builder."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import msgspec

from scheduler.model.decode import decode_object
from scheduler.model.delta import Rejected
from scheduler.model.kinds import KINDS, kind_named
from scheduler.model.meta import KubeObject
from scheduler.testing.terms import Manifest

__all__ = ["Builder", "obj", "resource_list", "stable_uid"]

K = TypeVar("K", bound=KubeObject)


def stable_uid(kind: str, namespace: str, name: str) -> str:
    """Return the UID that test objects of this identity get: always the same, different for every identity."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"podium:{kind}/{namespace}/{name}"))


def resource_list(quantities: Mapping[str, str | int | float], named: Mapping[str, str | int | float]) -> Manifest:
    """Merge quantities by resource name and by keyword (``ephemeral_storage`` means ``ephemeral-storage``)."""
    return {**quantities, **{name.replace("_", "-"): text for name, text in named.items()}}


def obj(kind: type[K] | str, manifest: Mapping[str, Any]) -> K:
    """Decode a manifest as if it came from the API server; a missing UID is derived from kind, namespace and name.

    Args:
        kind: the type, or its name in manifests; a type checker knows the result only for a type.
        manifest: what YAML would give; ``apiVersion`` and ``kind`` may be left out.

    Raises:
        ValueError: the manifest would be rejected.
    """
    cls: Any = kind_named(kind) if isinstance(kind, str) else kind
    meta = dict(manifest.get("metadata", {}))
    meta.setdefault("uid", stable_uid(KINDS[cls].kind, meta.get("namespace", ""), meta.get("name", "")))
    decoded: K | Rejected = decode_object(cls, msgspec.json.encode({**manifest, "metadata": meta}))
    if isinstance(decoded, Rejected):
        raise ValueError(  # noqa: TRY004  the value is wrong, not its type
            f"{KINDS[cls].kind} {decoded.name!r} would be rejected: {decoded.reason}"
        )
    return decoded


class Builder(Generic[K]):
    """A manifest under construction; every method returns a new builder and leaves this one as it is."""

    __slots__ = ("_kind", "_manifest")

    def __init__(self, kind: type[K], manifest: Manifest) -> None:
        self._kind = kind
        self._manifest = manifest

    def obj(self) -> K:
        """Return the typed object, decoded as from the API server.

        Raises:
            ValueError: the manifest would be rejected.
        """
        decoded: K = obj(self._kind, self._manifest)
        return decoded

    def manifest(self) -> Manifest:
        """Return the manifest, with the UID that ``obj`` would derive; yours to change."""
        whole = copy.deepcopy(self._manifest)
        meta = whole["metadata"]
        meta.setdefault("uid", stable_uid(KINDS[self._kind].kind, meta.get("namespace", ""), meta["name"]))
        return whole

    def create_manifest(self) -> Manifest:
        """Return the manifest as one would send it to create the object: without what the server gives."""
        whole = copy.deepcopy(self._manifest)
        for given in ("uid", "resourceVersion"):
            whole["metadata"].pop(given, None)
        return whole

    def set(self, path: str, value: Any) -> Self:
        """Set any field, e.g. ``set("spec.hostPID", True)``."""
        return self._with(value, *path.split("."))

    def label(self, key: str, value: str) -> Self:
        """Set one label."""
        return self._with(value, "metadata", "labels", key)

    def labels(self, labels: Mapping[str, str] | None = None, /, **named: str) -> Self:
        """Set several labels, by mapping or by keyword."""
        return self._merge({**(labels or {}), **named}, "metadata", "labels")

    def annotation(self, key: str, value: str) -> Self:
        """Set one annotation."""
        return self._with(value, "metadata", "annotations", key)

    def uid(self, uid: str) -> Self:
        """Set the UID instead of the derived one."""
        return self._with(uid, "metadata", "uid")

    def resource_version(self, version: str | int) -> Self:
        """Set the resource version."""
        return self._with(str(version), "metadata", "resourceVersion")

    def created(self, timestamp: str) -> Self:
        """Set the creation time (RFC 3339)."""
        return self._with(timestamp, "metadata", "creationTimestamp")

    def terminating(self, timestamp: str = "2030-01-01T00:00:00Z") -> Self:
        """Mark the object as being deleted."""
        return self._with(timestamp, "metadata", "deletionTimestamp")

    def owned_by(self, kind: str, name: str, *, api_version: str = "apps/v1", uid: str = "") -> Self:
        """Add a controlling owner."""
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid or stable_uid(kind, "", name)}
        return self._append({**owner, "controller": True}, "metadata", "ownerReferences")

    def condition(self, type_: str, status: str = "True", *, reason: str = "", message: str = "") -> Self:
        """Add a condition to the status."""
        condition = {"type": type_, "status": status, "reason": reason, "message": message}
        return self._append({key: text for key, text in condition.items() if text}, "status", "conditions")

    def _with(self, value: Any, *path: str) -> Self:
        made = copy.copy(self)
        made._manifest = _replaced(self._manifest, path, value)  # noqa: SLF001  of our own copy
        return made

    def _merge(self, more: Mapping[str, Any], *path: str) -> Self:
        return self._with({**(self._get(*path) or {}), **more}, *path)

    def _append(self, item: Any, *path: str) -> Self:
        return self._with([*(self._get(*path) or ()), item], *path)

    def _get(self, *path: str) -> Any:
        here: Any = self._manifest
        for step in path:
            here = here.get(step)
            if here is None:
                return None
        return here


def _replaced(manifest: Manifest, path: tuple[str, ...], value: Any) -> Manifest:
    """Return a copy with ``value`` at ``path``; only the dictionaries on the way are copied."""
    step, rest = path[0], path[1:]
    return {**manifest, step: _replaced(manifest.get(step) or {}, rest, value) if rest else value}
