"""Cases: a cluster and pods as JSON in, decisions with all their reasons out.

The format is that of the conformance oracle, which runs kube-scheduler's own code: one JSON object a line with
``objects`` and ``pods``; the answer says for each pod the verdict, the status of every node, every plugin's weighted
score, the best nodes and the message. The same choices are pinned: ties go to the smallest name, all nodes are
evaluated, a scheduled pod is bound before the next is tried. Podium's own engine decides, the one that the daemon runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from scheduler.api import Code, Pod, Status
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.failure import cut_note
from scheduler.cycle.feasible import NOT_NAMED
from scheduler.cycle.select import choose_smallest_name
from scheduler.framework.diagnosis import FitError
from scheduler.model.decode import decode_object, without_nulls
from scheduler.model.delta import Rejected
from scheduler.model.kinds import KINDS, kind_named
from scheduler.model.meta import KubeObject
from scheduler.plugins import volume_binding
from scheduler.plugins.default_preemption.plugin import ASYNC_PREEMPTION
from scheduler.testing.apiserver.defaults import apply_defaults
from scheduler.testing.apiserver.label_keys import merge_label_keys
from scheduler.testing.apiserver.pods import GATED_MESSAGE, default_pod
from scheduler.testing.apiserver.quantities import normalize_resource_list
from scheduler.testing.clock import FakeClock
from scheduler.testing.harness import Harness
from scheduler.testing.preempted import Preempted, shown_status

__all__ = ["CaseError", "admitted", "answer_case", "delivery_order"]

Json = dict[str, Any]

_FINISHED = ("Succeeded", "Failed")
_DEFAULT_SCHEDULER = "default-scheduler"
_CRITICAL = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_FIRST_START = datetime(2030, 1, 1, tzinfo=UTC)
_NOW = datetime(2026, 7, 1, tzinfo=UTC)  # between the starts of running pods and those of pods bound in the case
# Kinds in the order in which the oracle delivers them; nodes and pods come last.
_ORDER = [kind for kind in KINDS if KINDS[kind].kind not in ("Node", "Pod")]


class CaseError(ValueError):
    """A case cannot be read; the text says which object and why."""


def answer_case(case: Mapping[str, Any]) -> Json:
    """Return the answer to one case; a case that cannot be read gets an answer with ``error``."""
    answer: Json = {"id": case.get("id", ""), "results": []}
    try:
        run = _Run(case)
    except ValueError as error:
        return {**answer, "error": str(error)}
    with run.harness:
        answer["results"] = [run.attempt(pod) for pod in run.pods]
    return answer


class _Run:
    """One case under way."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        given = _list(case, "objects")
        classes = [o for o in given if isinstance(o, dict) and o.get("kind") == "PriorityClass"]
        objects = [admitted(obj, f"objects[{i}]", classes) for i, obj in enumerate(given)]
        self.pods = [
            admitted(
                {"apiVersion": "v1", "kind": "Pod", **pod} if isinstance(pod, dict) else pod, f"pods[{i}]", classes
            )
            for i, pod in enumerate(_list(case, "pods"))
        ]
        profile = _without_volume_writes({"schedulerName": _DEFAULT_SCHEDULER, **_mapping(case, "profile")})
        self.harness = _CaseHarness(
            profile=profile,
            choose=choose_smallest_name,
            clock=FakeClock(_NOW.timestamp()),
            chance=_FirstOfAll(),
            features={ASYNC_PREEMPTION: False},
        )
        for obj in sorted(objects, key=delivery_order):
            if not (isinstance(obj, Pod) and obj.status.phase in _FINISHED):
                self.harness.put(obj)

    def attempt(self, pod: KubeObject) -> Json:
        assert isinstance(pod, Pod)
        harness = self.harness
        result: Json = {
            "pod": pod.pod_key,
            "verdict": "",
            "feasible": [],
            "statuses": {},
            "nominated": "",
            "victims": [],
        }
        if pod.status.phase in _FINISHED:
            return {**result, "verdict": "ignored"}
        events_before, evicted_before = len(harness.events), len(harness.evicted)
        harness.put(pod)
        if pod.node_name:
            return {**result, "verdict": "assigned"}
        if pod.spec.scheduler_name not in harness.core.profiles:
            return {**result, "verdict": "ignored"}
        if not harness.try_pod(pod):
            return {**result, **_gated(harness, pod)}
        if harness.last is None:
            return {**result, "verdict": "skipped", "message": harness.events[events_before].note}
        _report(result, harness.last)
        harness.preempted.report(result, harness.evicted[evicted_before:])
        newest = harness.pod(pod.pod_key)
        if newest is not None and result["verdict"] != "scheduled":
            result["nominated"] = newest.status.nominated_node_name
        return result


class _FirstOfAll:
    """No chance at all: among equals the first is taken, and searches begin at the beginning."""

    def random(self) -> float:
        """Return the largest share, so that no plugin's duration is measured."""
        return 1.0

    def randrange(self, stop: int, /) -> int:
        """Return 0."""
        del stop
        return 0


class _CaseHarness(Harness):
    """Gives bound pods a start time, one second after another, as the oracle does for the kubelet."""

    _started = 0
    preempted: Preempted

    def _observe(self, attempt: Attempt) -> None:
        super()._observe(attempt)
        self.preempted = Preempted(attempt)

    def as_bound(self, pod: Pod, node_name: str) -> Pod:
        bound = super().as_bound(pod, node_name)
        start_time = (_FIRST_START + timedelta(seconds=self._started)).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._started += 1
        return msgspec.structs.replace(bound, status=msgspec.structs.replace(bound.status, start_time=start_time))


# --- answers ---------------------------------------------------------------------------------------------------------


def _report(result: Json, attempt: Attempt) -> None:
    _report_pre_filter(result, attempt)
    if attempt.status is None:
        _report_scheduled(result, attempt)
        return
    status = attempt.status
    result["verdict"] = "unschedulable" if status.is_rejected else "error"
    result["message"] = status.message
    if (note := cut_note(status.message)) != status.message:
        result["event"] = note
    if isinstance(status.cause, FitError):
        diagnosis = status.cause.diagnosis
        result["statuses"] = {name: shown_status(each) for name, each in diagnosis.statuses.items()}
        result["unschedulablePlugins"] = sorted(diagnosis.unschedulable_plugins | diagnosis.pending_plugins)
    if attempt.node_name:
        result["chosen"] = attempt.node_name


def _report_pre_filter(result: Json, attempt: Attempt) -> None:
    said = attempt.pre_filter
    if said is None:
        return
    if said.status is not None:
        result["prefilter"] = shown_status(said.status)
    elif said.node_names is not None:
        result["prefilterNodes"] = sorted(said.node_names)


def _report_scheduled(result: Json, attempt: Attempt) -> None:
    result["verdict"] = "scheduled"
    result["chosen"] = attempt.node_name
    feasible = set(attempt.feasible_nodes)
    result["feasible"] = sorted(feasible)
    if attempt.is_nominated_first and len(attempt.nodes) > 1:
        result["nominatedFirst"] = True
    else:
        statuses = _statuses_beside_feasible(attempt)
        names = (name for name in attempt.nodes.names if name not in feasible)
        result["statuses"] = {name: shown_status(statuses[name]) for name in names}
    if attempt.scores is None:
        result["best"] = [attempt.node_name]
        return
    result["scores"] = dict(attempt.scores.weighted())
    result["totals"] = dict(zip(attempt.scores.nodes.names, attempt.scores.totals.tolist(), strict=True))
    result["best"] = sorted(attempt.best_nodes)


def _statuses_beside_feasible(attempt: Attempt) -> Mapping[str, Status]:
    """Return why nodes were left out; of those that PreFilter did not name, only the plugins that named others."""
    said, diagnosis = attempt.pre_filter, attempt.diagnosis
    if said is not None and said.node_names is not None:
        diagnosis.absent_status = Status.unresolvable(NOT_NAMED.format(" ".join(said.narrowed_by)))
    return diagnosis.statuses


def _gated(harness: Harness, pod: Pod) -> Json:
    framework = harness.core.profiles[pod.spec.scheduler_name]
    for plugin in framework.queue_profile().pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if status is not None and status.code is not Code.SUCCESS:
            return {"verdict": "gated", "plugin": plugin.name, "message": status.message}
    raise CaseError(f"pod {pod.pod_key} is not in the queue, yet no PreEnqueue plugin rejects it")


def _without_volume_writes(profile: Json) -> Json:
    """Return the profile without VolumeBinding at PreBind: nothing here would bind volumes, so they stay assumed."""
    plugins = _mapping(profile, "plugins")
    pre_bind = _mapping(plugins, "preBind")
    pre_bind["disabled"] = [*_list(pre_bind, "disabled"), {"name": volume_binding.NAME}]
    return {**profile, "plugins": {**plugins, "preBind": pre_bind}}


def _list(within: Mapping[str, Any], field: str) -> list[Any]:
    found = within.get(field) or []
    if not isinstance(found, list):
        raise CaseError(f"{field}: not a list")
    return found


def _mapping(within: Mapping[str, Any], field: str) -> Json:
    found = within.get(field) or {}
    if not isinstance(found, dict):
        raise CaseError(f"{field}: not an object")
    return dict(found)


# --- reading ---------------------------------------------------------------------------------------------------------


def delivery_order(obj: KubeObject) -> tuple[int, str]:
    """Return the key by which objects are put: kinds that others refer to first, nodes and pods last, by name."""
    kind = type(obj)
    rank = _ORDER.index(kind) if kind in _ORDER else len(_ORDER) + (KINDS[kind].kind == "Pod")
    return rank, obj.key


def admitted(given: Json, where: str, classes: Iterable[Json]) -> KubeObject:
    """Return the object as an API server would hand it out.

    Args:
        given: the manifest as a user writes it.
        where: names the manifest in errors.
        classes: the PriorityClasses there are, as manifests.

    Raises:
        CaseError: the kind is unknown or the object cannot be understood.
    """
    if not isinstance(given, dict):
        raise CaseError(f"{where}: not an object")
    try:
        kind = kind_named(given.get("kind", ""))
    except LookupError as error:
        raise CaseError(f"{where}: {error}") from None
    manifest: Json = without_nulls(msgspec.json.decode(msgspec.json.encode(given)))  # a copy, faster than copy.deepcopy
    # Types first: whoever fills in defaults relies on them.
    if isinstance(refused := decode_object(kind, msgspec.json.encode(manifest)), Rejected):
        raise CaseError(f"{where}: {refused.reason}")
    info = KINDS[kind]
    metadata = manifest.setdefault("metadata", {})
    if info.namespaced:
        metadata["namespace"] = metadata.get("namespace") or "default"
    metadata.setdefault("uid", _uid(info.kind, metadata.get("namespace", ""), metadata.get("name", "")))
    metadata.setdefault("resourceVersion", "1")
    if info.kind == "Pod":
        _admit_pod(manifest, where, classes)
    else:
        apply_defaults(info.kind, manifest)
    obj = decode_object(kind, msgspec.json.encode(manifest))
    if isinstance(obj, Rejected):
        raise CaseError(f"{where}: {obj.reason}")
    return obj


def _admit_pod(pod: Json, where: str, classes: Iterable[Json]) -> None:
    spec = pod.setdefault("spec", {})
    default_pod(pod)
    merge_label_keys(pod)
    _admit_priority(spec, where, classes)
    status = pod.setdefault("status", {})
    status.setdefault("phase", "Pending")
    _normalize_status(status)
    conditions = status.setdefault("conditions", [])
    if spec.get("schedulingGates") and not any(c.get("type") == "PodScheduled" for c in conditions):
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": GATED_MESSAGE}
        conditions.append(gated)


def _normalize_status(status: Json) -> None:
    holders = [status, *(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    for holder in holders:
        normalize_resource_list(holder, "allocatedResources")
        for field in ("requests", "limits"):
            normalize_resource_list(holder.get("resources"), field)


def _admit_priority(spec: Json, where: str, classes: Iterable[Json]) -> None:
    """Resolve the priority class; unlike the API server, a priority without a class is taken as it is."""
    name = spec.get("priorityClassName", "")
    found: Json | None = None
    if name:
        found = next((c for c in classes if c["metadata"]["name"] == name), None)
        if found is None and name not in _CRITICAL:
            raise CaseError(f"{where}: no PriorityClass with name {name} was found")
        found = found or {"value": _CRITICAL[name]}
    elif spec.get("priority") is None:
        defaults = (c for c in classes if c.get("globalDefault"))
        found = min(defaults, key=lambda c: (c.get("value", 0), c["metadata"]["name"]), default=None)
    if found is not None:
        spec["priority"] = found.get("value", 0)
        spec.setdefault("preemptionPolicy", found.get("preemptionPolicy") or "PreemptLowerPriority")
    spec["priority"] = spec.get("priority") or 0
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _uid(kind: str, namespace: str, name: str) -> str:
    digest = hashlib.md5(f"{kind}/{namespace}/{name}".encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"
