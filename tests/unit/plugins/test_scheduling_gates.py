"""SchedulingGates: facts of upstream's scheduling_gates_test.go."""

import pytest

from scheduler.api import ActionType, ClusterEvent, Code, EventResource, QueueingHint
from scheduler.plugins.scheduling_gates import NAME
from scheduler.testing import pod

GATES_GONE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def test_pod_without_gates_may_enter(bench):
    """None means success."""
    assert bench.make(NAME).pre_enqueue(pod("p").obj()) is None


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        pytest.param(["foo"], "waiting for scheduling gates: [foo]", id="one gate"),
        pytest.param(["foo", "bar"], "waiting for scheduling gates: [foo bar]", id="two gates in their order"),
    ],
)
def test_gated_pod_is_kept_out(bench, gates, reason):
    """The names stand in brackets, as Go prints a list."""
    status = bench.make(NAME).pre_enqueue(pod("p").gate(*gates).obj())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (reason,)


def test_events(bench):
    """Only the end of the pod's own gates matters."""
    plugin = bench.make(NAME)
    gated, freed = pod("p").gate("foo").obj(), pod("p").obj()
    assert bench.registered(plugin) == {("Pod", ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)}
    assert bench.hint(plugin, GATES_GONE, gated, gated, freed) is QueueingHint.QUEUE
    assert bench.hint(plugin, GATES_GONE, gated, pod("other").gate("g").obj(), pod("other").obj()) is QueueingHint.SKIP
    assert bench.hint(plugin, GATES_GONE, gated, gated, "not a pod") is QueueingHint.QUEUE
