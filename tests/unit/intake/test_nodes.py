"""Nodes: the cache hears everything, the queue only what can help a pod."""

import pytest

from scheduler.model.delta import Added, Changed, Removed
from scheduler.model.node import Node
from scheduler.testing import node, pod

NODE = node("n1").capacity(cpu="4", pods="10")


def test_new_node(bench):
    """It is in the snapshot, and waiting pods try again."""
    parked = bench.park(pod("waits").obj())
    bench.apply(Added(NODE.obj()))
    assert bench.snapshot().names == ["n1"]
    assert bench.stores.of(Node).get("n1") is not None
    assert bench.is_woken(parked)
    assert bench.seconds == {"NodeAdd": 1}


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        pytest.param(NODE, NODE.capacity(cpu="8"), {"NodeUpdateNodeAllocatable": 1}, id="grown"),
        pytest.param(NODE, NODE.label("a", "b"), {"NodeUpdateNodeLabel": 1}, id="labelled"),
        pytest.param(NODE, NODE.taint("a"), {"NodeUpdateNodeTaint": 1}, id="tainted"),
        pytest.param(NODE.cordoned(), NODE, {"NodeUpdateNodeTaint": 1}, id="uncordoned"),
        pytest.param(NODE, NODE.cordoned(), {}, id="cordoned"),
        pytest.param(NODE, NODE.condition("Ready"), {"NodeUpdateNodeCondition": 1}, id="became ready"),
        pytest.param(NODE.condition("Ready"), NODE.condition("Ready", reason="x"), {}, id="heartbeat"),
        pytest.param(NODE, NODE.annotation("a", "b"), {"NodeUpdateNodeAnnotation": 1}, id="annotated"),
        pytest.param(NODE, NODE.declares("F"), {"NodeUpdateNodeDeclaredFeature": 1}, id="declares a feature"),
        pytest.param(
            NODE,
            NODE.label("a", "b").capacity(cpu="8"),
            {"NodeUpdateNodeAllocatable": 1, "NodeUpdateNodeLabel": 1},
            id="two",
        ),
    ],
)
def test_changed_node(bench, before, after, events):
    """The cache has the new version; one event for each kind of change that can help."""
    old, new = before.obj(), after.resource_version("2").obj()
    bench.apply(Added(old))
    parked = bench.park(pod("waits").obj())
    bench.seconds.clear()
    bench.apply(Changed(old, new))
    assert bench.cache.get_node("n1").node is new
    assert bench.stores.of(Node).get("n1") is new
    assert bench.seconds == events
    assert bench.is_woken(parked) is bool(events)


@pytest.mark.parametrize("is_stale", [False, True], ids=["told", "found out by a relist"])
def test_removed_node(bench, is_stale):
    """Pods on it stay known until they are gone themselves; hints may still look at the node's last version."""
    bench.apply(Added(NODE.obj()), Added(pod("p").on("n1").obj()))
    parked = bench.park(pod("waits").obj())
    bench.seconds.clear()
    bench.apply(Removed(NODE.obj(), is_stale=is_stale))
    assert len(bench.snapshot()) == 0
    assert bench.cache.num_pods == 1
    assert bench.is_woken(parked)
    assert bench.seconds == {"NodeDelete": 1}
    bench.apply(Removed(pod("p").on("n1").obj()))
    assert bench.cache.num_nodes == 0


def test_node_that_comes_back_finds_its_pods(bench):
    """A kubelet that registers anew keeps what runs on it."""
    bench.apply(Added(NODE.obj()), Added(pod("p").on("n1").obj()), Removed(NODE.obj()), Added(NODE.uid("2").obj()))
    assert bench.pods_on("n1") == ["p"]


def test_removal_of_an_unknown_node_stops_nothing(bench):
    """The cache has no such node; that is logged."""
    bench.apply(Removed(NODE.obj()), Added(NODE.obj()))
    assert bench.snapshot().names == ["n1"]
