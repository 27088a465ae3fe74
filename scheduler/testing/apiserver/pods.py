"""What the real server does to pods: defaults, admission, and what an update may change.

A scheduler relies on the results (tolerations, priority, requests taken from limits, the condition of gated pods), so
they are filled in here exactly as `kubectl create` would have them filled in.
"""

from __future__ import annotations

import copy

from scheduler.model.quantity import parse_quantity_nano
from scheduler.testing.apiserver.label_keys import merge_label_keys
from scheduler.testing.apiserver.pod_level import default_pod_level
from scheduler.testing.apiserver.quantities import normalize_resource_list
from scheduler.testing.apiserver.status import FieldProblem, Json, forbidden
from scheduler.testing.apiserver.validation import forbidden_field

__all__ = ["GATED_MESSAGE", "admit_priority", "default_pod", "prepare_new_pod", "resize_problems", "update_problems"]

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
UPDATE_MESSAGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
DEFAULT_TOLERATION_SECONDS = 300
_CONTRADICTED = (
    "must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name"
)
TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CONTAINER_FIELDS = ("containers", "initContainers")
_MUTABLE_FIELDS = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")


def default_pod(pod: Json) -> None:
    """Set the defaults of the v1 API in place."""
    spec = pod["spec"]
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"
    spec.setdefault("enableServiceLinks", True)
    for field in _CONTAINER_FIELDS:
        for container in spec.get(field) or ():
            _default_container(container, on_host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        if volume.keys() == {"name"}:
            volume["emptyDir"] = {}
    normalize_resource_list(spec, "overhead")
    default_pod_level(spec)


def _default_container(container: Json, *, on_host_network: bool) -> None:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2] if "@" not in image else "digest"
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if on_host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort")
    _default_requests(container)


def _default_requests(holder: Json) -> None:
    resources = holder.get("resources")
    if not resources:
        return
    for field in ("limits", "requests"):
        normalize_resource_list(resources, field)
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def prepare_new_pod(pod: Json, now: str, node_labels: Json) -> None:
    """Set the fresh status, merged label keys, default admission's tolerations, and labels of an assigned node."""
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}
    _add_default_tolerations(spec)
    merge_label_keys(pod)
    copy_topology_labels(pod["metadata"], node_labels)
    if spec.get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": GATED_MESSAGE,
        }
        pod["status"]["conditions"] = [condition]


def copy_topology_labels(metadata: Json, node_labels: Json) -> None:
    """Give a pod its node's region and zone labels (admission PodTopologyLabels)."""
    copied = {key: node_labels[key] for key in TOPOLOGY_LABELS if key in node_labels}
    if copied:
        metadata["labels"] = {**(metadata.get("labels") or {}), **copied}


def _add_default_tolerations(spec: Json) -> None:
    tolerations = list(spec.get("tolerations") or ())
    for key in _NODE_TAINTS:
        if not any(_tolerates_no_execute(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": DEFAULT_TOLERATION_SECONDS,
                },
            )
    spec["tolerations"] = tolerations


def _tolerates_no_execute(toleration: Json, key: str) -> bool:
    return (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"


def _qos_class(spec: Json) -> str:
    containers = [container for field in _CONTAINER_FIELDS for container in spec.get(field) or ()]
    demands = [_demand(container) for container in containers] if not _demand(spec) else [_demand(spec)]
    if not any(demands):
        return "BestEffort"
    guaranteed = all(
        demand.keys() >= {"cpu", "memory"} and all(request == limit for request, limit in demand.values())
        for demand in demands
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _demand(holder: Json) -> dict[str, tuple[int, int]]:
    resources = holder.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    pairs = {
        name: (parse_quantity_nano(requests.get(name, "0")), parse_quantity_nano(limits.get(name, "0")))
        for name in ("cpu", "memory")
    }
    return {name: pair for name, pair in pairs.items() if pair != (0, 0)}


def admit_priority(pod: Json, priority_classes: list[Json]) -> None:
    """Resolve the priority from the named class, or the global default class.

    Raises:
        ApiStatusError: 403, the class does not exist or contradicts the given priority.

    """
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    wanted = spec.get("priorityClassName")
    if wanted:
        found = next((each for each in priority_classes if each["metadata"]["name"] == wanted), None)
        if found is None:
            raise forbidden("pods", name, f"no PriorityClass with name {wanted} was found")
    else:
        defaults = [each for each in priority_classes if each.get("globalDefault")]
        found = min(defaults, key=lambda each: each.get("value", 0)) if defaults else None
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    value = found.get("value", 0) if found else 0
    policy = (found or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.get("priority", value) != value:
        text = "the integer value of priority ({}) " + _CONTRADICTED
        raise forbidden("pods", name, text.format(spec["priority"], value))
    if spec.get("preemptionPolicy", policy) != policy:
        text = "the string value of PreemptionPolicy ({}) " + _CONTRADICTED
        raise forbidden("pods", name, text.format(spec["preemptionPolicy"], policy))
    spec["priority"], spec["preemptionPolicy"] = value, policy


# --- updates ---------------------------------------------------------------------------------------------------------


def update_problems(new: Json, old: Json) -> list[FieldProblem]:
    """Return what a plain update of the spec changes and may not: nearly everything is fixed once created."""
    new_spec, old_spec = new["spec"], old["spec"]
    problems: list[FieldProblem] = []
    if not _contains_all(new_spec.get("tolerations"), old_spec.get("tolerations")):
        problems.append(
            forbidden_field("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        )
    old_gates = old_spec.get("schedulingGates") or []
    added = [gate["name"] for gate in new_spec.get("schedulingGates") or () if gate not in old_gates]
    if added:
        problems.append(
            forbidden_field(
                "spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{added[0]}'"
            )
        )
    munged = copy.deepcopy(new_spec)
    for field in _CONTAINER_FIELDS:
        _keep(munged.get(field), old_spec.get(field), "image")
    for field in (*_MUTABLE_FIELDS, *_gated_fields(new_spec, old_spec)):
        munged.pop(field, None)
        if field in old_spec:
            munged[field] = old_spec[field]
    if munged != old_spec:
        problems.append(forbidden_field("spec", UPDATE_MESSAGE))
    return problems


def resize_problems(new: Json, old: Json) -> list[FieldProblem]:
    """Return what a resize changes besides the containers' resources."""
    munged = copy.deepcopy(new["spec"])
    for field in _CONTAINER_FIELDS:
        _keep(munged.get(field), old["spec"].get(field), "resources")
    if munged != old["spec"]:
        return [forbidden_field("spec", "only cpu and memory resources are mutable")]
    return []


def _keep(new: list[Json] | None, old: list[Json] | None, field: str) -> None:
    for mine, theirs in zip(new or (), old or (), strict=False):
        if field in theirs:
            mine[field] = theirs[field]


def _contains_all(new: list[Json] | None, old: list[Json] | None) -> bool:
    def bare(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [bare(each) for each in new or ()]
    return all(bare(each) in kept for each in old or ())


def _gated_fields(new_spec: Json, old_spec: Json) -> tuple[str, ...]:
    """Return the node constraints that a gated pod may tighten."""
    if not old_spec.get("schedulingGates"):
        return ()
    old_selector, new_selector = old_spec.get("nodeSelector") or {}, new_spec.get("nodeSelector") or {}
    fields = ["affinity"] if _only_adds_affinity(new_spec, old_spec) else []
    return (*fields, "nodeSelector") if old_selector.items() <= new_selector.items() else tuple(fields)


def _only_adds_affinity(new_spec: Json, old_spec: Json) -> bool:
    """A gated pod's node affinity may be set where there was none; its other affinities are fixed."""
    new_affinity, old_affinity = new_spec.get("affinity") or {}, old_spec.get("affinity") or {}
    rest = [
        {key: value for key, value in each.items() if key != "nodeAffinity"} for each in (new_affinity, old_affinity)
    ]
    old_required = (old_affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    new_required = (new_affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return rest[0] == rest[1] and (old_required is None or old_required == new_required)
