"""Decoding: good objects, nulls, bad objects that must not stop the stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.model.decode import ADDED, BOOKMARK, DELETED, ERROR, decode_list, decode_object, decode_watch_line
from scheduler.model.delta import Rejected
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.storage import CSINode, PersistentVolume
from scheduler.testing import pod

GOOD = {"metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}}


def encoded(manifest: Any) -> bytes:
    return json.dumps(manifest).encode()


def pod_with(spec: Any) -> bytes:
    return encoded({**GOOD, "spec": spec})


def test_unknown_fields_are_ignored() -> None:
    """Only what scheduling reads is kept."""
    decoded = decode_object(Pod, encoded({**GOOD, "kind": "Pod", "extra": [1], "spec": {"dnsPolicy": "x"}}))
    assert isinstance(decoded, Pod)
    assert decoded.key == "shop/web"


@pytest.mark.parametrize(
    ("kind", "manifest"),
    [
        pytest.param(Pod, {**GOOD, "spec": {"containers": None, "nodeSelector": None}}, id="lists and maps"),
        pytest.param(Pod, {**GOOD, "spec": None, "status": None}, id="structs"),
        pytest.param(Pod, {**GOOD, "spec": {"containers": [{"resources": {"requests": None}}]}}, id="inside a list"),
        pytest.param(Pod, {"metadata": {**GOOD["metadata"], "labels": None, "generation": None}}, id="metadata"),
        pytest.param(CSINode, {**GOOD, "spec": {"drivers": None}}, id="drivers of a CSINode without any"),
    ],
)
def test_null_means_absent(kind: type[KubeObject], manifest: Any) -> None:
    """As Go reads it."""
    meta = {key: value for key, value in manifest["metadata"].items() if value is not None}
    assert decode_object(kind, encoded(manifest)) == _plain(kind, meta, manifest)


def _plain(kind: type[KubeObject], meta: Any, manifest: Any) -> KubeObject | Rejected:
    spec = {"containers": [{}]} if "resources" in str(manifest.get("spec")) else {}
    return decode_object(kind, encoded({"metadata": meta, "spec": spec}))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"priority": "high"}, "Expected `int`, got `str` - at `$.spec.priority`", id="wrong type"),
        pytest.param({"containers": {}}, "Expected `array`, got `object` - at `$.spec.containers`", id="not a list"),
        pytest.param({"priority": 2**31}, "Expected `int` <= 2147483647 - at `$.spec.priority`", id="beyond int32"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "-1"}}}]},
            "spec.containers[0].resources.requests[cpu]: -1 is negative",
            id="negative request",
        ),
        pytest.param(
            {"containers": [{}], "initContainers": [{}, {"resources": {"requests": {"cpu": "lots"}}}]},
            "spec.initContainers[1].resources.requests[cpu]: quantity 'lots' must match",
            id="no quantity",
        ),
        pytest.param({"overhead": {"cpu": "-1m"}}, "spec.overhead[cpu]: -1m is negative", id="negative overhead"),
        pytest.param(
            {"resources": {"requests": {"cpu": -1}}}, "spec.resources.requests[cpu]: -1 is negative", id="pod level"
        ),
    ],
)
def test_a_bad_pod_is_rejected_with_its_identity(spec: Any, reason: str) -> None:
    """The reason names the field, and the pod can be found again."""
    rejected = decode_object(Pod, pod_with(spec))
    assert isinstance(rejected, Rejected)
    assert (rejected.kind, rejected.namespace, rejected.name) == (Pod, "shop", "web")
    assert (rejected.uid, rejected.resource_version) == ("u-1", "7")
    assert rejected.reason.replace(" | null", "").startswith(reason)


def test_a_bad_quantity_in_the_status_is_rejected() -> None:
    """Accounting reads the status, so it must be readable."""
    bad = pod("a").container_status(actuated={"cpu": "x"}).manifest()
    rejected = decode_object(Pod, encoded(bad))
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith("status.containerStatuses[0].resources.requests[cpu]")


@pytest.mark.parametrize(
    ("kind", "manifest", "reason"),
    [
        pytest.param(Node, {"status": {"allocatable": {"cpu": "x"}}}, "status.allocatable[cpu]", id="node"),
        pytest.param(PersistentVolume, {"spec": {"capacity": {"storage": "x"}}}, "spec.capacity[storage]", id="volume"),
    ],
)
def test_quantities_of_other_kinds_are_checked(kind: type[KubeObject], manifest: Any, reason: str) -> None:
    """Whoever parses them later need not expect an error."""
    rejected = decode_object(kind, encoded({**GOOD, **manifest}))
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith(reason)


def test_identity_is_read_field_by_field() -> None:
    """One bad field of the metadata does not hide the others."""
    rejected = decode_object(Pod, b'{"metadata":{"name":"web","namespace":5,"uid":"u-1"}}')
    assert isinstance(rejected, Rejected)
    assert (rejected.namespace, rejected.name, rejected.uid) == ("", "web", "u-1")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b'"priority":' + b"9" * 5_000, id="a huge integer"),
        pytest.param(b'"priority":1e999', id="an infinite number"),
        pytest.param(b'"nodeSelector":{"a":"\xff\xfe"}', id="bad UTF-8"),
        pytest.param(b'"nodeName":5', id="a number for a name"),
    ],
)
def test_identity_is_read_past_what_no_reader_understands(bad: bytes) -> None:
    """The owner is to be told, whatever else is in the object."""
    data = b'{"metadata":{"name":"web","namespace":"shop","uid":"u-1"},"spec":{"schedulerName":"podium",' + bad + b"}}"
    rejected = decode_object(Pod, data)
    assert isinstance(rejected, Rejected)
    assert (rejected.namespace, rejected.name, rejected.uid) == ("shop", "web", "u-1")
    assert (rejected.scheduler_name, rejected.node_name) == ("podium", "")


DEEP = b"[" * 100_000 + b"]" * 100_000

HOSTILE = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"null", id="null"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b'"text"', id="a text"),
    pytest.param(b"{", id="cut off"),
    pytest.param(b"{}", id="no metadata"),
    pytest.param(b'{"metadata":null}', id="null metadata"),
    pytest.param(b'{"metadata":[]}', id="metadata of the wrong type"),
    pytest.param(b'{"metadata":{"namespace":"a"}}', id="no name"),
    pytest.param(b'{"metadata":{"name":"a"},"spec":' + DEEP + b"}", id="deep where a struct belongs"),
    pytest.param(b'{"metadata":{"name":"a"},"other":' + DEEP + b"}", id="deep in an unknown field"),
    pytest.param(b'{"metadata":{"name":"a"},"spec":{"priority":' + b"9" * 5_000 + b"}}", id="huge integer"),
    pytest.param(b'{"metadata":{"name":"a"},"spec":{"priority":NaN}}', id="NaN"),
    pytest.param(b'{"metadata":{"name":"a"},"spec":{"overhead":{"cpu":1e999}}}', id="infinite number"),
    pytest.param(b'{"metadata":{"name":"a"},"spec":{"overhead":{"cpu":true}}}', id="boolean quantity"),
    pytest.param(b'{"metadata":{"name":"\xff\xfe"}}', id="bad UTF-8"),
    pytest.param(b'{"metadata":{"name":"\\ud800"}}', id="lone surrogate"),
    pytest.param(b"\x00" * 100, id="zero bytes"),
]


@pytest.mark.parametrize("kind", [Pod, Node])
@pytest.mark.parametrize("data", HOSTILE)
def test_nothing_raises(kind: type[KubeObject], data: bytes) -> None:
    """Whatever the bytes, the answer is a value."""
    decoded = decode_object(kind, data)
    assert isinstance(decoded, Rejected) or decoded.name
    assert len(getattr(decoded, "reason", "")) <= 512
    decode_list(kind, data)
    decode_list(kind, b'{"items":[' + data + b"]}")
    decode_watch_line(kind, data)
    decode_watch_line(kind, b'{"type":"ADDED","object":' + data + b"}")


def test_a_bad_item_does_not_spoil_the_list() -> None:
    """Good items before and behind it arrive, in order."""
    items = [GOOD, {"metadata": {"name": "bad"}, "spec": 5}, {"metadata": {"name": "third"}}]
    answer = decode_list(
        Pod, encoded({"metadata": {"resourceVersion": "9", "continue": "more"}, "items": items, "kind": "PodList"})
    )
    assert [item.name for item in answer.items] == ["web", "bad", "third"]
    assert [isinstance(item, Rejected) for item in answer.items] == [False, True, False]
    assert (answer.resource_version, answer.continue_token, answer.problem) == ("9", "more", "")


@pytest.mark.parametrize("items", [[], None])
def test_an_empty_list(items: Any) -> None:
    """Go writes null for an empty list."""
    answer = decode_list(Node, encoded({"metadata": {"resourceVersion": "9", "continue": None}, "items": items}))
    assert (answer.items, answer.resource_version, answer.continue_token) == ([], "9", "")
    assert answer.problem == ""


def test_a_list_that_cannot_be_read_says_so() -> None:
    """An unreadable answer must not pass for an empty cluster."""
    assert decode_list(Pod, b"<html>").problem
    assert decode_list(Pod, b'{"items":5}').problem
    assert decode_list(Pod, b"{}").problem


def test_watch_line_with_an_object() -> None:
    """The common case."""
    line = decode_watch_line(Pod, encoded({"type": "ADDED", "object": GOOD}))
    assert (line.type, line.resource_version) == (ADDED, "7")
    assert isinstance(line.obj, Pod)


def test_watch_line_with_a_bad_object_keeps_its_version() -> None:
    """So that a watch can resume behind it."""
    line = decode_watch_line(Pod, encoded({"type": "DELETED", "object": {**GOOD, "spec": 5}}))
    assert (line.type, line.resource_version) == (DELETED, "7")
    assert isinstance(line.obj, Rejected)


def test_bookmark() -> None:
    """Bookmarks of pods carry nulls and no name."""
    manifest = {"metadata": {"resourceVersion": "12", "creationTimestamp": None}, "spec": {"containers": None}}
    line = decode_watch_line(Pod, encoded({"type": "BOOKMARK", "object": {**manifest, "kind": "Pod", "status": {}}}))
    assert (line.type, line.obj, line.resource_version) == (BOOKMARK, None, "12")


@pytest.mark.parametrize("kind", [Pod, Node])
def test_error_line(kind: type[KubeObject]) -> None:
    """The server's code and message come through, for kinds with and without a status."""
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "message": "too old", "code": 410}
    line = decode_watch_line(kind, encoded({"type": "ERROR", "object": status}))
    assert (line.type, line.code, line.message, line.obj) == (ERROR, 410, "too old", None)


def test_a_line_of_an_unknown_type_is_passed_on_without_object() -> None:
    """The reader decides."""
    line = decode_watch_line(Pod, encoded({"type": "RESHUFFLED", "object": GOOD}))
    assert (line.type, line.obj) == ("RESHUFFLED", None)


def test_an_unreadable_line_is_an_error_without_code() -> None:
    """It cannot be told what was missed, so it must not be skipped silently."""
    line = decode_watch_line(Pod, b'{"type":"ADDED","obj')
    assert (line.type, line.code) == (ERROR, 0)
    assert line.message.startswith("watch line cannot be read")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_decodes_from_a_bare_object(kind: type[KubeObject]) -> None:
    """No field but the name is needed."""
    decoded = decode_object(kind, encoded(GOOD))
    assert isinstance(decoded, kind)
    assert decode_list(kind, encoded({"items": [GOOD]})).items == [decoded]
