"""PodTopologySpread's events and hints: facts of upstream's plugin_test.go."""

import pytest

from scheduler.api import ActionType, ClusterEvent, EventResource, QueueingHint
from scheduler.plugins.topology_spread import NAME
from scheduler.state.changes import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, NODE_ADD, NODE_DELETE
from scheduler.testing import node, pod

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
POD_LABEL = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
OWN_TOLERATION = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)

FOO, BAR = {"foo": ""}, {"bar": ""}
WAITING = pod("p").spread("zone", FOO).spread("node", BAR)
ON = pod("other").on("n")
BOTH = node("n").labels({"zone": "z", "node": "n"})
ONE = node("n").labels({"zone": "z"})


def hint(bench, event, old, new, waiting=WAITING):
    made = [each if each is None else each.obj() for each in (old, new)]
    return bench.hint(bench.make(NAME), event, waiting.obj(), *made)


def test_events(bench):
    """Pods that come, go or change labels or tolerations; nodes that come, go or change labels or taints."""
    pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
    nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    assert bench.registered(bench.make(NAME)) == {("Pod", pods), ("Node", nodes)}


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param(ASSIGNED_POD_ADD, None, ON.labels(FOO), QUEUE, id="a counted pod came"),
        pytest.param(ASSIGNED_POD_ADD, None, ON.labels(x="y"), SKIP, id="another pod came"),
        pytest.param(ASSIGNED_POD_ADD, None, ON.labels(FOO).in_ns("other"), SKIP, id="in another namespace"),
        pytest.param(ASSIGNED_POD_ADD, None, pod("other").labels(FOO), SKIP, id="it has no node yet"),
        pytest.param(ASSIGNED_POD_ADD, None, pod("other").labels(FOO).nominated("n"), QUEUE, id="it is nominated"),
        pytest.param(ASSIGNED_POD_DELETE, ON.labels(BAR), None, QUEUE, id="a counted pod went"),
        pytest.param(ASSIGNED_POD_DELETE, ON.labels(x="y"), None, SKIP, id="another pod went"),
        pytest.param(POD_LABEL, ON.labels(FOO), ON.labels(x="y"), QUEUE, id="a pod counts no more"),
        pytest.param(POD_LABEL, ON.labels(x="y"), ON.labels(FOO), QUEUE, id="a pod counts now"),
        pytest.param(POD_LABEL, ON.labels(FOO), ON.labels(BAR), QUEUE, id="a pod counts elsewhere"),
        pytest.param(POD_LABEL, ON.labels(FOO), ON.labels(foo="", x="y"), SKIP, id="an unrelated label"),
        pytest.param(POD_LABEL, ON.labels(FOO), ON.labels(FOO), SKIP, id="no label changed"),
        pytest.param(POD_LABEL, pod("p"), pod("p").labels(FOO), QUEUE, id="the waiting pod's own labels"),
    ],
)
def test_pods(bench, event, old, new, expected):
    """Only pods that one of the selectors matches make a difference."""
    assert hint(bench, event, old, new) == expected


@pytest.mark.parametrize(
    ("policy", "name", "expected"),
    [
        pytest.param("Honor", "p", QUEUE, id="own toleration, taints honored"),
        pytest.param("Ignore", "p", SKIP, id="own toleration, taints ignored"),
        pytest.param("Honor", "other", SKIP, id="another pod's toleration"),
    ],
)
def test_tolerations(bench, policy, name, expected):
    """A new toleration opens domains only to the pod that has it."""
    waiting = pod("p").spread("zone", FOO, nodeTaintsPolicy=policy)
    old = pod(name).on("n") if name == "other" else pod(name)
    new = old.toleration("gpu", operator="Exists")
    assert hint(bench, OWN_TOLERATION, old, new, waiting) == expected


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        pytest.param(NODE_ADD, None, BOTH, QUEUE, id="a node with all labels came"),
        pytest.param(NODE_ADD, None, ONE, SKIP, id="a node without one came"),
        pytest.param(NODE_DELETE, BOTH, None, QUEUE, id="a node with all labels went"),
        pytest.param(NODE_DELETE, ONE, None, SKIP, id="a node without one went"),
        pytest.param(NODE_LABEL, ONE, BOTH, QUEUE, id="it has all labels now"),
        pytest.param(NODE_LABEL, BOTH, ONE, QUEUE, id="it has not all labels any more"),
        pytest.param(NODE_LABEL, BOTH, BOTH.label("zone", "other"), QUEUE, id="it moved"),
        pytest.param(NODE_LABEL, BOTH, BOTH.label("x", "y"), SKIP, id="an unrelated label"),
        pytest.param(NODE_LABEL, ONE, ONE.label("zone", "other"), SKIP, id="it does not count before and after"),
        pytest.param(NODE_TAINT, BOTH.taint("gpu"), BOTH, QUEUE, id="taints changed"),
        pytest.param(NODE_TAINT, ONE.taint("gpu"), ONE, SKIP, id="taints of a node that does not count"),
        pytest.param(NODE_TAINT, BOTH, BOTH.cordoned(), SKIP, id="a cordon is no taint"),
    ],
)
def test_nodes(bench, event, old, new, expected):
    """Only nodes that have every topology label make a difference."""
    assert hint(bench, event, old, new) == expected


@pytest.mark.parametrize(
    ("event", "new"), [pytest.param(ASSIGNED_POD_ADD, ON, id="pod"), pytest.param(NODE_ADD, ONE, id="node")]
)
def test_bad_constraints_are_retried(bench, event, new):
    """Who knows; the next attempt says what is wrong."""
    waiting = pod("p").spread("zone", {"matchExpressions": [{"key": "foo", "operator": "Near"}]})
    assert hint(bench, event, None, new, waiting) == QUEUE


@pytest.mark.parametrize(
    ("waiting", "wants_anything"),
    [
        pytest.param(WAITING, False, id="its own constraints"),
        pytest.param(pod("p"), True, id="none of its own: the profile's follow services, which change"),
        pytest.param(pod("p").spread("zone", FOO, when="ScheduleAnyway"), True, id="no hard ones"),
        pytest.param(pod("p").spread("zone", [{"key": "foo", "operator": "Near"}]), True, id="bad ones"),
    ],
)
def test_what_a_pod_wants_is_said_only_where_it_stays_so(bench, waiting, wants_anything):
    """It is worked out when the pod begins to wait (tests/properties/test_waiting_index.py has the other laws)."""
    for registration in bench.make(NAME).events():
        assert (registration.index.wanted(waiting.obj()) is None) == wants_anything
