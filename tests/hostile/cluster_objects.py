"""Hostile objects that are no pods: nodes, volumes and claims, budgets, namespaces, and what owns pods.

Where such an object matters, a pod that depends on it is tried, and what becomes of it stands beside.
"""

from __future__ import annotations

from typing import Any

from tests.hostile.table import ACCEPTED, REFUSED, WIRE, Json, Row, merged, node, obj, pod

__all__ = ["ROWS"]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BAD_OPERATOR = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}
BAD_KEY = {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}

ON_BAD_NODE = pod({"nodeSelector": {"only": "bad"}})
WITH_CLAIM = pod({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "bad"}}]})
ANY_POD = pod(container={"resources": {"requests": {"cpu": "100m"}}}, metadata={"labels": {"app": "a"}})


def nodes(name: str, changes: Json, api: str, expect: str, then: str) -> Row:
    return Row(name, node(changes), api, expect, kind="Node", pod=ON_BAD_NODE, then=then)


def offers(amounts: Any) -> Json:
    return {"status": {"allocatable": amounts, "capacity": {}}}


def claim(spec: Json, **parts: Any) -> Json:
    base = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    changes = merged(merged(base, {"spec": spec}), parts)
    return obj("PersistentVolumeClaim", "v1", changes, namespace="default")


def volume(spec: Json, **parts: Any) -> Json:
    base = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "manual",
        "csi": {"driver": "d.example.com", "volumeHandle": "h"},
        "claimRef": {"namespace": "default", "name": "bad", "uid": "uid-PersistentVolumeClaim-bad"},
    }
    return obj("PersistentVolume", "v1", merged({"spec": merged(base, spec)}, parts))


BOUND = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "status": {"phase": "Bound"}}
BOUND_CLAIM = claim({"volumeName": "bad", "storageClassName": "manual"}, **BOUND)


def claims(name: str, made: Json | bytes, api: str, expect: str, then: str) -> Row:
    return Row(name, made, api, expect, kind="PersistentVolumeClaim", pod=WITH_CLAIM, then=then)


def volumes(name: str, made: Json | bytes, api: str, expect: str, then: str) -> Row:
    others = (BOUND_CLAIM,)
    return Row(name, made, api, expect, kind="PersistentVolume", others=others, pod=WITH_CLAIM, then=then)


def other(kind: str, version: str, name: str, changes: Json, api: str, expect: str, *, namespaced: bool = True,
          tried: Json = ANY_POD, then: str = "scheduled", others: tuple[Json, ...] = ()) -> Row:  # fmt: skip
    made = obj(kind, version, changes, namespace="default" if namespaced else None)
    return Row(name, made, api, expect, kind=kind, pod=tried, then=then, others=others)


NODES = [
    nodes("nothing on offer", {"status": {"allocatable": None, "capacity": None}}, ACCEPTED, "taken", "pending: 0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("no room for pods", offers({"pods": "0"}), ACCEPTED, "taken", "pending: 0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("room for a negative number of pods", offers({"pods": "-5"}), REFUSED, "taken", "pending: 0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("negative cpu", offers({"cpu": "-64"}), REFUSED, "taken", "scheduled"),
    nodes("cpu 1e10000000", offers({"cpu": "1e10000000"}), WIRE, "taken", "scheduled"),
    nodes("memory of 5,000 nines", offers({"memory": "9" * 5_000}), ACCEPTED, "taken", "scheduled"),
    nodes("memory that is none", offers({"memory": "lots"}), REFUSED, "rejected: status.allocatable[memory]: quantity 'lots' must match", "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("memory as a number", offers({"memory": 2**40}), ACCEPTED, "taken", "scheduled"),
    nodes("allocatable as a list", offers(["cpu"]), REFUSED, "rejected: Expected `object`, got `array` - at `$.status.allocatable`", "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("a thousand resources", offers({f"example.com/r{i}": "1" for i in range(1_000)}), ACCEPTED, "taken", "scheduled"),
    nodes("a resource without a name", offers({"": "1"}), ACCEPTED, "taken", "scheduled"),
    nodes("spec null", {"spec": None}, ACCEPTED, "taken", "scheduled"),
    nodes("status null", {"status": None}, ACCEPTED, "taken", "pending: 0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("unschedulable as a text", {"spec": {"unschedulable": "yes"}}, REFUSED, "rejected: Expected `bool`, got `str` - at `$.spec.unschedulable`", "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("taints as a text", {"spec": {"taints": "none"}}, REFUSED, "rejected: Expected `array`, got `str` - at `$.spec.taints`", "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("a taint of nothing", {"spec": {"taints": [{}]}}, REFUSED, "taken", "scheduled"),
    nodes("a taint of an unknown effect", {"spec": {"taints": [{"key": "a", "effect": "Explode"}]}}, REFUSED, "taken", "scheduled"),
    nodes("a taint without a key", {"spec": {"taints": [{"key": "", "effect": "NoSchedule"}]}}, REFUSED, "taken", "pending: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node"),
    nodes("the same taint twice", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}, REFUSED, "taken", "pending: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node"),
    nodes("5,000 taints", {"spec": {"taints": [
        {"key": f"k{i}", "effect": "PreferNoSchedule"} for i in range(5_000)]}}, ACCEPTED, "taken", "scheduled"),
    nodes("a taint of a megabyte", {"spec": {"taints": [
        {"key": "a", "value": "x" * 2**20, "effect": "NoSchedule"}]}}, REFUSED, "taken", "pending: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node"),
    nodes("20,000 labels", {"metadata": {"labels": {f"k{i}": "v" for i in range(20_000)}}}, ACCEPTED, "taken", "scheduled"),
    nodes("annotations of 5 MB", {"metadata": {"annotations": {"a": "x" * (5 << 20)}}}, REFUSED, "taken", "scheduled"),
    nodes("labels with control characters", {"metadata": {"labels": {"a\n": "\x1b[2J"}}}, REFUSED, "taken", "scheduled"),
    nodes("a zone of 10,000 characters", {"metadata": {"labels": {
        "topology.kubernetes.io/zone": "z" * 10_000}}}, REFUSED, "taken", "scheduled"),
    nodes("a zone of NULs", {"metadata": {"labels": {"topology.kubernetes.io/zone": ":\0:"}}}, REFUSED, "taken", "scheduled"),
    nodes("10,000 images", {"status": {"images": [
        {"names": [f"example.com/{i}"], "sizeBytes": 1} for i in range(10_000)]}}, ACCEPTED, "taken", "scheduled"),
    nodes("an image of negative size", {"status": {"images": [
        {"names": ["example.com/app:latest"], "sizeBytes": -1}]}}, ACCEPTED, "taken", "scheduled"),
    nodes("an image of the largest size", {"status": {"images": [
        {"names": ["example.com/app:latest"], "sizeBytes": 2**63 - 1}]}}, ACCEPTED, "taken", "scheduled"),
    nodes("an image beyond int64", {"status": {"images": [{"names": ["a"], "sizeBytes": 2**63}]}}, REFUSED, "rejected: Expected `int` <= 9223372036854775807 - at `$.status.images[0].sizeBytes`", "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    nodes("an image without names", {"status": {"images": [{"names": None, "sizeBytes": 5}]}}, ACCEPTED, "taken", "scheduled"),
    nodes("conditions of nonsense", {"status": {"conditions": [{"type": "", "status": "Perhaps"}] * 100}}, ACCEPTED, "taken", "scheduled"),
    nodes("features nobody knows", {"status": {"declaredFeatures": ["a b", ""]}}, WIRE, "taken", "scheduled"),
    nodes("being deleted", {"metadata": {"deletionTimestamp": "soon"}}, WIRE, "taken", "scheduled"),
    nodes("a name with a line end", {"metadata": {"name": "a\nb"}}, REFUSED, "taken", "scheduled"),
    nodes("a name of 10,000 characters", {"metadata": {"name": "n" * 10_000}}, REFUSED, "taken", "scheduled"),
    nodes("no name", {"metadata": {"name": ""}}, WIRE, "rejected: metadata.name is missing", "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
]  # fmt: skip

CLAIMS = [
    claims("no spec", {**claim({}), "spec": None}, REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("a size that is none", claim({"resources": {"requests": {"storage": "lots"}}}), REFUSED, "rejected: spec.resources.requests[storage]: quantity 'lots' must match", 'pending: 0/2 nodes are available: persistentvolumeclaim "bad" not found'),
    claims("a size of 5,000 nines", claim({"resources": {"requests": {"storage": "9" * 5_000}}}), ACCEPTED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("a negative size", claim({"resources": {"requests": {"storage": "-1"}}}), REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("no access modes", claim({"accessModes": None}), REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("an unknown access mode", claim({"accessModes": ["Sometimes"]}), REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("a class that does not exist", claim({"storageClassName": "none"}), ACCEPTED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("a class whose name is a number", claim({"storageClassName": 5}), REFUSED, "rejected: Expected `str | null`, got `int` - at `$.spec.storageClassName`", 'pending: 0/2 nodes are available: persistentvolumeclaim "bad" not found'),
    claims("an empty class", claim({"storageClassName": ""}), ACCEPTED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("an unknown volume mode", claim({"volumeMode": "Plasma"}), REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("bound to a volume that does not exist", claim({"volumeName": "none"}, **BOUND), WIRE, "taken", 'pending: 0/2 nodes are available: persistentvolume "none" not found'),
    claims("said to be bound, to nothing", claim({}, **BOUND), WIRE, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("lost", claim({"volumeName": "none"}, status={"phase": "Lost"}), WIRE, "taken", 'pending: 0/2 nodes are available: persistentvolumeclaim "bad" bound to non-existent persistentvolume "none"'),
    claims("an unknown phase", claim({}, status={"phase": "Banana"}), WIRE, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("a selector that is a text", claim({"selector": "all"}), REFUSED, "rejected: Expected `object | null`, got `str` - at `$.spec.selector`", 'pending: 0/2 nodes are available: persistentvolumeclaim "bad" not found'),
    claims("a selector by an unknown operator", claim({"selector": BAD_OPERATOR}), REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    claims("being deleted", claim({}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), WIRE, "taken", 'pending: 0/2 nodes are available: persistentvolumeclaim "bad" is being deleted'),
    claims("on a node that does not exist", claim({}, metadata={"annotations": {
        "volume.kubernetes.io/selected-node": "nowhere"}}), ACCEPTED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
]  # fmt: skip

VOLUMES = [
    volumes("no spec", {**volume({}), "spec": None}, REFUSED, "taken", "scheduled"),
    volumes("a capacity that is none", volume({"capacity": {"storage": "lots"}}), REFUSED, "rejected: spec.capacity[storage]: quantity 'lots' must match", 'pending: 0/2 nodes are available: persistentvolume "bad" not found'),
    volumes("a capacity of 5,000 nines", volume({"capacity": {"storage": "9" * 5_000}}), REFUSED, "taken", "scheduled"),
    volumes("a negative capacity", volume({"capacity": {"storage": "-1"}}), REFUSED, "taken", "scheduled"),
    volumes("no source", volume({"csi": None}), REFUSED, "taken", "scheduled"),
    volumes("a driver without a name", volume({"csi": {"driver": "", "volumeHandle": ""}}), REFUSED, "taken", "scheduled"),
    volumes("affinity to nothing", volume({"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}), REFUSED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."),
    volumes("affinity null", volume({"nodeAffinity": {"required": None}}), REFUSED, "taken", "scheduled"),
    volumes("affinity by an unknown operator", volume({"nodeAffinity": {"required": {
        "nodeSelectorTerms": [BAD_OPERATOR]}}}), REFUSED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."),
    volumes("affinity to the missing", volume({"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "no-such", "operator": "Exists"}]}]}}}), ACCEPTED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."),
    volumes("5,000 terms of affinity", volume({"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(5_000)]}}}), ACCEPTED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."),
    volumes("bound to another claim", volume({"claimRef": {"name": "another", "uid": "u"}}), ACCEPTED, "taken", "scheduled"),
    volumes("bound to nobody", volume({"claimRef": None}), ACCEPTED, "taken", "scheduled"),
    volumes("a zone that no node has", volume({}, metadata={"labels": {
        "topology.kubernetes.io/zone": "mars"}}), ACCEPTED, "taken", "pending: 0/2 nodes are available: 2 node(s) had no available volume zone."),
    volumes("a zone of underscores", volume({}, metadata={"labels": {
        "topology.kubernetes.io/zone": "__a__b__"}}), REFUSED, "taken", "scheduled"),
]  # fmt: skip

STORAGE = "storage.k8s.io/v1"
DELAYED = claim({"storageClassName": "bad"})


def storage_class(name: str, changes: Json, api: str, expect: str, then: str) -> Row:
    base = {"provisioner": "p.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    changes = merged(base, changes)
    return other("StorageClass", STORAGE, name, changes, api, expect, namespaced=False, tried=WITH_CLAIM, then=then,
                 others=(DELAYED,))  # fmt: skip


def csi_node(name: str, spec: Any, api: str, expect: str) -> Row:
    made = merged(obj("CSINode", STORAGE, {"metadata": {"name": "good-1"}}), {"spec": spec})
    return Row(name, made, api, expect, kind="CSINode", pod=ANY_POD, then="scheduled")


CLASSES = [
    storage_class("an unknown binding mode", {"volumeBindingMode": "Someday"}, REFUSED, "taken", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    storage_class("no provisioner", {"provisioner": ""}, REFUSED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."),
    storage_class("a provisioner that is a number", {"provisioner": 5}, REFUSED, "rejected: Expected `str`, got `int` - at `$.provisioner`", "pending: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"),
    storage_class("topologies of nothing", {"allowedTopologies": [{}]}, REFUSED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."),
    storage_class("a topology nobody has", {"allowedTopologies": [{"matchLabelExpressions": [
        {"key": "no-such", "values": ["a"]}]}]}, ACCEPTED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."),
    storage_class("a topology without values", {"allowedTopologies": [{"matchLabelExpressions": [
        {"key": "a", "values": []}]}]}, REFUSED, "taken", "pending: 0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."),
    csi_node("no drivers", {"drivers": None}, ACCEPTED, "taken"),
    csi_node("a negative limit", {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": -1}}]}, REFUSED, "taken"),
    csi_node("a limit beyond int32", {"drivers": [
        {"name": "d", "nodeID": "n", "allocatable": {"count": 2**31}}]}, REFUSED, "rejected: Expected `int` <= 2147483647 - at `$.spec.drivers[0].allocatable.count`"),
    csi_node("the same driver twice", {"drivers": [{"name": "d", "nodeID": "n"}] * 2}, REFUSED, "taken"),
    csi_node("drivers as a text", {"drivers": "all"}, REFUSED, "rejected: Expected `array`, got `str` - at `$.spec.drivers`"),
    other("CSIStorageCapacity", STORAGE, "a capacity that is none", {
        "storageClassName": "bad", "capacity": "lots"}, REFUSED, "rejected: capacity: quantity 'lots' must match"),
    other("CSIStorageCapacity", STORAGE, "a topology by an unknown operator", {
        "storageClassName": "bad", "capacity": "1Gi", "nodeTopology": BAD_OPERATOR}, REFUSED, "taken"),
    other("CSIDriver", STORAGE, "attaching perhaps", {"spec": {"attachRequired": "perhaps"}}, REFUSED, "rejected: Expected `bool | null`, got `str` - at `$.spec.attachRequired`",
          namespaced=False),
    other("VolumeAttachment", STORAGE, "of nothing to nowhere", {"spec": {
        "attacher": "a", "nodeName": "nowhere", "source": {}}}, REFUSED, "taken", namespaced=False),
]  # fmt: skip


def budget(name: str, changes: Json, api: str, expect: str) -> Row:
    """Return a budget and a pod that must evict one to run."""
    victim = pod(
        {
            "nodeName": "good-1",
            "priority": 1,
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "4"}}}],
        },
        metadata={"name": "victim", "uid": "uid-victim", "labels": {"app": "a"}},
    )
    urgent = pod(
        {"priority": 1_000, "nodeSelector": {"kubernetes.io/hostname": "good-1"}},
        container={"resources": {"requests": {"cpu": "4"}}},
    )
    made = obj("PodDisruptionBudget", "policy/v1", changes, namespace="default")
    then = "scheduled"  # a budget is kept where it can be, and never a reason to wait
    return Row(name, made, api, expect, kind="PodDisruptionBudget", others=(victim,), pod=urgent, then=then)


A_APP = {"matchLabels": {"app": "a"}}
POLICIES = [
    budget("no selector", {"spec": {}}, ACCEPTED, "taken"),
    budget("a selector by an unknown operator", {"spec": {"selector": BAD_OPERATOR}}, REFUSED, "taken"),
    budget("a selector with an impossible key", {"spec": {"selector": BAD_KEY}}, REFUSED, "taken"),
    budget("a selector that is a list", {"spec": {"selector": []}}, REFUSED, "rejected: Expected `object | null`, got `array` - at `$.spec.selector`"),
    budget("a negative allowance", {"spec": {"selector": A_APP}, "status": {"disruptionsAllowed": -1}}, WIRE, "taken"),
    budget("the largest allowance", {"spec": {"selector": A_APP}, "status": {
        "disruptionsAllowed": 2**31 - 1}}, WIRE, "taken"),
    budget("an allowance beyond int32", {"spec": {"selector": A_APP}, "status": {
        "disruptionsAllowed": 2**31}}, WIRE, "rejected: Expected `int` <= 2147483647 - at `$.status.disruptionsAllowed`"),
    budget("pods disrupted at no time", {"spec": {"selector": A_APP}, "status": {
        "disruptedPods": {"victim": None}}}, WIRE, "taken"),
    budget("5,000 pods disrupted", {"spec": {"selector": A_APP}, "status": {
        "disruptedPods": {f"p{i}": "2026-01-01T00:00:00Z" for i in range(5_000)}}}, WIRE, "taken"),
    other("PriorityClass", "scheduling.k8s.io/v1", "a value beyond int32", {"value": 2**31}, REFUSED, "rejected: Expected `int` <= 2147483647 - at `$.value`",
          namespaced=False),
    other("PriorityClass", "scheduling.k8s.io/v1", "a value that is a text", {"value": "high"}, REFUSED, "rejected: Expected `int`, got `str` - at `$.value`",
          namespaced=False),
]  # fmt: skip

IN_BAD_NAMESPACES = pod({"affinity": {"podAntiAffinity": {REQUIRED: [{
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "x"}},
    "namespaceSelector": {"matchLabels": {"team": "a"}},
}]}}})  # fmt: skip


def namespace(name: str, changes: Json, api: str, expect: str) -> Row:
    return other("Namespace", "v1", name, changes, api, expect, namespaced=False, tried=IN_BAD_NAMESPACES)


OWNERS = [
    namespace("labels as a list", {"metadata": {"labels": ["a"]}}, REFUSED, "rejected: Expected `object`, got `array` - at `$.metadata.labels`"),
    namespace("a label that is a number", {"metadata": {"labels": {"team": 1}}}, REFUSED, "rejected: Expected `str`, got `int` - at `$.metadata.labels[...]`"),
    namespace("labels null", {"metadata": {"labels": None}}, ACCEPTED, "taken"),
    namespace("20,000 labels", {"metadata": {"labels": {f"k{i}": "v" for i in range(20_000)}}}, ACCEPTED, "taken"),
    namespace("a name of dots", {"metadata": {"name": ".."}}, REFUSED, "taken"),
    other("Service", "v1", "no selector", {"spec": {"selector": None, "ports": [{"port": 1}]}}, ACCEPTED, "taken"),
    other("Service", "v1", "a selector that is a text", {"spec": {"selector": "app"}}, REFUSED, "rejected: Expected `object`, got `str` - at `$.spec.selector`"),
    other("Service", "v1", "a selector of numbers", {"spec": {"selector": {"app": 1}}}, REFUSED, "rejected: Expected `str`, got `int` - at `$.spec.selector[...]`"),
    other("Service", "v1", "a selector of 5,000 labels", {"spec": {
        "selector": {f"k{i}": "v" for i in range(5_000)}, "ports": [{"port": 1}]}}, ACCEPTED, "taken"),
    other("Service", "v1", "no spec", {"spec": None}, REFUSED, "taken"),
    other("ReplicationController", "v1", "a selector of nothing", {"spec": {"selector": {}}}, REFUSED, "taken"),
    other("ReplicaSet", "apps/v1", "a selector by an unknown operator", {"spec": {
        "selector": BAD_OPERATOR}}, REFUSED, "taken"),
    other("ReplicaSet", "apps/v1", "no selector", {"spec": {}}, REFUSED, "taken"),
    other("StatefulSet", "apps/v1", "a selector that is a list", {"spec": {"selector": []}}, REFUSED, "rejected: Expected `object | null`, got `array` - at `$.spec.selector`"),
]  # fmt: skip

ROWS: tuple[Row, ...] = (*NODES, *CLAIMS, *VOLUMES, *CLASSES, *POLICIES, *OWNERS)
