"""May they: static rules before the review."""

import asyncio

import pytest

from scheduler.kube.reviews import Access, NonResource, Resource, User
from scheduler.serving.authz import NO_REVIEWER, Authorizer


class Reviewer:
    """Allows bob everything."""

    async def access(self, user, attributes):
        return Access(is_allowed=user.name == "bob", reason="reviewed")


MASTER = User("root", groups=("system:masters",))


@pytest.mark.parametrize(
    ("user", "attributes", "reviewer", "expected"),
    [
        pytest.param(
            User("x"), NonResource("/healthz", "get"), None, Access(is_allowed=True), id="always allowed path"
        ),
        pytest.param(
            User("x"), NonResource("/healthz/ping", "get"), Reviewer(), Access(False, "reviewed"), id="paths are exact"
        ),
        pytest.param(User("x"), NonResource("/open/a", "get"), None, Access(is_allowed=True), id="prefix with a star"),
        pytest.param(
            MASTER, NonResource("/metrics", "get"), None, Access(is_allowed=True), id="masters may do everything"
        ),
        pytest.param(
            User("x"), NonResource("/metrics", "get"), None, Access(False, NO_REVIEWER), id="nobody to ask: no"
        ),
        pytest.param(
            User("bob"), NonResource("/metrics", "get"), Reviewer(), Access(True, "reviewed"), id="review says yes"
        ),
        pytest.param(User("x"), Resource("get", "pods"), Reviewer(), Access(False, "reviewed"), id="review says no"),
    ],
)
def test_access(user, attributes, reviewer, expected):
    authorizer = Authorizer(("/healthz", "livez", "/open/*"), reviewer)
    assert asyncio.run(authorizer.access(user, attributes)) == expected
