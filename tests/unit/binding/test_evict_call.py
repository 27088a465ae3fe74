"""One victim's end at the API server."""

import asyncio

import pytest

from scheduler.binding.evict_call import EvictCall, LeaseLostError
from scheduler.kube.errors import ApiError, TransportError
from scheduler.testing import pod

VICTIM = pod("low").in_ns("shop").uid("u1").set("metadata.generation", 3).obj()
HIGH = pod("high").scheduler("batch").obj()


def evict(server, clock, may_write=lambda seconds: True):
    return asyncio.run(EvictCall(server, clock=clock, may_write=may_write)(VICTIM, HIGH))


def test_condition_then_deletion(server, clock):
    """Both name the UID; the deletion has the pod's own grace period."""
    made = server()
    assert evict(made, clock) is False
    (patch, path, body), (delete, deleted, options) = made.sent
    assert (patch, path) == ("PATCH", "/api/v1/namespaces/shop/pods/low/status")
    assert body["metadata"] == {"uid": "u1"}
    (condition,) = body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["observedGeneration"]) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        3,
    )
    assert condition["message"] == "batch: preempting to accommodate a higher priority pod"
    assert (delete, deleted) == ("DELETE", "/api/v1/namespaces/shop/pods/low")
    assert options == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u1"}}


@pytest.mark.parametrize(
    ("answers", "methods"),
    [
        pytest.param([(404, "")], ["PATCH"], id="gone at the condition"),
        pytest.param([(200, ""), (404, "")], ["PATCH", "DELETE"], id="gone at the deletion"),
        pytest.param([(200, ""), (409, "Precondition failed: UID")], ["PATCH", "DELETE"], id="re-created"),
    ],
)
def test_gone(server, clock, say, answers, methods):
    """A victim that is gone is as good as evicted."""
    made = server(*(say(*each) for each in answers))
    assert evict(made, clock) is True
    assert made.methods == methods


@pytest.mark.parametrize(
    ("step", "error"),
    [
        pytest.param(TransportError("cut", sent=True), TransportError, id="no answer"),
        pytest.param("403", ApiError, id="forbidden"),
    ],
)
def test_trouble(server, clock, say, step, error):
    """What goes wrong is the caller's to judge."""
    made = server(say(200), say(403) if step == "403" else step)
    with pytest.raises(error):
        evict(made, clock)


def test_no_write_without_the_lease(server, clock):
    """Whoever leads no more evicts nobody; a lease lost between the two requests stops the second."""
    made = server()
    with pytest.raises(LeaseLostError, match="shop/low"):
        evict(made, clock, may_write=lambda seconds: False)
    assert made.sent == []
    answers = iter([True, False])
    with pytest.raises(LeaseLostError):
        evict(made, clock, may_write=lambda seconds: next(answers))
    assert made.methods == ["PATCH"]
