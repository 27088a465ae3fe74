"""The three patch kinds of the API: JSON patch (RFC 6902), merge patch (RFC 7386), strategic merge patch.

A strategic merge knows which lists are merged by which key; the table below holds those of the kinds that this server
has (source: the patchMergeKey tags of k8s.io/api). Lists not in it are replaced.
"""

from __future__ import annotations

import copy
from typing import Any

from scheduler.testing.apiserver.status import ApiStatusError, bad_request, unprocessable_patch

__all__ = ["PATCH_TYPES", "apply_patch"]

Json = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "topologySpreadConstraints": ("topologyKey",),
    "secrets": ("name",),
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "resourceClaimStatuses": ("name",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "allocatedResourcesStatus": ("name",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "drivers": ("name",),
    "reservedFor": ("uid",),
}
_MERGED_SETS = ("finalizers", "podCIDRs")


def apply_patch(content_type: str, current: Json, patch: Any) -> Json:
    """Return the patched object; `current` is not changed.

    Raises:
        ApiStatusError: 400 malformed patch, 415 unknown type, 422 a JSON patch that does not fit.

    """
    if content_type == JSON_PATCH:
        return _apply_json_patch(copy.deepcopy(current), patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal the patch into an object")
    if content_type == STRATEGIC_MERGE_PATCH:
        return _strategic(copy.deepcopy(current), patch)
    # differs: server-side apply is a plain merge here, without field ownership
    if content_type in (MERGE_PATCH, APPLY_PATCH):
        merged: Json = _merge(copy.deepcopy(current), patch)
        return merged
    raise ApiStatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def _merge(current: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    target = current if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = _merge(target.get(key), value)
    return target


# --- strategic merge -------------------------------------------------------------------------------------------------


def _strategic(current: Json, patch: Json) -> Json:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            current[name] = [item for item in current.get(name) or [] if item not in value]
        elif key.startswith("$") or value is None:
            if not key.startswith("$"):
                current.pop(key, None)
        elif isinstance(value, dict):
            held = current.get(key)
            current[key] = _strategic(held if isinstance(held, dict) else {}, value)
        elif isinstance(value, list):
            current[key] = _strategic_list(key, current.get(key) or [], value)
        else:
            current[key] = value
    retained = patch.get("$retainKeys")
    return {key: value for key, value in current.items() if retained is None or key in retained}


def _strategic_list(name: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if name in _MERGED_SETS:
        return current + [item for item in patch if item not in current]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    merge_key = _merge_key(name, patch)
    if merge_key is None:
        return patch
    merged = list(current)
    for item in patch:
        if merge_key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {merge_key}")
        position = next((i for i, held in enumerate(merged) if held.get(merge_key) == item[merge_key]), None)
        if item.get("$patch") == "delete":
            if position is not None:
                del merged[position]
        elif position is None:
            merged.append(_strategic({}, item))
        else:
            merged[position] = _strategic(merged[position], item)
    return merged


def _merge_key(name: str, patch: list[Any]) -> str | None:
    keys = _MERGE_KEYS.get(name)
    if keys is None or not all(isinstance(item, dict) for item in patch):
        return None
    return next((key for key in keys if any(key in item for item in patch)), keys[0])


# --- JSON patch ------------------------------------------------------------------------------------------------------


def _apply_json_patch(document: Any, operations: Any) -> Json:
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("error decoding patch: json: cannot unmarshal the patch into a list of operations")
    try:
        for operation in operations:
            document = _apply_operation(document, operation)
    except (KeyError, IndexError, ValueError, TypeError):
        raise unprocessable_patch() from None
    if not isinstance(document, dict):
        raise unprocessable_patch()
    return document


def _apply_operation(document: Any, operation: Json) -> Any:
    name, path = operation["op"], _pointer(operation["path"])
    if name == "test":
        if _value_at(document, path) != operation["value"]:
            raise ValueError("test failed")
        return document
    if name == "remove":
        return _removed(document, path)
    if name == "add":
        return _added(document, path, operation["value"])
    if name == "replace":
        _value_at(document, path)
        return _added(_removed(document, path), path, operation["value"]) if path else operation["value"]
    if name in ("move", "copy"):
        source = _pointer(operation["from"])
        value = copy.deepcopy(_value_at(document, source))
        return _added(_removed(document, source) if name == "move" else document, path, value)
    raise ValueError(f"unknown operation {name}")


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError("a JSON pointer starts with /")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _value_at(document: Any, path: list[str]) -> Any:
    for step in path:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _removed(document: Any, path: list[str]) -> Any:
    parent = _value_at(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return document


def _added(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _value_at(document, path[:-1])
    if isinstance(parent, list):
        index = len(parent) if path[-1] == "-" else int(path[-1])
        if not 0 <= index <= len(parent):
            raise IndexError(index)
        parent.insert(index, value)
    else:
        parent[path[-1]] = value
    return document
