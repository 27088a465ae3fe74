"""PatchCall: what a plugin is told about its patch."""

import asyncio
import json

import pytest

from scheduler.api import Code, Status
from scheduler.binding.patch_call import PatchCall
from scheduler.kube.errors import ApiError, TransportError
from scheduler.kube.transport import JSON, Response
from scheduler.model.meta import ObjectMeta
from scheduler.model.storage import PersistentVolume

VOLUME = PersistentVolume(ObjectMeta(name="pv", uid="u1", resource_version="7"))


class FakeTransport:
    """Gives one answer."""

    def __init__(self, answer):
        self.answer, self.sent = answer, 0

    async def request(self, method, path, *, body=None, content_type=JSON, timeout_s):
        self.sent += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def call(answer, *, may_write=True):
    transport = FakeTransport(answer)
    patch = PatchCall(transport, may_write=lambda timeout_s: may_write)
    return asyncio.run(patch(VOLUME, {})), transport


def refusal(message):
    return Response(409, {}, json.dumps({"kind": "Status", "reason": "Conflict", "message": message}).encode())


def test_success():
    """The changed object comes back."""
    changed, _ = call(Response(200, {}, b'{"metadata": {"name": "pv", "resourceVersion": "8"}}'))
    assert changed.metadata.resource_version == "8"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(refusal("the object has been modified"), "the object has been modified", id="server's own words"),
        pytest.param(ApiError(503), "changing PersistentVolume pv: 503", id="no words"),
        pytest.param(TransportError("reset", sent=True), "changing PersistentVolume pv: reset", id="no answer"),
    ],
)
def test_failures_are_statuses(answer, text):
    """A plugin gets an Error, not an exception."""
    status, _ = call(answer)
    assert isinstance(status, Status)
    assert (status.code, status.reasons) == (Code.ERROR, (text,))


def test_not_without_the_lease():
    """A scheduler that may no longer lead sends nothing."""
    status, transport = call(refusal("x"), may_write=False)
    assert status.code is Code.ERROR
    assert transport.sent == 0
