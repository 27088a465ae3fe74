"""Reviews: what is asked, what is remembered, and for how long."""

import asyncio
import json

import pytest

from scheduler.kube.errors import TransportError
from scheduler.kube.reviews import (
    Access,
    AccessReviewer,
    NonResource,
    Resource,
    ReviewUnavailableError,
    TokenReviewer,
    User,
    own_access,
)
from scheduler.kube.transport import Response

ALICE = User("alice", "u1", ("dev",), (("scopes", ("a", "b")),))


class Api:
    """Answers every review the same way."""

    def __init__(self, status):
        self.status, self.asked = status, []

    async def request(self, method, path, *, body=None, content_type="application/json", timeout_s):
        self.asked.append((method, path, json.loads(body)))
        if isinstance(self.status, Exception):
            raise self.status
        if isinstance(self.status, int):
            return Response(self.status, {}, b"")
        return Response(201, {}, json.dumps({"status": self.status}).encode() if self.status != "junk" else b"<html>")

    async def close(self):
        """Nothing to close."""


GOOD = {
    "authenticated": True,
    "user": {"username": "alice", "uid": "u1", "groups": ["dev"], "extra": {"scopes": ["a", "b"]}},
}


@pytest.fixture
def clock():
    return [0.0]


def user_of(api, clock, *tokens):
    async def run():
        reviewer = TokenReviewer(api, now_s=lambda: clock[0])
        return [await reviewer.user_of(token) for token in tokens]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(GOOD, ALICE, id="good token"),
        pytest.param({"authenticated": False}, None, id="bad token"),
        pytest.param({"authenticated": True}, None, id="authenticated without a user"),
    ],
)
def test_token_is_turned_into_its_user_once(clock, status, expected):
    api = Api(status)
    assert user_of(api, clock, "t", "t") == [expected, expected]
    assert len(api.asked) == 1, "yes and no are both remembered"
    method, path, body = api.asked[0]
    assert (method, path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert body == {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}}


def test_answers_are_forgotten_after_ten_seconds(clock):
    api = Api(GOOD)

    async def run():
        reviewer = TokenReviewer(api, now_s=lambda: clock[0])
        await reviewer.user_of("t")
        clock[0] = 9.9
        await reviewer.user_of("t")
        assert len(api.asked) == 1
        clock[0] = 10.0
        await reviewer.user_of("t")
        assert len(api.asked) == 2

    asyncio.run(run())


def test_the_cache_holds_no_token_and_is_bounded(clock):
    api = Api(GOOD)

    async def run():
        reviewer = TokenReviewer(api, now_s=lambda: clock[0])
        for number in range(1_100):
            await reviewer.user_of(f"secret-{number}")
        assert len(reviewer._cache._entries) == 1_000
        assert "secret" not in repr(reviewer._cache._entries)

    asyncio.run(run())


@pytest.mark.parametrize("token", ["", "x" * 20_000])
def test_impossible_tokens_are_nobodys_without_asking(clock, token):
    api = Api(GOOD)
    assert user_of(api, clock, token) == [None]
    assert api.asked == []


@pytest.mark.parametrize(
    "status", [500, 403, "junk", {"authenticated": "yes"}, TransportError("down", sent=False), None]
)
def test_unavailable_review_is_an_error_that_is_not_remembered(clock, status):
    api = Api(status)

    async def run():
        reviewer = AccessReviewer(api, now_s=lambda: clock[0])
        with pytest.raises(ReviewUnavailableError):
            await reviewer.access(ALICE, NonResource("/metrics", "get"))
        api.status = {"allowed": True}
        assert (await reviewer.access(ALICE, NonResource("/metrics", "get"))).is_allowed

    if status == {"authenticated": "yes"}:
        with pytest.raises(ReviewUnavailableError):
            user_of(api, clock, "t")
    else:
        asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"allowed": True}, Access(is_allowed=True), id="allowed"),
        pytest.param({"allowed": False, "reason": "no"}, Access(is_allowed=False, reason="no"), id="not allowed"),
        pytest.param({"allowed": True, "denied": True}, Access(is_allowed=False), id="a denial wins"),
        pytest.param({}, Access(is_allowed=False), id="empty status is a no"),
    ],
)
def test_access_is_asked_for_the_whole_user(clock, status, expected):
    api = Api(status)

    async def run():
        reviewer = AccessReviewer(api, now_s=lambda: clock[0])
        first = await reviewer.access(ALICE, NonResource("/metrics", "get"))
        assert await reviewer.access(ALICE, NonResource("/metrics", "get")) == first
        return first

    assert asyncio.run(run()) == expected
    assert len(api.asked) == 1
    assert api.asked[0][2]["spec"] == {
        "user": "alice",
        "uid": "u1",
        "groups": ["dev"],
        "extra": {"scopes": ["a", "b"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


def test_different_users_paths_and_objects_are_asked_apart(clock):
    api = Api({"allowed": True})

    async def run():
        reviewer = AccessReviewer(api, now_s=lambda: clock[0])
        await reviewer.access(ALICE, NonResource("/metrics", "get"))
        await reviewer.access(User("bob"), NonResource("/metrics", "get"))
        await reviewer.access(ALICE, NonResource("/configz", "get"))
        await reviewer.access(ALICE, Resource("get", "pods", namespace="shop"))

    asyncio.run(run())
    assert len(api.asked) == 4
    assert api.asked[3][2]["spec"]["resourceAttributes"] == {
        "verb": "get",
        "version": "v1",
        "resource": "pods",
        "namespace": "shop",
    }


# --- what we may do --------------------------------------------------------------------------------------------------

LEASE = Resource("get", "leases", "coordination.k8s.io", "kube-system", "podium")


def own(api, attributes):
    return asyncio.run(own_access(api, attributes, timeout_s=1))


@pytest.mark.parametrize(
    ("status", "is_allowed"),
    [({"allowed": True}, True), ({"allowed": False}, False), ({"allowed": True, "denied": True}, False), ({}, False)],
)
def test_own_access(status, is_allowed):
    """The server knows who asks; the review names nobody."""
    api = Api(status)

    assert own(api, LEASE).is_allowed == is_allowed
    method, path, body = api.asked[0]
    assert (method, path) == ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    assert body["kind"] == "SelfSubjectAccessReview"
    assert body["spec"] == {
        "resourceAttributes": {
            "verb": "get",
            "group": "coordination.k8s.io",
            "version": "v1",
            "resource": "leases",
            "namespace": "kube-system",
            "name": "podium",
        }
    }


def test_own_access_to_a_subresource():
    api = Api({"allowed": True})
    own(api, Resource("create", "pods", subresource="binding"))
    attributes = api.asked[0][2]["spec"]["resourceAttributes"]
    assert (attributes["resource"], attributes["subresource"]) == ("pods", "binding")


@pytest.mark.parametrize("status", [403, "junk", None, TransportError("gone", sent=True)], ids=str)
def test_own_access_that_nobody_tells(status):
    """No answer is neither yes nor no."""
    with pytest.raises(ReviewUnavailableError, match="SelfSubjectAccessReview"):
        own(Api(status), LEASE)
