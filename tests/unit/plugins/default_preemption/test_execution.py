"""Having victims removed, and the gate meanwhile."""

import pytest

from scheduler.api import Victims
from scheduler.plugins.default_preemption.execution import Execution
from scheduler.state.store import Store
from scheduler.testing import pod

POD = pod("high").priority(10).obj()
A, B = pod("a").on("n1").obj(), pod("b").on("n1").obj()
GOING = pod("going").on("n1").terminating().obj()


class Handle:
    """Keeps what is asked of it."""

    def __init__(self, nominated=()):
        self.nominated = nominated
        self.evictions, self.cleared, self.activated = [], [], []
        self.placed = {each.pod_uid for each in (A, B, GOING)}

    def is_placed(self, uid):
        return uid in self.placed

    def nominated_pods(self, node_name):
        return self.nominated

    def clear_nomination(self, pod):
        self.cleared.append(pod)

    def evict(self, eviction):
        self.evictions.append(eviction)

    def activate(self, pods):
        self.activated.append(dict(pods))


@pytest.fixture
def pods():
    store = Store()
    for known in (A, B, GOING):
        store.put(known)
    return store


def execution(handle, pods, *, is_gated=True):
    return Execution(handle, pods, "DefaultPreemption", is_gated=is_gated)


def test_order_and_gate(pods):
    """The gate is closed until the last victim is gone or going; then the watch may open it before the answer comes."""
    handle = Handle()
    made = execution(handle, pods)
    made.start(POD, "n1", Victims((A, GOING, B)))
    (order,) = handle.evictions
    assert (order.preemptor, order.node_name, order.victims, order.num_chosen) == (POD, "n1", (A, B), 3)
    assert made.is_waiting(POD)
    assert not made.is_waiting(A)
    pods.remove(A)
    assert made.is_waiting(POD), "others are of no interest"
    order.on_last()
    assert made.is_waiting(POD)
    pods.put(pod("b").on("n1").terminating().obj())
    assert not made.is_waiting(POD)
    order.on_end(None, False)
    assert not made.is_waiting(POD)
    assert handle.activated == [], "the end of the victims wakes the pod"


@pytest.mark.parametrize(
    ("successor", "waits"),
    [
        pytest.param(None, False, id="gone"),
        pytest.param(pod("b").uid("another").on("n1").obj(), False, id="re-created"),
        pytest.param(pod("b").label("x", "y").on("n1").obj(), True, id="changed"),
    ],
)
def test_last_victim(pods, successor, waits):
    """The last victim counts by UID."""
    handle = Handle()
    made = execution(handle, pods)
    made.start(POD, "n1", Victims((B,)))
    handle.evictions[0].on_last()
    pods.remove(B)
    if successor is not None:
        pods.put(successor)
    assert made.is_waiting(POD) is waits


def test_last_victim_whose_binding_fails(pods):
    """Its place is free with its end on the way to the node: that event finds the gate open."""
    pods.put(pod("b").obj())
    handle = Handle()
    made = execution(handle, pods)
    made.start(POD, "n1", Victims((B,)))
    handle.evictions[0].on_last()
    assert made.is_waiting(POD)
    handle.placed.remove(B.pod_uid)
    assert not made.is_waiting(POD)
    assert handle.activated == [], "the event wakes it"


def test_last_victim_whose_binding_failed_while_others_went(pods):
    """The event found the gate closed, and another one may never come."""
    pods.put(pod("b").obj())
    handle = Handle()
    made = execution(handle, pods)
    made.start(POD, "n1", Victims((A, B)))
    handle.placed.remove(B.pod_uid)
    assert made.is_waiting(POD)
    handle.evictions[0].on_last()
    assert not made.is_waiting(POD)
    assert handle.activated == [{POD.pod_key: POD}]


@pytest.mark.parametrize(
    ("error", "was_gone", "wakes"),
    [
        pytest.param(None, False, False, id="fine"),
        pytest.param(RuntimeError("403"), False, True, id="failed"),
        pytest.param(None, True, True, id="gone before we asked"),
    ],
)
def test_who_wakes_the_pod(pods, error, was_gone, wakes):
    """Where no event is sure to come, the pod is woken at the end."""
    handle = Handle()
    made = execution(handle, pods)
    made.start(POD, "n1", Victims((B,)))
    handle.evictions[0].on_end(error, was_gone)
    assert handle.activated == ([{POD.pod_key: POD}] if wakes else [])
    assert not made.is_waiting(POD)


def test_victims_are_leaving_from_the_decision_on(pods):
    """Whoever evicts a pod: it is leaving until the last of these preemptions has ended and the watch shows it."""
    handle = Handle()
    made = execution(handle, pods)
    other = pod("other").priority(11).obj()
    made.start(POD, "n1", Victims((A, GOING, B)))
    made.start(other, "n1", Victims((B,)))
    assert [made.is_leaving(each) for each in (A, B, GOING, POD)] == [True, True, False, False]
    first, second = handle.evictions
    pods.remove(A)
    first.on_end(None, False)
    assert [made.is_leaving(each) for each in (A, B)] == [False, True]
    second.on_end(None, False)
    assert made.is_leaving(B), "the answer was faster than the watch"
    pods.put(pod("b").on("n1").terminating().obj())
    made.start(POD, "n1", Victims((A,)))
    handle.evictions[-1].on_end(None, True)
    assert not made.is_leaving(B)


def test_victims_that_stay_are_not_leaving(pods):
    """One whose eviction failed, and one that was called back on its way to the node."""
    on_its_way = pod("c").obj()
    pods.put(on_its_way)
    handle = Handle()
    made = execution(handle, pods)
    made.start(POD, "n1", Victims((A,)))
    made.start(POD, "n1", Victims((on_its_way.on_node("n1"),)))
    assert made.is_leaving(A)
    assert made.is_leaving(on_its_way)
    handle.evictions[0].on_end(RuntimeError("403"), False)
    handle.evictions[1].on_end(None, False)
    assert not made.is_leaving(A)
    assert not made.is_leaving(on_its_way)


def test_failed_preemption_wakes_all_who_wait_for_the_node(pods):
    """They may have waited for the victims that stay."""
    waits = pod("waits").priority(10).obj()
    handle = Handle((waits,))
    execution(handle, pods).start(POD, "n1", Victims((A,)))
    handle.evictions[0].on_end(RuntimeError("403"), False)
    assert handle.activated == [{POD.pod_key: POD, waits.pod_key: waits}]


def test_nominations_of_lesser_pods_end(pods):
    """They may not fit any more; equal and more important ones keep theirs."""
    low, equal = pod("low").priority(9).obj(), pod("equal").priority(10).obj()
    handle = Handle((low, equal))
    execution(handle, pods).start(POD, "n1", Victims((A,)))
    assert handle.cleared == [low]


@pytest.mark.parametrize(
    ("is_gated", "cleared"), [pytest.param(True, 0, id="gated"), pytest.param(False, 1, id="not gated")]
)
def test_all_victims_go_already(pods, is_gated, cleared):
    """Nothing is left to do; upstream clears nominations all the same if it works without the gate."""
    handle = Handle((pod("low").obj(),))
    made = execution(handle, pods, is_gated=is_gated)
    made.start(POD, "n1", Victims((GOING,)))
    assert (handle.evictions, len(handle.cleared), made.is_waiting(POD)) == ([], cleared, False)


def test_without_the_gate_nobody_waits(pods):
    """SchedulerAsyncPreemption off."""
    handle = Handle()
    made = execution(handle, pods, is_gated=False)
    made.start(POD, "n1", Victims((A,)))
    assert len(handle.evictions) == 1
    assert not made.is_waiting(POD)
