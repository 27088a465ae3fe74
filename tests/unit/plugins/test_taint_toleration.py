"""TaintToleration: facts of upstream's taint_toleration_test.go."""

import pytest

from scheduler.api import ActionType, ClusterEvent, Code, EventResource, QueueingHint
from scheduler.plugins.taint_toleration import NAME, REASON_UNTOLERATED
from scheduler.state.changes import NODE_ADD
from scheduler.testing import node, pod

NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
TOLERATION = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)
HARD, EXECUTE, SOFT = "NoSchedule", "NoExecute", "PreferNoSchedule"


@pytest.mark.parametrize(
    ("waiting", "tainted", "fits"),
    [
        pytest.param(pod("p"), node("n").taint("dedicated", "user1"), False, id="no toleration"),
        pytest.param(
            pod("p").toleration("dedicated", "user1", effect=HARD),
            node("n").taint("dedicated", "user1"),
            True,
            id="equal",
        ),
        pytest.param(
            pod("p").toleration("dedicated", "user2", effect=HARD),
            node("n").taint("dedicated", "user1"),
            False,
            id="another value",
        ),
        pytest.param(
            pod("p").toleration("foo", "bar", operator="Equal", effect=HARD).toleration("foo", operator="Exists"),
            node("n").taint("foo", "baz"),
            True,
            id="one of several tolerations is enough",
        ),
        pytest.param(
            pod("p").toleration("a", operator="Exists"),
            node("n").taint("a", "1").taint("b", "2"),
            False,
            id="every hard taint must be tolerated",
        ),
        pytest.param(pod("p"), node("n").taint("foo", "bar", SOFT), True, id="soft taints do not reject"),
        pytest.param(pod("p"), node("n").taint("foo", "bar", EXECUTE), False, id="NoExecute rejects"),
        pytest.param(
            pod("p").toleration("foo", "bar", effect=SOFT), node("n").taint("foo", "bar"), False, id="another effect"
        ),
        pytest.param(pod("p").toleration("foo", "bar"), node("n").taint("foo", "bar", EXECUTE), True, id="any effect"),
        pytest.param(pod("p").toleration(operator="Exists"), node("n").taint("x").taint("y"), True, id="everything"),
        pytest.param(
            pod("p").toleration("sla", "900", operator="Gt", effect=HARD),
            node("n").taint("sla", "950"),
            False,
            id="comparison operators are an alpha feature",
        ),
        pytest.param(pod("p"), node("n"), True, id="no taints"),
    ],
)
def test_filter(bench, waiting, tainted, fits):
    """Hard taints reject for good unless tolerated; other nodes do not matter."""
    bench.cluster([tainted])
    status = bench.verdict(bench.make(NAME), waiting.obj())
    if fits:
        assert status is None
    else:
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == (REASON_UNTOLERATED,)


CPU, DISK = ("cpu-type", "arm64", SOFT), ("disk-type", "ssd", SOFT)


@pytest.mark.parametrize(
    ("waiting", "taints", "scores"),
    [
        pytest.param(
            pod("p").toleration("foo", "bar", operator="Equal", effect=SOFT),
            [[("foo", "bar", SOFT)], [("foo", "blah", SOFT)]],
            [100, 0],
            id="a tolerated taint is better than another",
        ),
        pytest.param(
            pod("p").toleration(*CPU[:2], effect=SOFT).toleration(*DISK[:2], effect=SOFT),
            [[], [CPU], [CPU, DISK]],
            [100, 100, 100],
            id="the number of tolerated taints does not matter",
        ),
        pytest.param(
            pod("p").toleration("foo", "bar", effect=SOFT),
            [[], [CPU], [CPU, DISK]],
            [100, 50, 0],
            id="the more untolerated taints the worse",
        ),
        pytest.param(
            pod("p").toleration(*CPU[:2], effect=HARD).toleration(*DISK[:2], effect=HARD),
            [[], [("cpu-type", "arm64", HARD)], [CPU, DISK]],
            [100, 100, 0],
            id="only soft taints and tolerations count",
        ),
        pytest.param(pod("p"), [[], [CPU]], [100, 0], id="no tolerations"),
        pytest.param(pod("p").toleration(operator="Exists"), [[], [CPU, DISK]], [100, 100], id="all tolerated"),
        pytest.param(
            pod("p").toleration("cpu-type", operator="Exists"), [[CPU, DISK], [DISK]], [0, 0], id="equal count"
        ),
    ],
)
def test_score(bench, waiting, taints, scores):
    """Untolerated soft taints are counted, and the highest count becomes 0."""
    nodes = []
    for i, of_node in enumerate(taints):
        made = node(f"n{i}")
        for taint in of_node:
            made = made.taint(*taint)
        nodes.append(made)
    bench.cluster(nodes)
    assert bench.scores(bench.make(NAME), waiting.obj()) == scores


PLAIN = pod("p").toleration("foo", "bar")
FREE, OURS, THEIRS = node("n").obj(), node("n").taint("foo", "bar").obj(), node("n").taint("foo", "baz").obj()
SOFTLY = node("n").taint("foo", "baz", SOFT).obj()


@pytest.mark.parametrize(
    ("event", "old", "new", "answer"),
    [
        pytest.param(NODE_ADD, None, FREE, "Queue", id="a new free node"),
        pytest.param(NODE_ADD, None, OURS, "Queue", id="a new node with a tolerated taint"),
        pytest.param(NODE_ADD, None, THEIRS, "QueueSkip", id="a new node with another taint"),
        pytest.param(NODE_ADD, None, SOFTLY, "Queue", id="a new node with a soft taint"),
        pytest.param(NODE_TAINT, THEIRS, FREE, "Queue", id="the taint is gone"),
        pytest.param(NODE_TAINT, THEIRS, OURS, "Queue", id="the taint became a tolerated one"),
        pytest.param(NODE_TAINT, OURS, FREE, "QueueSkip", id="was tolerated before"),
        pytest.param(NODE_TAINT, FREE, THEIRS, "QueueSkip", id="tainted"),
        pytest.param(NODE_TAINT, THEIRS, THEIRS, "QueueSkip", id="nothing changed"),
        pytest.param(NODE_ADD, None, "not a node", "Queue", id="an object that is no node"),
    ],
)
def test_node_hints(bench, event, old, new, answer):
    """A node helps when the pod is welcome now and was not before."""
    assert bench.hint(bench.make(NAME), event, PLAIN.obj(), old, new) is QueueingHint(answer)


def test_toleration_hints(bench):
    """Only the pod's own tolerations matter, whatever they are."""
    plugin = bench.make(NAME)
    assert bench.hint(plugin, TOLERATION, PLAIN.obj(), PLAIN.obj(), PLAIN.obj()) is QueueingHint.QUEUE
    assert bench.hint(plugin, TOLERATION, PLAIN.obj(), None, pod("other").obj()) is QueueingHint.SKIP
    assert bench.hint(plugin, TOLERATION, PLAIN.obj(), None, "not a pod") is QueueingHint.QUEUE


def test_events(bench):
    """Nodes' taints and the pod's own tolerations."""
    assert bench.registered(bench.make(NAME)) == {
        ("Node", ActionType.ADD | ActionType.UPDATE_NODE_TAINT),
        ("Pod", ActionType.UPDATE_POD_TOLERATION),
    }
