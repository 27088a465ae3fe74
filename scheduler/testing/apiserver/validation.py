"""The schema rules that schedulers and their tests run into; each finds problems, none raises.

Not a copy of the API's validation: what no scheduler test depends on is let through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from scheduler.model.quantity import QuantityError, parse_quantity_nano
from scheduler.testing.apiserver.status import FieldProblem, Json, bad_request

__all__ = ["check_shape", "metadata_problems", "problems_of"]

SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUANTITY_MESSAGE = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")

Problems = Iterator[FieldProblem]


def _invalid(field: str, value: object, why: str) -> FieldProblem:
    return FieldProblem(field, "FieldValueInvalid", f'Invalid value: "{value}": {why}')


def required(field: str, detail: str = "") -> FieldProblem:
    """Return the problem of an absent field."""
    return FieldProblem(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def forbidden_field(field: str, why: str) -> FieldProblem:
    """Return the problem of a field that may not be set or changed."""
    return FieldProblem(field, "FieldValueForbidden", f"Forbidden: {why}")


# --- shape: what JSON decoding into the typed object would refuse (400) ----------------------------------------------


def check_shape(kind: str, version: str, obj: Json) -> None:
    """Refuse values of the wrong JSON type, and texts that are no quantities.

    Raises:
        ApiStatusError: 400.

    """
    wrong = next(_shape_problems(kind, obj), None)
    if wrong is not None:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {wrong}')


def _shape_problems(kind: str, obj: Json) -> Iterator[str]:
    for field in ("metadata", "spec", "status"):
        if field in obj and not isinstance(obj[field], dict | None):
            yield _type_problem(obj[field], f"{kind}.{field}", f"{kind}{field.capitalize()}")
            return
    metadata = obj.get("metadata") or {}
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if values is None:
            continue
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            yield _type_problem(values, f"ObjectMeta.metadata.{field}", "string")
    if kind == "Pod":
        yield from _pod_shape(obj.get("spec") or {})
    if kind == "Node":
        for field in ("capacity", "allocatable"):
            yield from _quantity_map((obj.get("status") or {}).get(field))


def _pod_shape(spec: Json) -> Iterator[str]:
    for field in ("containers", "initContainers", "tolerations", "schedulingGates", "volumes"):
        value = spec.get(field)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
            yield _type_problem(value, f"PodSpec.spec.{field}", f"[]v1.{field[0].upper()}{field[1:-1]}")
            return
    yield from _quantity_map(spec.get("overhead"))
    holders = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ()), spec]
    for holder in holders:
        for field in ("requests", "limits"):
            yield from _quantity_map((holder.get("resources") or {}).get(field))


def _quantity_map(values: Any) -> Iterator[str]:
    if values is None:
        return
    if not isinstance(values, dict):
        yield _type_problem(values, "ResourceRequirements.resources", "v1.ResourceList")
        return
    for value in values.values():
        if _nano(value) is None:
            yield QUANTITY_MESSAGE


def _type_problem(value: object, path: str, wanted: str) -> str:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    name = names.get(type(value), "null")
    return f"json: cannot unmarshal {name} into Go struct field {path} of type {wanted}"


def _nano(value: Any) -> int | None:
    try:
        return parse_quantity_nano(value)
    except (QuantityError, TypeError):
        return None


# --- values (422) ----------------------------------------------------------------------------------------------------


def metadata_problems(kind: str, metadata: Json) -> Problems:
    """Yield what is wrong with name and labels."""
    name = metadata.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif not (_LABEL if kind in ("Namespace", "Service") else _SUBDOMAIN).fullmatch(name) or len(name) > 253:
        yield _invalid("metadata.name", name, SUBDOMAIN_MESSAGE)
    for key, value in (metadata.get("labels") or {}).items():
        if not _QUALIFIED_NAME.fullmatch(key):
            yield _invalid("metadata.labels", key, "name part must be a qualified name")
        if not _LABEL_VALUE.fullmatch(value):
            yield _invalid(
                "metadata.labels", value, "a valid label must be an empty string or consist of alphanumerics"
            )


def _pod_problems(obj: Json) -> Problems:
    spec = obj["spec"]
    if not spec.get("containers"):
        yield required("spec.containers")
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _container_problems(f"spec.{field}[{index}]", container)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _container_problems(path: str, container: Json) -> Problems:
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    elif not _LABEL.fullmatch(name):
        yield _invalid(f"{path}.name", name, "a lowercase RFC 1123 label was expected")
    if not container.get("image"):
        yield required(f"{path}.image")
    for index, port in enumerate(container.get("ports") or ()):
        if not port.get("containerPort"):
            yield required(f"{path}.ports[{index}].containerPort")
        if not 0 <= port.get("hostPort", 0) <= 65535:
            yield _invalid(
                f"{path}.ports[{index}].hostPort", port["hostPort"], "must be between 1 and 65535, inclusive"
            )
    yield from _resource_problems(f"{path}.resources", container.get("resources") or {})


def _resource_problems(path: str, resources: Json) -> Problems:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for field, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            is_standard = name in _CONTAINER_RESOURCES or name.startswith("hugepages-")
            if not is_standard and ("/" not in name or not _QUALIFIED_NAME.fullmatch(name)):
                yield _invalid(f"{path}.{field}[{name}]", name, "must be a standard resource for containers")
            if (_nano(value) or 0) < 0:
                yield _invalid(f"{path}.{field}[{name}]", value, "must be greater than or equal to 0")
    for name, value in requests.items():
        if name in limits and (_nano(value) or 0) > (_nano(limits[name]) or 0):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield _invalid(f"{path}.requests", value, why)
        if name not in limits and name not in _CONTAINER_RESOURCES:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _lease_problems(obj: Json) -> Problems:
    spec = obj.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield FieldProblem(
            "spec.leaseDurationSeconds",
            "FieldValueInvalid",
            f"Invalid value: {duration}: must be greater than 0",
        )


def _priority_class_problems(obj: Json) -> Problems:
    name, value = obj["metadata"]["name"], obj.get("value", 0)
    if value > 1_000_000_000 and not name.startswith("system-"):
        yield FieldProblem(
            "value",
            "FieldValueForbidden",
            "Forbidden: maximum allowed value of a user defined priority is 1000000000",
        )


_BY_KIND: dict[str, Callable[[Json], Problems]] = {
    "Pod": _pod_problems,
    "Lease": _lease_problems,
    "PriorityClass": _priority_class_problems,
}


def problems_of(kind: str, obj: Json) -> list[FieldProblem]:
    """Return everything that is wrong with a complete object."""
    found = list(metadata_problems(kind, obj["metadata"]))
    check = _BY_KIND.get(kind)
    return found if check is None else [*found, *check(obj)]
