"""Hostile pods."""

from __future__ import annotations

import json
from typing import Any

from tests.hostile.table import ACCEPTED, REFUSED, WIRE, Json, Row, pod

__all__ = ["ROWS"]

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MAX_INT64 = 2**63 - 1


def asking(amounts: Json) -> Json:
    return pod(container={"resources": {"requests": amounts}})


def cpu(amount: Any) -> Json:
    return asking({"cpu": amount})


def memory(amount: Any) -> Json:
    return asking({"memory": amount})


def device(amount: Any) -> Json:
    both = {"example.com/gpu": amount}
    return pod(container={"resources": {"requests": both, "limits": both}})


def needs_nodes(*terms: Json) -> Json:
    return pod({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}})


def needs_label(key: str, operator: str, *values: Any) -> Json:
    return needs_nodes({"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]})


def likes_nodes(weight: Any, *expressions: Json) -> Json:
    term = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return pod({"affinity": {"nodeAffinity": {PREFERRED: [term]}}})


def near(*terms: Json, kind: str = "podAffinity") -> Json:
    return pod({"affinity": {kind: {REQUIRED: list(terms)}}})


def term(selector: Any = None, *, key: str | None = HOSTNAME, **more: Any) -> Json:
    made: Json = {"labelSelector": {"matchLabels": {"app": "x"}} if selector is None else selector, **more}
    return made if key is None else {**made, "topologyKey": key}


def spread(*changes: Json) -> Json:
    base = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return pod({"topologySpreadConstraints": [{**base, **each} for each in changes]})


def tolerating(*tolerations: Json) -> Json:
    return pod({"tolerations": list(tolerations)})


def ports(*entries: Json) -> Json:
    return pod(container={"ports": list(entries)})


def volumes(*entries: Json) -> Json:
    return pod({"volumes": list(entries)})


def claim(name: Any, volume: str = "v") -> Json:
    return {"name": volume, "persistentVolumeClaim": {"claimName": name}}


def raw(text: str | bytes, **replaced: str | bytes) -> bytes:
    """Return a plain pod's bytes in which a marker has been replaced by what no encoder would write."""
    data = json.dumps(pod({"marker": 0})).encode()
    return data.replace(b'"marker": 0', text.encode() if isinstance(text, str) else text)


DEEP = b'"other":' + b"[" * 100_000 + b"]" * 100_000

QUANTITIES = [
    Row("cpu 1e1000", cpu("1e1000"), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("cpu 1e10000000", cpu("1e10000000"), WIRE, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("cpu of a thousandth of a billionth", cpu("0.0000001n"), ACCEPTED, "scheduled"),
    Row("cpu of 70 nines", cpu("9" * 70), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("cpu of 5,000 nines", cpu("9" * 5_000), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("cpu of 100,000 nines", cpu("9" * 100_000), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("cpu of 1 behind 5,000 zeros", cpu("0" * 5_000 + "1"), ACCEPTED, "scheduled"),
    Row("cpu with 5,000 digits behind the point", cpu("0." + "0" * 4_999 + "1"), ACCEPTED, "scheduled"),
    Row("cpu -1", cpu("-1"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: -1 is negative"),
    Row("cpu -0", cpu("-0"), ACCEPTED, "scheduled"),
    Row("cpu with an exponent at the end of int64", cpu("1e9223372036854775807"), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("cpu with an exponent beyond int64", cpu("1e9223372036854775808"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '1e9223372036854775808' has an exponent out of range"),
    Row("cpu with an exponent of 5,000 digits", cpu("1e" + "9" * 5_000), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '1e99999999999999'... has an exponent out of range"),
    Row("cpu with a tiny exponent", cpu("1e-1000"), ACCEPTED, "scheduled"),
    Row("cpu in Arabic digits", cpu("\u0661"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '\u0661' must match"),
    Row("cpu in full-width digits", cpu("\uff11"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '\uff11' must match"),
    Row("cpu 1Zi", cpu("1Zi"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '1Zi' must match"),
    Row("cpu of nothing", cpu(""), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '' must match"),
    Row("cpu of a blank", cpu(" "), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '' must match"),
    Row("cpu between blanks", cpu(" 1\t"), REFUSED, "scheduled"),
    Row("cpu NaN", cpu("NaN"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity 'NaN' must match"),
    Row("cpu inf", cpu("inf"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity 'inf' must match"),
    Row("cpu in hexadecimal", cpu("0x10"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '0x10' must match"),
    Row("cpu with an underscore", cpu("1_000m"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '1_000m' must match"),
    Row("cpu with a comma", cpu("1,5"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '1,5' must match"),
    Row("cpu with a NUL", cpu("1\0"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity '1\\x00' must match"),
    Row("cpu with a line end", cpu("1\n"), REFUSED, "scheduled"),
    Row("cpu +", cpu("+"), ACCEPTED, "scheduled"),
    Row("cpu .", cpu("."), ACCEPTED, "scheduled"),
    Row("cpu m", cpu("m"), ACCEPTED, "scheduled"),
    Row("cpu Ei", cpu("Ei"), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: quantity 'Ei' has no number"),
    Row("cpu as a number", cpu(1), ACCEPTED, "scheduled"),
    Row("cpu as a fraction", cpu(0.1), ACCEPTED, "scheduled"),
    Row("cpu as a negative number", cpu(-1), REFUSED, "rejected: spec.containers[0].resources.requests[cpu]: -1 is negative"),
    Row("cpu as true", cpu(True), REFUSED, "rejected: Expected `int | float | str`, got `bool` - at `$.spec.containers[0].resources.requests[...]`"),
    Row("cpu as null", cpu(None), ACCEPTED, "scheduled", differs="the API server stores 0, simulated manifests leave it out"),
    Row("cpu as a list", cpu([]), REFUSED, "rejected: Expected `int | float | str`, got `array` - at `$.spec.containers[0].resources.requests[...]`"),
    Row("cpu as an object", cpu({}), REFUSED, "rejected: Expected `int | float | str`, got `object` - at `$.spec.containers[0].resources.requests[...]`"),
    Row("cpu of 5,000 digits as a number", raw('"overhead": {"cpu": ' + "9" * 5_000 + "}"), WIRE, "rejected: Integer value out of range - at `$.spec.overhead[...]`"),
    Row("cpu 1e999 as a number", raw('"overhead": {"cpu": 1e999}'), WIRE, "rejected: Number out of range - at `$.spec.overhead[...]`"),
    Row("memory at the end of int64", memory(str(MAX_INT64)), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient memory."),
    Row("memory beyond int64", memory(str(MAX_INT64 + 1)), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient memory."),
    Row("memory beyond uint64", memory(str(2**64 + 1)), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient memory."),
    Row("memory 8Ei", memory("8Ei"), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient memory."),
    Row("memory 1e30", memory("1e30"), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient memory."),
    Row("memory in thousandths", memory("1m"), ACCEPTED, "scheduled"),
    Row("a fraction of a device", device("0.5"), REFUSED, "scheduled"),
    Row("devices beyond int64", device("1e30"), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient example.com/gpu."),
    Row("a negative device", device("-1"), REFUSED, "rejected: spec.containers[0].resources.requests[example.com/gpu]: -1 is negative"),
    Row("two containers that add up beyond int64", pod({"containers": [
        {"name": f"c{i}", "image": "x", "resources": {"requests": {"memory": str(MAX_INT64)}}} for i in range(2)
    ]}), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient memory."),
    Row("a resource without a name", asking({"": "1"}), REFUSED, "scheduled"),
    Row("a resource of an unknown name", asking({"banana": "1"}), REFUSED, "scheduled"),
    Row("a resource with a name of 10,000 characters", asking({"example.com/" + "a" * 10_000: "1"}), REFUSED, "scheduled"),
    Row("a resource named in Greek", asking({"παράδειγμα.gr/κάτι": "1"}), REFUSED, "scheduled"),
    Row("huge pages of no size", asking({"hugepages-": "1"}), REFUSED, "pending: 0/2 nodes are available: 2 Insufficient hugepages-."),
    Row("a thousand resources", pod(container={"resources": {
        side: {f"example.com/d{i}": "1" for i in range(1_000)} for side in ("requests", "limits")
    }}), ACCEPTED, "pending: 0/2 nodes are available: 2 Insufficient example.com/d0, 2 Insufficient example.com/d1, 2 Insufficient"),
    Row("negative overhead", pod({"overhead": {"cpu": "-1"}}), REFUSED, "rejected: spec.overhead[cpu]: -1 is negative"),
    Row("overhead beyond int64", pod({"overhead": {"cpu": "1e30"}}), WIRE, "pending: 0/2 nodes are available: 2 Insufficient cpu."),
    Row("negative resources of the pod", pod({"resources": {"requests": {"cpu": "-1"}}}), REFUSED, "rejected: spec.resources.requests[cpu]: -1 is negative"),
    Row("an illegible status of a container", pod(status={"containerStatuses": [
        {"name": "c", "allocatedResources": {"cpu": "lots"}}]}), WIRE, "rejected: status.containerStatuses[0].allocatedResources[cpu]: quantity 'lots' must match"),
]  # fmt: skip

SHAPES = [
    Row("priority as a text", pod({"priority": "high"}), REFUSED, "rejected: Expected `int | null`, got `str` - at `$.spec.priority`"),
    Row("priority beyond int32", pod({"priority": 2**31}), REFUSED, "rejected: Expected `int` <= 2147483647 - at `$.spec.priority`"),
    Row("priority of 5,000 digits", raw('"priority": ' + "9" * 5_000), WIRE, "rejected: Integer value out of range - at `$.spec.priority`"),
    Row("priority as a fraction", pod({"priority": 1.5}), REFUSED, "rejected: Expected `int | null`, got `float` - at `$.spec.priority`"),
    Row("priority 1.0", raw('"priority": 1.0'), WIRE, "rejected: Expected `int | null`, got `float` - at `$.spec.priority`"),
    Row("priority NaN", raw('"priority": NaN'), WIRE, "rejected: watch line cannot be read: JSON is malformed: invalid character (byte 274)"),
    Row("a node name that is a number", pod({"nodeName": 5}), REFUSED, "rejected: Expected `str`, got `int` - at `$.spec.nodeName`"),
    Row("a spec that is a text", {**pod(), "spec": "none"}, REFUSED, "rejected: Expected `object`, got `str` - at `$.spec`"),
    Row("a spec that is null", {**pod(), "spec": None}, REFUSED, "ignored"),
    Row("a status that is a list", {**pod(), "status": []}, REFUSED, "rejected: Expected `object`, got `array` - at `$.status`"),
    Row("containers as an object", pod({"containers": {}}), REFUSED, "rejected: Expected `array`, got `object` - at `$.spec.containers`"),
    Row("containers null", pod({"containers": None}), REFUSED, "scheduled"),
    Row("no containers", pod({"containers": []}), REFUSED, "scheduled"),
    Row("a container that is null", pod({"containers": [None]}), REFUSED, "rejected: Expected `object`, got `null` - at `$.spec.containers[0]`"),
    Row("tolerations as a text", pod({"tolerations": "all"}), REFUSED, "rejected: Expected `array`, got `str` - at `$.spec.tolerations`"),
    Row("labels as a list", pod(metadata={"labels": ["a"]}), REFUSED, "rejected: Expected `object`, got `array` - at `$.metadata.labels`"),
    Row("a label that is a number", pod(metadata={"labels": {"a": 1}}), REFUSED, "rejected: Expected `str`, got `int` - at `$.metadata.labels[...]`"),
    Row("a label that is null", pod(metadata={"labels": {"a": None}}), ACCEPTED, "scheduled"),
    Row("an annotation that is an object", pod(metadata={"annotations": {"a": {}}}), REFUSED, "rejected: Expected `str`, got `object` - at `$.metadata.annotations[...]`"),
    Row("an annotation of a megabyte", pod(metadata={"annotations": {"a": "x" * 2**20}}), REFUSED, "scheduled"),
    Row("a thousand owners", pod(metadata={"ownerReferences": [
        {"apiVersion": "v1", "kind": "X", "name": f"o{i}", "uid": str(i)} for i in range(1_000)]}), ACCEPTED, "scheduled"),
    Row("two controlling owners", pod(metadata={"ownerReferences": [
        {"apiVersion": "v1", "kind": "X", "name": f"o{i}", "uid": str(i), "controller": True} for i in range(2)
    ]}), REFUSED, "scheduled"),
    Row("metadata null", {**pod(), "metadata": None}, WIRE, "rejected: Object missing required field `metadata`"),
    Row("no metadata", {"spec": pod()["spec"]}, WIRE, "rejected: Object missing required field `metadata`"),
    Row("no name", pod(metadata={"name": ""}), REFUSED, "rejected: metadata.name is missing"),
    Row("a name that leads elsewhere", pod(metadata={"name": "../../secrets"}), REFUSED, "scheduled"),
    Row("a name with a line end", pod(metadata={"name": "a\nb"}), REFUSED, "scheduled"),
    Row("a name with control characters", pod(metadata={"name": "\x1b[2Jbad"}), REFUSED, "scheduled"),
    Row("a name of 10,000 characters", pod(metadata={"name": "a" * 10_000}), REFUSED, "scheduled"),
    Row("a name in Greek", pod(metadata={"name": "κακό"}), REFUSED, "scheduled"),
    Row("no namespace", pod(metadata={"namespace": ""}), WIRE, "scheduled"),
    Row("no UID", pod(metadata={"uid": ""}), WIRE, "error: pod default/bad has no uid, so the cache cannot keep it apart from others"),
    Row("no version", pod(metadata={"resourceVersion": ""}), WIRE, "scheduled"),
    Row("a version that is no number", pod(metadata={"resourceVersion": "banana"}), WIRE, "scheduled"),
    Row("two specs", raw('"priority": 1}, "spec": {"priority": 2'), WIRE, "ignored"),
    Row("a list 100,000 deep where nobody looks", raw(DEEP), WIRE, "rejected: watch line cannot be read: nested too deeply"),
    Row("a list 100,000 deep as the priority", raw(DEEP.replace(b"other", b"priority")), WIRE, "rejected: watch line cannot be read: nested too deeply"),
    Row("bytes that are no UTF-8", raw(b'"nodeName": "\xff\xfe"'), WIRE, "rejected: Invalid UTF-8 encoded string"),
    Row("half a surrogate pair", raw('"nodeName": "\\ud800"'), WIRE, "rejected: watch line cannot be read: JSON is malformed: unexpected end of hex escape (byte 281)"),
    Row("a byte order mark", b"\xef\xbb\xbf" + json.dumps(pod()).encode(), WIRE, "rejected: watch line cannot be read: JSON is malformed: invalid character (byte 25)"),
    Row("zero bytes", b"\0" * 100, WIRE, "rejected: watch line cannot be read: JSON is malformed: invalid character (byte 25)"),
    Row("cut off", json.dumps(pod()).encode()[:-20], WIRE, "rejected: watch line cannot be read: Input data was truncated"),
    Row("nothing", b"", WIRE, "rejected: watch line cannot be read: JSON is malformed: invalid character (byte 25)"),
    Row("null", b"null", WIRE, "rejected: Expected `object`, got `null`"),
    Row("a list", b"[]", WIRE, "rejected: Expected `object`, got `array`"),
    Row("a page of HTML", b"<html>503</html>", WIRE, "rejected: watch line cannot be read: JSON is malformed: invalid character (byte 25)"),
    Row("fields of the future", pod({"teleport": {"to": ["moon"]}}), WIRE, "scheduled"),
]  # fmt: skip

SCHEDULING = [
    Row("no schedulerName", pod({"schedulerName": ""}), ACCEPTED, "ignored"),
    Row("schedulerName of another case", pod({"schedulerName": "Default-Scheduler"}), ACCEPTED, "ignored"),
    Row("schedulerName with control characters", pod({"schedulerName": "a\x00\x1b[2J"}), ACCEPTED, "ignored"),
    Row("schedulerName of 10,000 characters", pod({"schedulerName": "a" * 10_000}), ACCEPTED, "ignored"),
    Row("schedulerName as a number", pod({"schedulerName": 7}), REFUSED, "rejected: Expected `str`, got `int` - at `$.spec.schedulerName`"),
    Row("a node that does not exist", pod({"nodeName": "nowhere"}), ACCEPTED, "assigned"),
    Row("a node with an impossible name", pod({"nodeName": "../x y"}), REFUSED, "assigned"),
    Row("an unknown phase", pod(status={"phase": "Banana"}), WIRE, "scheduled"),
    Row("nominated to a node that does not exist", pod(status={"nominatedNodeName": "nowhere"}), WIRE, "scheduled"),
    Row("a thousand conditions", pod(status={"conditions": [
        {"type": f"t{i}", "status": "Maybe", "lastTransitionTime": "yesterday"} for i in range(1_000)]}), WIRE, "scheduled"),
    Row("a start in year 99999", pod(status={"startTime": "99999-99-99T99:99:99Z"}), WIRE, "scheduled"),
    Row("deleted in a time that is none", pod(metadata={"deletionTimestamp": "soon"}), WIRE, "skipped"),
    Row("a preemption policy nobody knows", pod({"preemptionPolicy": "Sometimes"}), REFUSED, "scheduled"),
    Row("the lowest priority", pod({"priority": -(2**31)}), WIRE, "scheduled"),
    Row("a thousand gates", pod({"schedulingGates": [{"name": f"g{i}"} for i in range(1_000)]}), ACCEPTED, "gated: SchedulingGates"),
    Row("a gate without a name", pod({"schedulingGates": [{"name": ""}]}), REFUSED, "gated: SchedulingGates"),
    Row("a claim for devices that does not exist", pod({"resourceClaims": [
        {"name": "d", "resourceClaimName": "none"}]}), ACCEPTED, "pending: 0/2 nodes are available: podium has no DynamicResources yet and the pod has resource claims.", differs="DynamicResources is not built"),
    Row("an image of 10,000 characters", pod(container={"image": "a" * 10_000}), ACCEPTED, "scheduled"),
    Row("no image", pod(container={"image": ""}), REFUSED, "scheduled"),
    Row("an image of colons", pod(container={"image": ":::@@@"}), ACCEPTED, "scheduled"),
    Row("a thousand containers", pod({"containers": [
        {"name": f"c{i}", "image": f"example.com/{i}"} for i in range(1_000)]}), ACCEPTED, "scheduled"),
    Row("a thousand init containers", pod({"initContainers": [
        {"name": f"i{i}", "image": "x", "restartPolicy": "Always" if i % 2 else None, "resources": {
            "requests": {"cpu": "1m"}}} for i in range(1_000)]}), ACCEPTED, "scheduled"),
    Row("a restart policy nobody knows", pod({"initContainers": [
        {"name": "i", "image": "x", "restartPolicy": "Perhaps"}]}), REFUSED, "scheduled"),
]  # fmt: skip

NODE_RULES = [
    Row("5,000 labels of nodes", pod({"nodeSelector": {f"k{i}": "v" for i in range(5_000)}}), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("a node selector with an impossible key", pod({"nodeSelector": {"a b": "v"}}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("a node selector with an impossible value", pod({"nodeSelector": {"a": "v\n"}}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("no terms", needs_nodes(), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("terms null", pod({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": None}}}}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("an empty term", needs_nodes({}), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("an unknown operator", needs_label("a", "Like", "b"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("no operator", needs_label("a", "", "b"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("In of nothing", needs_label("a", "In"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("In of 50,000 values", needs_label(HOSTNAME, "In", *(f"n{i}" for i in range(50_000)), "good-1"), ACCEPTED, "scheduled"),
    Row("In of a value that is a number", needs_label("a", "In", 5), REFUSED, "rejected: Expected `str`, got `int` - at"),
    Row("NotIn of impossible values", needs_label("a", "NotIn", "b c", "ü"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Exists with values", needs_label("a", "Exists", "b"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of a word", needs_label("cores", "Gt", "many"), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of a number beyond int64", needs_label("cores", "Gt", "9" * 30), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of 5,000 digits", needs_label("cores", "Gt", "9" * 5_000), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of two numbers", needs_label("cores", "Gt", "1", "2"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of a fraction", needs_label("cores", "Gt", "1.5"), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of an Arabic digit", needs_label("cores", "Gt", "\u0661"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Gt of +0007", needs_label("cores", "Gt", "+0007"), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("Lt of the least number", needs_label("cores", "Lt", str(-(2**63))), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("a field nobody has", needs_nodes({"matchFields": [
        {"key": "spec.x", "operator": "In", "values": ["a"]}]}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("a name by Gt", needs_nodes({"matchFields": [
        {"key": "metadata.name", "operator": "Gt", "values": ["1"]}]}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("500 terms that match nothing", needs_nodes(*(
        {"matchExpressions": [{"key": "rack", "operator": "In", "values": [f"r{i}"]}]} for i in range(500)
    )), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    Row("a bad term beside a good one", needs_nodes(
        {"matchExpressions": [{"key": "a b", "operator": "In", "values": ["x"]}]},
        {"matchExpressions": [{"key": HOSTNAME, "operator": "Exists"}]},
    ), REFUSED, "scheduled"),
    Row("a preference of weight 0", likes_nodes(0, {"key": "a", "operator": "Exists"}), REFUSED, "scheduled"),
    Row("a preference of weight -1", likes_nodes(-1, {"key": "a", "operator": "Exists"}), REFUSED, "scheduled"),
    Row("a preference of the largest weight", likes_nodes(2**31 - 1, {"key": HOSTNAME, "operator": "Exists"}), REFUSED, "scheduled"),
    Row("a preference by an unknown operator", likes_nodes(1, {"key": "a", "operator": "Like"}), REFUSED, 'error: running PreScore plugin "NodeAffinity": [0].matchExpressions[0].operator: Unsupported value: "Like": supported'),
    Row("1,000 tolerations", tolerating(*({"key": f"k{i}", "operator": "Exists"} for i in range(1_000))), ACCEPTED, "scheduled"),
    Row("a toleration by an unknown operator", tolerating({"key": "a", "operator": "Like", "value": "b"}), REFUSED, "scheduled"),
    Row("a toleration of an unknown effect", tolerating({"operator": "Exists", "effect": "Explode"}), REFUSED, "scheduled"),
    Row("a toleration of a value without a key", tolerating({"operator": "Equal", "value": "x"}), REFUSED, "scheduled"),
    Row("a toleration of 5,000 digits", tolerating({"key": "a", "operator": "Gt", "value": "9" * 5_000}), REFUSED, "scheduled"),
    Row("a toleration for longer than there is time", tolerating(
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": MAX_INT64}), ACCEPTED, "scheduled"),
    Row("a toleration for longer than int64", tolerating(
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**63}), REFUSED, "rejected: Expected `int` <= 9223372036854775807 - at `$.spec.tolerations[0].tolerationSeconds`"),
]  # fmt: skip

POD_RULES = [
    Row("affinity over no topology", near(term(key="")), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity whose topology is missing", near(term(key=None)), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity over a topology no node has", near(term(key="no-such")), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity by an unknown operator", near(term({"matchExpressions": [
        {"key": "a", "operator": "Like", "values": []}]})), REFUSED, 'pending: 0/2 nodes are available: parsing pod: requiredAffinityTerms: "Like" is not a valid label selector operator.'),
    Row("affinity with a null selector", near({"labelSelector": None, "topologyKey": HOSTNAME}), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity with an impossible namespace", near(term(namespaces=["a b"])), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity with 10,000 namespaces", near(term(namespaces=[f"n{i}" for i in range(10_000)])), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity with a bad namespace selector", near(term(namespaceSelector={"matchExpressions": [
        {"key": "a b", "operator": "In", "values": []}]})), REFUSED, 'pending: 0/2 nodes are available: parsing pod: requiredAffinityTerms: [key: Invalid value: "a b": name part must'),
    Row("affinity by labels the pod has not", near(term(matchLabelKeys=["no-such"])), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("affinity by and against the same label", near(term(
        matchLabelKeys=["a"], mismatchLabelKeys=["a"])), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("500 affinity terms", near(*(term({"matchLabels": {"app": f"a{i}"}}) for i in range(500))), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("500 anti-affinity terms", near(*(
        term({"matchLabels": {"app": f"a{i}"}}) for i in range(500)), kind="podAntiAffinity"), ACCEPTED, "scheduled"),
    Row("600 affinity terms", near(*(term({"matchLabels": {"app": f"a{i}"}}) for i in range(600))), ACCEPTED, "pending: 0/2 nodes are available: pod has 600 pod affinity terms, podium evaluates at most 512"),
    Row("anti-affinity to everybody", near(term({}), kind="podAntiAffinity"), ACCEPTED, "scheduled"),
    Row("an affinity to nobody of 50,000 values", near(term({"matchExpressions": [
        {"key": "app", "operator": "In", "values": [f"v{i}" for i in range(50_000)]}]})), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules."),
    Row("a preference among pods of weight 0", pod({"affinity": {"podAffinity": {PREFERRED: [
        {"weight": 0, "podAffinityTerm": term()}]}}}), REFUSED, "scheduled"),
    Row("a preference among pods of the largest weight", pod({"affinity": {"podAffinity": {PREFERRED: [
        {"weight": 2**31 - 1, "podAffinityTerm": term({})}]}}}), REFUSED, "scheduled"),
    Row("spread with maxSkew 0", spread({"maxSkew": 0}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints."),
    Row("spread with maxSkew -1", spread({"maxSkew": -1}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints."),
    Row("spread with the largest maxSkew", spread({"maxSkew": 2**31 - 1, "minDomains": 2**31 - 1}), ACCEPTED, "scheduled"),
    Row("spread with maxSkew beyond int32", spread({"maxSkew": 2**31}), REFUSED, "rejected: Expected `int` <= 2147483647 - at `$.spec.topologySpreadConstraints[0].maxSkew`"),
    Row("spread with minDomains 0", spread({"minDomains": 0}), REFUSED, "scheduled"),
    Row("spread with minDomains -1", spread({"minDomains": -1}), REFUSED, "scheduled"),
    Row("spread over no topology", spread({"topologyKey": ""}), REFUSED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label)."),
    Row("spread over a topology no node has", spread({"topologyKey": "no-such"}), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label)."),
    Row("spread that does something unknown", spread({"whenUnsatisfiable": "Shrug"}), REFUSED, "scheduled"),
    Row("spread with a policy nobody knows", spread({"nodeTaintsPolicy": "Maybe"}), REFUSED, "scheduled"),
    Row("spread by an unknown operator", spread({"labelSelector": {"matchExpressions": [
        {"key": "a", "operator": "Like"}]}}), REFUSED, "error: running PreFilter plugin \"PodTopologySpread\": get constraints from pod: obtaining pod's hard topology spread"),
    Row("spread by labels the pod has not", spread({"matchLabelKeys": ["no-such"]}), ACCEPTED, "scheduled"),
    Row("the same spread twice", spread({}, {}), REFUSED, "scheduled"),
    Row("1,000 spread constraints", spread(*({"topologyKey": f"k{i}"} for i in range(1_000))), ACCEPTED, "pending: 0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label)."),
]  # fmt: skip

PLACES = [
    Row("port 0", ports({"containerPort": 0, "hostPort": 0}), REFUSED, "scheduled"),
    Row("port -1", ports({"containerPort": 80, "hostPort": -1}), REFUSED, "scheduled"),
    Row("port 70000", ports({"containerPort": 70_000, "hostPort": 70_000}), REFUSED, "scheduled"),
    Row("a port beyond int32", ports({"containerPort": 80, "hostPort": 2**31}), REFUSED, "rejected: Expected `int` <= 2147483647 - at `$.spec.containers[0].ports[0].hostPort`"),
    Row("a port of an unknown protocol", ports({"containerPort": 80, "hostPort": 80, "protocol": "SMOKE"}), REFUSED, "scheduled"),
    Row("a port at no address", ports({"containerPort": 80, "hostPort": 80, "hostIP": "somewhere"}), ACCEPTED, "scheduled"),
    Row("the same port twice", ports(*({"containerPort": 80, "hostPort": 80} for _ in range(2))), REFUSED, "scheduled"),
    Row("2,000 ports", ports(*({"containerPort": i, "hostPort": i} for i in range(1, 2_001))), ACCEPTED, "scheduled"),
    Row("a claim that does not exist", volumes(claim("none")), ACCEPTED, 'pending: 0/2 nodes are available: persistentvolumeclaim "none" not found'),
    Row("a claim without a name", volumes(claim("")), REFUSED, 'pending: 0/2 nodes are available: persistentvolumeclaim "" not found'),
    Row("a claim with an impossible name", volumes(claim("../secrets")), ACCEPTED, 'pending: 0/2 nodes are available: persistentvolumeclaim "../secrets" not found'),
    Row("a claim whose name is a number", volumes(claim(5)), REFUSED, "rejected: Expected `str`, got `int` - at `$.spec.volumes[0].persistentVolumeClaim.claimName`"),
    Row("500 claims that do not exist", volumes(*(claim(f"none-{i}", f"v{i}") for i in range(500))), ACCEPTED, 'pending: 0/2 nodes are available: persistentvolumeclaim "none-0" not found'),
    Row("the same claim 100 times", volumes(*(claim("none", f"v{i}") for i in range(100))), ACCEPTED, 'pending: 0/2 nodes are available: persistentvolumeclaim "none" not found'),
    Row("a volume of nothing", volumes({"name": "v"}), ACCEPTED, "scheduled"),
    Row("a volume of two things", volumes({**claim("none"), "emptyDir": {}}), REFUSED, 'pending: 0/2 nodes are available: persistentvolumeclaim "none" not found'),
    Row("an ephemeral volume without a template", volumes({"name": "v", "ephemeral": {}}), REFUSED, 'pending: 0/2 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "bad-v".'),
    Row("a disk without a name", volumes({"name": "v", "gcePersistentDisk": {"pdName": ""}}), REFUSED, "scheduled"),
    Row("the same disk twice", volumes(*(
        {"name": f"v{i}", "gcePersistentDisk": {"pdName": "d"}} for i in range(2))), ACCEPTED, "scheduled"),
    Row("an iSCSI disk without a target", volumes({"name": "v", "iscsi": {}}), REFUSED, "scheduled"),
    Row("a volume with a name of 10,000 characters", volumes({"name": "v" * 10_000, "emptyDir": {}}), REFUSED, "scheduled"),
    Row("volumes null", pod({"volumes": None}), ACCEPTED, "scheduled"),
]  # fmt: skip

ROWS: tuple[Row, ...] = (*QUANTITIES, *SHAPES, *SCHEDULING, *NODE_RULES, *POD_RULES, *PLACES)
