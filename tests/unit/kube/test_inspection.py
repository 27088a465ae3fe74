"""Inspection: what the API server's answers mean, and what is said of answers that mean nothing."""

import asyncio
import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from scheduler.kube.errors import ApiError, ProtocolError
from scheduler.kube.inspection import lease_seen, own_name, pending_pods, server_version
from scheduler.kube.transport import Response

NOON = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


class Api:
    """Answers with what it was made of, one answer a request."""

    def __init__(self, *answers, headers=None):
        self.answers, self.headers, self.paths = list(answers), headers or {}, []

    async def request(self, method, path, *, body=None, content_type="", accept="", timeout_s):
        self.paths.append(path)
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            return Response(answer, {}, b"")
        return Response(200, self.headers, answer if isinstance(answer, bytes) else json.dumps(answer).encode())


def look(function, api, *arguments, **options):
    return asyncio.run(function(api, *arguments, timeout_s=5, **options))


# --- version and identity --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minor", "number"), [("36", (1, 36)), ("29+", (1, 29))])
def test_version(minor, number):
    """Some distributions add a plus."""
    found = look(server_version, Api({"major": "1", "minor": minor, "gitVersion": "v1.36.3-x"}))

    assert (found.name, found.number) == ("v1.36.3-x", number)


@pytest.mark.parametrize(
    "answer",
    [b"<html>", {}, [], {"major": "1", "minor": "", "gitVersion": "v1"}, {"major": 1, "minor": 2, "gitVersion": "v1"}],
)
def test_an_answer_that_is_no_version(answer):
    with pytest.raises(ProtocolError, match="/version"):
        look(server_version, Api(answer))


def test_own_name():
    assert look(own_name, Api({"status": {"userInfo": {"username": "alice"}}})) == "alice"
    with pytest.raises(ApiError):
        look(own_name, Api(404))
    with pytest.raises(ProtocolError, match="SelfSubjectReview"):
        look(own_name, Api({}))


# --- lease -----------------------------------------------------------------------------------------------------------


def lease(**spec):
    return {"kind": "Lease", "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2, **spec}}


@pytest.mark.parametrize(
    ("spec", "age_s", "is_held"),
    [
        pytest.param({"renewTime": "2026-05-04T11:59:58.500000Z"}, 1.5, True, id="fresh"),
        pytest.param({"renewTime": "2026-05-04T11:59:45.000000Z"}, 15.0, True, id="at its end"),
        pytest.param({"renewTime": "2026-05-04T11:59:40.000000Z"}, 20.0, False, id="expired"),
        pytest.param({"renewTime": "2026-05-04T12:00:00.900000Z"}, 0.0, True, id="in the second that the header says"),
        pytest.param({"renewTime": "2026-05-04T11:59:59Z", "holderIdentity": ""}, 1.0, False, id="given back"),
        pytest.param({"renewTime": None}, None, False, id="never renewed"),
    ],
)
@pytest.mark.parametrize("clock", ["the API server's", "our own"])
def test_lease(spec, age_s, is_held, clock):
    """Its age is by the API server's clock; ours counts only where the answer has no date."""
    is_dated = clock == "the API server's"
    api = Api(lease(**spec), headers={"date": "Mon, 04 May 2026 12:00:00 GMT"} if is_dated else {})
    wrong = datetime(2020, 1, 1, tzinfo=UTC)

    seen = look(lease_seen, api, "kube-system", "podium", now=lambda: wrong if is_dated else NOON)

    assert (seen.age_s, seen.is_held, seen.record.transitions) == (age_s, is_held, 2)
    assert api.paths == ["/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"]


def test_a_lease_that_does_not_exist():
    assert look(lease_seen, Api(404), "n", "l") is None
    with pytest.raises(ApiError):
        look(lease_seen, Api(403), "n", "l")


@pytest.mark.parametrize(
    "spec",
    [{"renewTime": "yesterday"}, {"renewTime": "2026-05-04T12:00:00"}, {"leaseDurationSeconds": "long"}],
    ids=["no time", "a time without a zone", "no number"],
)
def test_a_lease_that_cannot_be_understood(spec):
    with pytest.raises(ProtocolError, match="Lease n/l cannot be understood"):
        look(lease_seen, Api(lease(**spec)), "n", "l")


def test_names_do_not_choose_the_path():
    api = Api(404)
    look(lease_seen, api, "a/b", "c?d")
    assert api.paths == ["/apis/coordination.k8s.io/v1/namespaces/a%2Fb/leases/c%3Fd"]


# --- pods ------------------------------------------------------------------------------------------------------------


def pods(*items, token=""):
    return {"metadata": {"resourceVersion": "5", "continue": token}, "items": list(items)}


def pod(scheduler, **more):
    return {"metadata": more.get("metadata", {}), "spec": {"schedulerName": scheduler, **more.get("spec", {})}}


def test_pending_pods_are_counted_over_all_pages():
    """Those that are bound or being deleted do not wait, whatever the server's selector let pass."""
    gone = pod("a", metadata={"deletionTimestamp": "2026-05-04T12:00:00Z"})
    api = Api(pods(pod("a"), pod("b"), gone, token="t"), pods(pod("a"), pod("a", spec={"nodeName": "n"})))

    assert look(pending_pods, api) == {"a": 2, "b": 1}
    first, second = (parse_qs(urlsplit(path).query) for path in api.paths)
    assert first["limit"] == second["limit"] == ["500"]
    assert ("continue" not in first, second["continue"]) == (True, ["t"])
    assert first["fieldSelector"] == ["spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"]


def test_a_list_that_begins_again_is_counted_once():
    """The moment of the first page was compacted away: 410."""
    api = Api(pods(pod("a"), token="t"), 410, pods(pod("a"), pod("b")))

    assert look(pending_pods, api) == {"a": 1, "b": 1}
    assert "limit" not in parse_qs(urlsplit(api.paths[2]).query)


def test_no_pods_at_all():
    assert look(pending_pods, Api({"metadata": {}, "items": None})) == {}
    with pytest.raises(ProtocolError, match="the list of pods"):
        look(pending_pods, Api(b"<html>"))
