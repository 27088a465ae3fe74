"""``podium simulate -f``: where the pods of a directory of manifests would go, and why the others would not.

Workloads (Deployment, ReplicaSet, StatefulSet, Job) stand for the pods they would make; nodes and everything else that
plugins read come from the same files. Every pod is tried once, in file order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from scheduler.api import Pod
from scheduler.model.decode import without_nulls
from scheduler.model.kinds import KINDS
from scheduler.testing.cases import CaseError, admitted, delivery_order
from scheduler.testing.harness import Harness

__all__ = ["simulate_manifests"]

Json = dict[str, Any]

_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
_KINDS = frozenset(info.kind for info in KINDS.values())
_PROFILE = "default-scheduler"


def simulate_manifests(path: Path, output: str) -> int:
    """Print the placements; returns 0 if every pod found a node, else 1."""
    try:
        documents = list(_documents(path))
        rows = _place(documents)
    except (CaseError, OSError, yaml.YAMLError) as error:
        print(f"podium simulate: {error}", file=sys.stderr)
        return 1
    if output == "json":
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
    else:
        print("\n".join(_table(rows)))
    return 0 if all(row["node"] for row in rows) else 1


def _documents(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield (where it stands, manifest) for every object in the files, lists taken apart.

    Raises:
        OSError: a file cannot be read.
        yaml.YAMLError: a file is not YAML.
        CaseError: there is nothing to read.
    """
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml", ".json"))
    if not files:
        raise CaseError(f"{path}: no .yaml, .yml or .json file")
    for file in files:
        for number, document in enumerate(yaml.safe_load_all(file.read_text()), start=1):
            yield from _objects(document, f"{file.name}#{number}")


def _objects(document: object, where: str) -> Iterator[tuple[str, Json]]:
    if document is None:
        return
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(kind, str):
        raise CaseError(f"{where}: not a Kubernetes object")
    if kind == "List":
        for i, item in enumerate(document.get("items") or ()):
            yield from _objects(item, f"{where}.items[{i}]")
    elif kind in _WORKLOADS:
        try:
            pods = list(_pods_of(without_nulls(document)))
        except (AttributeError, TypeError, ValueError) as error:
            raise CaseError(f"{where}: {kind} cannot be understood: {error}") from error
        yield from ((f"{where} pod {i}", pod) for i, pod in enumerate(pods))
    elif kind in _KINDS:  # ConfigMaps and the like say nothing about where pods run
        yield where, document


def _pods_of(workload: Json) -> Iterator[Json]:
    """Yield the pods that a workload would make, owned by it."""
    meta, spec = workload.get("metadata") or {}, workload.get("spec") or {}
    template = spec.get("template") or {}
    count = spec.get("replicas", spec.get("parallelism", 1))
    owner = {"apiVersion": workload.get("apiVersion", ""), "kind": workload["kind"], "name": meta.get("name", "")}
    for i in range(int(count)):
        labels = (template.get("metadata") or {}).get("labels") or {}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{meta.get('name', '')}-{i}",
                "namespace": meta.get("namespace", "default"),
                "labels": labels,
                "ownerReferences": [{**owner, "uid": owner["name"], "controller": True}],
            },
            "spec": template.get("spec") or {},
        }


def _place(documents: Sequence[tuple[str, Json]]) -> list[Json]:
    classes = [document for _, document in documents if document["kind"] == "PriorityClass"]
    objects, pods = [], []
    for where, document in documents:
        decoded = admitted(document, where, classes)
        if isinstance(decoded, Pod) and not decoded.node_name:
            pods.append(_for_profile(decoded))
        else:
            objects.append(decoded)
    with Harness(profile={"schedulerName": _PROFILE}) as harness:
        harness.put(*sorted(objects, key=delivery_order))
        return [_try(harness, pod) for pod in pods]


def _for_profile(pod: Pod) -> Pod:
    """Return the pod as if it named the simulated profile, whoever it names."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduler_name=_PROFILE))


def _try(harness: Harness, pod: Pod) -> Json:
    node = harness.schedule(pod)
    if node:
        return {"pod": pod.pod_key, "node": node, "reason": ""}
    if pod.spec.scheduling_gates:
        return {"pod": pod.pod_key, "node": "", "reason": "waiting for scheduling gates"}
    status = harness.last.status if harness.last is not None else None
    return {"pod": pod.pod_key, "node": "", "reason": status.message if status is not None else "not tried"}


def _table(rows: Iterable[Json]) -> list[str]:
    head = {"pod": "POD", "node": "NODE", "reason": "REASON"}
    cells = [head, *({**row, "node": row["node"] or "<none>"} for row in rows)]
    width = {column: max(len(row[column]) for row in cells) for column in ("pod", "node")}
    return [f"{row['pod']:<{width['pod']}}  {row['node']:<{width['node']}}  {row['reason']}".rstrip() for row in cells]
