"""NodeUnschedulable: facts of upstream's node_unschedulable_test.go."""

import pytest

from scheduler.api import ActionType, ClusterEvent, Code, EventResource, QueueingHint
from scheduler.plugins.node_unschedulable import NAME, REASON_UNSCHEDULABLE
from scheduler.state.changes import NODE_ADD
from scheduler.testing import node, pod

KEY = "node.kubernetes.io/unschedulable"
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
TOLERATION = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)
PLAIN = pod("p")


@pytest.mark.parametrize(
    ("waiting", "fits"),
    [
        pytest.param(PLAIN, False, id="no tolerations"),
        pytest.param(PLAIN.toleration(KEY, operator="Exists", effect="NoSchedule"), True, id="tolerates the cordon"),
        pytest.param(PLAIN.toleration(KEY, effect="NoSchedule"), True, id="an equal, empty value"),
        pytest.param(PLAIN.toleration(operator="Exists"), True, id="tolerates everything"),
        pytest.param(PLAIN.toleration(KEY, operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(PLAIN.toleration(KEY, "x"), False, id="another value"),
        pytest.param(PLAIN.toleration("other", operator="Exists"), False, id="another key"),
    ],
)
def test_filter(bench, waiting, fits):
    """An open node takes all; a cordoned one only pods that tolerate the cordon."""
    bench.cluster([node("open"), node("cordoned").cordoned()])
    verdicts = bench.verdicts(bench.make(NAME), waiting.obj())
    assert verdicts["open"] is None
    if fits:
        assert verdicts["cordoned"] is None
    else:
        assert verdicts["cordoned"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert verdicts["cordoned"].reasons == (REASON_UNSCHEDULABLE,)


OPEN, CORDONED = node("n").obj(), node("n").cordoned().obj()


@pytest.mark.parametrize(
    ("event", "old", "new", "answer"),
    [
        pytest.param(NODE_ADD, None, OPEN, "Queue", id="a new open node"),
        pytest.param(NODE_ADD, None, CORDONED, "QueueSkip", id="a new cordoned node"),
        pytest.param(NODE_TAINT, CORDONED, OPEN, "Queue", id="uncordoned"),
        pytest.param(NODE_TAINT, OPEN, CORDONED, "QueueSkip", id="cordoned"),
        pytest.param(NODE_TAINT, OPEN, OPEN, "QueueSkip", id="was open before"),
        pytest.param(NODE_TAINT, CORDONED, CORDONED, "QueueSkip", id="stays cordoned"),
        pytest.param(NODE_ADD, None, "not a node", "Queue", id="an object that is no node"),
    ],
)
def test_node_hints(bench, event, old, new, answer):
    """Only a change from closed to open helps."""
    assert bench.hint(bench.make(NAME), event, PLAIN.obj(), old, new) is QueueingHint(answer)


@pytest.mark.parametrize(
    ("new", "answer"),
    [
        pytest.param(PLAIN.toleration(KEY, operator="Exists").obj(), "Queue", id="own pod, tolerates now"),
        pytest.param(PLAIN.toleration("x", operator="Exists").obj(), "QueueSkip", id="own pod, something else"),
        pytest.param(pod("other").toleration(KEY, operator="Exists").obj(), "QueueSkip", id="another pod"),
        pytest.param("not a pod", "Queue", id="an object that is no pod"),
    ],
)
def test_toleration_hints(bench, new, answer):
    """The pod itself must have got the right toleration."""
    assert bench.hint(bench.make(NAME), TOLERATION, PLAIN.obj(), PLAIN.obj(), new) is QueueingHint(answer)


def test_events(bench):
    """Nodes that open, and the pod's own tolerations."""
    assert bench.registered(bench.make(NAME)) == {
        ("Node", ActionType.ADD | ActionType.UPDATE_NODE_TAINT),
        ("Pod", ActionType.UPDATE_POD_TOLERATION),
    }
