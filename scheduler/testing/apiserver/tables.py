"""Server-side tables: the columns that `kubectl get` prints for pods, nodes and everything else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from scheduler.testing.apiserver.resources import Resource
from scheduler.testing.apiserver.status import Json
from scheduler.testing.apiserver.store import Stored

__all__ = ["table", "wants_table"]

Columns = tuple[tuple[str, int], ...]
"""Name and priority; kubectl shows priority 1 with `-o wide`."""


def wants_table(accept: str) -> bool:
    """Return whether the client asks for a Table first."""
    return "as=Table" in accept.split(",", maxsplit=1)[0]


def table(resource: Resource, items: list[Stored], now: dt.datetime, metadata: Json) -> Json:
    """Return a meta.k8s.io/v1 Table of the objects."""
    columns, cells = _BY_KIND.get(resource.kind, (_GENERIC, _generic_cells))
    definitions = [
        {"name": name, "type": "string", "format": "name" if name == "Name" else "", "description": name}
        | {"priority": priority}
        for name, priority in columns
    ]
    rows = [_row(each, cells(each.data, _age(each.data, now))) for each in items]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**head, "columnDefinitions": definitions, "rows": rows}


def _row(stored: Stored, cells: list[Any]) -> Json:
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": stored.data["metadata"]}
    return {"cells": cells, "object": partial}


def _age(obj: Json, now: dt.datetime) -> str:
    created = dt.datetime.strptime(obj["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%S%z")
    seconds = max(0, int((now - created).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


_GENERIC: Columns = (("Name", 0), ("Age", 0))
_POD: Columns = (
    ("Name", 0),
    ("Ready", 0),
    ("Status", 0),
    ("Restarts", 0),
    ("Age", 0),
    ("IP", 1),
    ("Node", 1),
    ("Nominated Node", 1),
)
_NODE: Columns = (("Name", 0), ("Status", 0), ("Roles", 0), ("Age", 0), ("Version", 0))
_EVENT: Columns = (("Last Seen", 0), ("Type", 0), ("Reason", 0), ("Object", 0), ("Message", 0), ("Name", 1))


def _generic_cells(obj: Json, age: str) -> list[Any]:
    return [obj["metadata"]["name"], age]


def _pod_cells(obj: Json, age: str) -> list[Any]:
    spec, status = obj["spec"], obj["status"]
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    if any(each.get("reason") == "SchedulingGated" for each in status.get("conditions") or ()):
        phase = "SchedulingGated"
    statuses = status.get("containerStatuses") or ()
    ready = f"{sum(bool(each.get('ready')) for each in statuses)}/{len(spec['containers'])}"
    restarts = sum(each.get("restartCount", 0) for each in statuses)
    name, node = obj["metadata"]["name"], spec.get("nodeName") or "<none>"
    return [name, ready, phase, restarts, age, "<none>", node, status.get("nominatedNodeName") or "<none>"]


def _node_cells(obj: Json, age: str) -> list[Any]:
    conditions = {each["type"]: each["status"] for each in obj["status"].get("conditions") or ()}
    state = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    if obj["spec"].get("unschedulable"):
        state += ",SchedulingDisabled"
    version = (obj["status"].get("nodeInfo") or {}).get("kubeletVersion") or ""
    return [obj["metadata"]["name"], state, "<none>", age, version]


def _event_cells(obj: Json, age: str) -> list[Any]:
    regarding = obj.get("involvedObject") or {}
    name = f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}"
    return [age, obj.get("type", ""), obj.get("reason", ""), name, obj.get("message", ""), obj["metadata"]["name"]]


_BY_KIND: dict[str, tuple[Columns, Callable[[Json, str], list[Any]]]] = {
    "Pod": (_POD, _pod_cells),
    "Node": (_NODE, _node_cells),
    "Event": (_EVENT, _event_cells),
}
