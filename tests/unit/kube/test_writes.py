"""What is sent for each write, and what its answers mean."""

import asyncio
import json

import pytest

from scheduler.kube.errors import ApiError, ProtocolError, TransportError
from scheduler.kube.paths import pod_path
from scheduler.kube.transport import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Response
from scheduler.kube.writes import (
    Assignment,
    WriteResult,
    bind,
    create_event,
    delete_pod,
    get_pod,
    patch_event,
    patch_object,
    patch_pod_status,
    read_assignment,
    status_patch,
)
from scheduler.model.delta import Rejected
from scheduler.model.meta import Condition, ObjectMeta
from scheduler.model.pod import Pod, PodStatus
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim

NOW_S = 1_700_000_000.0
NOW = "2023-11-14T22:13:20Z"
OLD = "2020-01-01T00:00:00Z"


def pod(*conditions, nominated=""):
    meta = ObjectMeta(name="web", namespace="shop", uid="u1", resource_version="7", generation=4)
    return Pod(metadata=meta, status=PodStatus(conditions=conditions, nominated_node_name=nominated))


def unschedulable(message="no room", **fields):
    return Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message, **fields)


def answer(status, message="", reason=""):
    return Response(status, {}, json.dumps({"kind": "Status", "message": message, "reason": reason}).encode())


class FakeTransport:
    """Answers in order and keeps what it was sent."""

    def __init__(self, *answers):
        self.answers, self.sent, self.slept = list(answers), [], []

    async def request(self, method, path, *, body=None, content_type=JSON, timeout_s):
        self.sent.append((method, path, content_type, json.loads(body) if body else None))
        step = self.answers.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def sleep(self, seconds):
        self.slept.append(seconds)


def patch(transport, condition=None, **kwargs):
    condition = condition or unschedulable()
    return asyncio.run(patch_pod_status(transport, pod(), condition, now_s=NOW_S, sleep=transport.sleep, **kwargs))


def test_bind_sends_the_uid():
    """The binding names the pod with its UID, and the server is told when we give up."""
    transport = FakeTransport(answer(201))
    asyncio.run(bind(transport, pod(), "n1"))
    assert transport.sent == [
        (
            "POST",
            "/api/v1/namespaces/shop/pods/web/binding?timeout=4s",
            JSON,
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
                "target": {"kind": "Node", "name": "n1"},
            },
        )
    ]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(answer(409, "already assigned", "Conflict"), id="refusal"),
        pytest.param(TransportError("reset", sent=True), id="no answer"),
    ],
)
def test_bind_never_swallows(failure):
    """Whatever is not a success reaches the caller."""
    with pytest.raises((ApiError, TransportError)):
        asyncio.run(bind(FakeTransport(failure), pod(), "n1"))


def test_names_cannot_choose_the_path():
    """A name that the API would never allow is quoted."""
    assert pod_path("ns", "a/../b?x", "/status") == "/api/v1/namespaces/ns/pods/a%2F..%2Fb%3Fx/status"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(
            Response(200, {}, b'{"metadata":{"name":"web","uid":"u1"},"spec":{"nodeName":"n1"}}'),
            Assignment("u1", "n1"),
            id="bound",
        ),
        pytest.param(
            Response(200, {}, b'{"metadata":{"uid":"u2"},"spec":{"containers":7}}'),
            Assignment("u2", ""),
            id="other fields do not matter",
        ),
        pytest.param(answer(404), None, id="no such pod"),
    ],
)
def test_read_assignment(response, expected):
    """UID and node, whatever else the pod says."""
    assert asyncio.run(read_assignment(FakeTransport(response), "shop", "web")) == expected


def test_read_assignment_of_something_else():
    """Garbage is not taken for an unbound pod."""
    with pytest.raises(ProtocolError):
        asyncio.run(read_assignment(FakeTransport(Response(200, {}, b"{}")), "shop", "web"))


def test_get_pod():
    """A pod, a pod that cannot be understood, no pod, an error."""
    good = Response(200, {}, b'{"metadata":{"name":"web","namespace":"shop","uid":"u1"}}')
    bad = Response(200, {}, b'{"metadata":{"name":"web"},"spec":7}')
    transport = FakeTransport(good, bad, answer(404), answer(500))
    assert asyncio.run(get_pod(transport, "shop", "web")).uid == "u1"
    assert isinstance(asyncio.run(get_pod(transport, "shop", "web")), Rejected)
    assert asyncio.run(get_pod(transport, "shop", "web")) is None
    with pytest.raises(ApiError):
        asyncio.run(get_pod(transport, "shop", "web"))


@pytest.mark.parametrize(
    ("current", "condition", "nominated", "status"),
    [
        pytest.param(
            pod(),
            unschedulable(),
            None,
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "no room",
                        "lastProbeTime": None,
                        "lastTransitionTime": NOW,
                        "observedGeneration": 4,
                    }
                ]
            },
            id="a new condition",
        ),
        pytest.param(
            pod(unschedulable("other", last_transition_time=OLD)),
            unschedulable(),
            None,
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "no room",
                        "lastProbeTime": None,
                        "lastTransitionTime": OLD,
                        "observedGeneration": 4,
                    }
                ]
            },
            id="the transition time stays while the status does",
        ),
        pytest.param(pod(unschedulable(last_transition_time=OLD)), unschedulable(), None, None, id="nothing changed"),
        pytest.param(
            pod(unschedulable(last_transition_time=OLD), nominated="n1"),
            unschedulable(),
            "n2",
            {"nominatedNodeName": "n2"},
            id="only the nomination changed",
        ),
        pytest.param(pod(nominated="n1"), None, "", {"nominatedNodeName": None}, id="the nomination is cleared"),
        pytest.param(pod(nominated="n1"), None, "n1", None, id="the nomination is there already"),
        pytest.param(pod(), None, None, None, id="nothing asked"),
    ],
)
def test_status_patch(current, condition, nominated, status):
    """Only what changed, with the UID."""
    body = status_patch(current, condition, nominated, NOW_S)
    expected = None if status is None else {"metadata": {"uid": "u1"}, "status": status}
    assert (None if body is None else json.loads(body)) == expected


def test_true_condition_drops_the_old_reason():
    """A reason that no longer holds is removed."""
    current = pod(unschedulable(last_transition_time=OLD))
    body = json.loads(status_patch(current, Condition(type="PodScheduled", status="True"), None, NOW_S))
    (entry,) = body["status"]["conditions"]
    assert entry["reason"] is None
    assert entry["message"] is None
    assert entry["lastTransitionTime"] == NOW


def test_patch_goes_to_the_status():
    """As a strategic merge patch."""
    transport = FakeTransport(answer(200))
    assert patch(transport) is WriteResult.DONE
    method, path, content_type, _ = transport.sent[0]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/shop/pods/web/status?timeout=4s")
    assert content_type == STRATEGIC_MERGE_PATCH


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(answer(500), id="internal error"),
        pytest.param(answer(503), id="unavailable"),
        pytest.param(answer(409), id="conflict"),
        pytest.param(TransportError("refused", sent=False, refused=True), id="connection refused"),
    ],
)
def test_patch_is_tried_four_times(failure):
    """With delays of 10, 50 and 250 ms."""
    transport = FakeTransport(failure, failure, failure, answer(200))
    assert patch(transport) is WriteResult.DONE
    assert transport.slept == pytest.approx([0.01, 0.05, 0.25])
    with pytest.raises((ApiError, TransportError)):
        patch(FakeTransport(*[failure] * 4))


def test_patch_is_not_tried_again_without_the_lease():
    """It may have ended while the first answer was on its way."""
    transport = FakeTransport(TransportError("refused", sent=False, refused=True), answer(200))
    with pytest.raises(TransportError):
        patch(transport, may_retry=lambda: False)
    assert len(transport.sent) == 1


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        pytest.param(answer(404), WriteResult.GONE, id="the pod is gone"),
        pytest.param(answer(422, "metadata.uid: field is immutable"), WriteResult.GONE, id="the name has a new owner"),
        pytest.param(answer(403), ApiError, id="forbidden"),
        pytest.param(answer(422, "other"), ApiError, id="invalid"),
        pytest.param(TransportError("reset", sent=True), TransportError, id="no answer"),
    ],
)
def test_patch_is_not_repeated_for_other_answers(failure, expected):
    """One request, one verdict."""
    transport = FakeTransport(failure)
    if isinstance(expected, WriteResult):
        assert patch(transport) is expected
    else:
        with pytest.raises(expected):
            patch(transport)
    assert transport.slept == []


def test_unchanged_status_is_not_sent():
    """No request for nothing."""
    transport = FakeTransport()
    current = pod(unschedulable(last_transition_time=OLD))
    result = asyncio.run(patch_pod_status(transport, current, unschedulable(), now_s=NOW_S))
    assert result is WriteResult.UNCHANGED


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(answer(200), WriteResult.DONE, id="deleted"),
        pytest.param(answer(404), WriteResult.GONE, id="gone"),
        pytest.param(answer(409, "Precondition failed: UID in precondition: a"), WriteResult.GONE, id="another uid"),
        pytest.param(answer(409, "the object has been modified"), ApiError, id="another conflict"),
        pytest.param(answer(403), ApiError, id="forbidden"),
    ],
)
def test_delete_pod(response, expected):
    """Only this UID is deleted."""
    transport = FakeTransport(response)
    if isinstance(expected, WriteResult):
        assert asyncio.run(delete_pod(transport, pod())) is expected
    else:
        with pytest.raises(expected):
            asyncio.run(delete_pod(transport, pod()))
    assert transport.sent[0][3]["preconditions"] == {"uid": "u1"}


def test_events():
    """Created, and patched unless they have expired."""
    transport = FakeTransport(answer(201), answer(200), answer(404))
    asyncio.run(create_event(transport, "shop", b"{}"))
    assert asyncio.run(patch_event(transport, "shop", "e1", b"{}")) is WriteResult.DONE
    assert asyncio.run(patch_event(transport, "shop", "e1", b"{}")) is WriteResult.GONE
    assert [path for _, path, _, _ in transport.sent] == [
        "/apis/events.k8s.io/v1/namespaces/shop/events?timeout=4s",
        "/apis/events.k8s.io/v1/namespaces/shop/events/e1?timeout=4s",
        "/apis/events.k8s.io/v1/namespaces/shop/events/e1?timeout=4s",
    ]


CLAIM = PersistentVolumeClaim(ObjectMeta(name="data", namespace="shop", uid="u1", resource_version="7"))


def test_patch_object_sends_a_merge_patch():
    """The patch goes to the object as it is given; the answer is the object as the server has it then."""
    body = {"metadata": {"name": "data", "namespace": "shop", "uid": "u1", "resourceVersion": "8"}}
    transport = FakeTransport(Response(200, {}, json.dumps(body).encode()))
    changes = {"metadata": {"resourceVersion": "7", "annotations": {"a": "b"}}}
    changed = asyncio.run(patch_object(transport, CLAIM, changes))
    assert (type(changed), changed.metadata.resource_version) == (PersistentVolumeClaim, "8")
    path = "/api/v1/namespaces/shop/persistentvolumeclaims/data?timeout=4s"
    assert transport.sent == [("PATCH", path, MERGE_PATCH, changes)]


def test_patch_object_of_a_cluster_scoped_kind():
    """Without a namespace in the path, and a name that cannot choose another path."""
    volume = PersistentVolume(ObjectMeta(name="a/b", uid="u1"))
    transport = FakeTransport(Response(200, {}, b'{"metadata": {"name": "a/b"}}'))
    asyncio.run(patch_object(transport, volume, {}))
    assert transport.sent[0][1] == "/api/v1/persistentvolumes/a%2Fb?timeout=4s"


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        pytest.param(answer(409, "the object has been modified", "Conflict"), ApiError, id="changed meanwhile"),
        pytest.param(TransportError("reset", sent=True), TransportError, id="no answer"),
        pytest.param(Response(200, {}, b"<html>"), ProtocolError, id="not the API"),
    ],
)
def test_patch_object_failures_reach_the_caller(reply, failure):
    """Nothing is tried again, and no outcome is guessed."""
    transport = FakeTransport(reply)
    with pytest.raises(failure):
        asyncio.run(patch_object(transport, CLAIM, {}))
    assert len(transport.sent) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>please log in</html>",
        b"",
        b"[" * 100_000,
        b'{"kind":"Pod"}',
        b'{"kind":"Status","status":"Failure"}',
        b"\xff",
    ],
    ids=["a login page", "nothing", "deep", "another kind", "a failure", "no text"],
)
def test_bind_believes_the_api_server_only(body):
    """Whatever stands in between may say 200 to everything; nobody knows then what became of the bind."""
    with pytest.raises(ProtocolError, match="not an answer to a bind"):
        asyncio.run(bind(FakeTransport(Response(200, {}, body)), pod(), "n1"))
