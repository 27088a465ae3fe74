"""Hints: which events wake a pod that this plugin rejected (spec §2.7)."""

import pytest

from scheduler.api import ActionType, ClusterEvent, EventResource, QueueingHint
from scheduler.model.meta import Namespace
from scheduler.plugins.inter_pod_affinity import NAME
from scheduler.state.changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULABLE_POD_ADD,
    UNSCHEDULABLE_POD_DELETE,
)
from scheduler.testing import node, pod
from scheduler.testing.builders import not_in, obj, selector

WEB, DB = {"app": "web"}, {"app": "db"}
POD_LABEL = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
OWN_LABEL = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NEAR_WEB = pod("p").pod_affinity("zone", WEB)
APART_WEB = pod("p").pod_anti_affinity("zone", WEB)
NEAR_BOTH = NEAR_WEB.pod_affinity("zone", {"tier": "x"})
APART_BOTH = APART_WEB.pod_anti_affinity("zone", {"tier": "x"})
BOTH = {**WEB, "tier": "x"}


def other(labels, *, name="r"):
    return pod(name).labels(labels).on("n1")


def made(builder):
    return None if builder is None else builder.obj()


@pytest.mark.parametrize(
    ("event", "waiting", "old", "new", "queues"),
    [
        pytest.param(OWN_LABEL, NEAR_WEB, pod("p"), pod("p").labels(DB), True, id="its own labels changed"),
        pytest.param(UNSCHEDULABLE_POD_ADD, NEAR_WEB, None, pod("r").labels(WEB), False, id="a pending pod came"),
        pytest.param(UNSCHEDULABLE_POD_DELETE, APART_WEB, pod("r").labels(WEB), None, False, id="a pending pod went"),
        pytest.param(
            UNSCHEDULABLE_POD_DELETE,
            APART_WEB,
            pod("r").labels(WEB).nominated("n1"),
            None,
            True,
            id="a nominated pod went",
        ),
        # a pod came
        pytest.param(ASSIGNED_POD_ADD, NEAR_WEB, None, other(WEB), True, id="a match came"),
        pytest.param(ASSIGNED_POD_ADD, NEAR_WEB, None, other(DB), False, id="another came"),
        pytest.param(ASSIGNED_POD_ADD, NEAR_BOTH, None, other(WEB), False, id="a match of one of two terms came"),
        pytest.param(ASSIGNED_POD_ADD, NEAR_BOTH, None, other(BOTH), True, id="a match of both terms came"),
        pytest.param(ASSIGNED_POD_ADD, NEAR_WEB, None, other(WEB).in_ns("x"), False, id="a match in another namespace"),
        pytest.param(ASSIGNED_POD_ADD, APART_WEB, None, other(WEB), False, id="one more to keep apart from"),
        pytest.param(ASSIGNED_POD_ADD, pod("p"), None, other(WEB), False, id="a pod without rules"),
        # a pod's labels changed
        pytest.param(POD_LABEL, NEAR_WEB, other(DB), other(WEB), True, id="it matches now"),
        pytest.param(POD_LABEL, NEAR_WEB, other(WEB), other(BOTH), False, id="it matched before"),
        pytest.param(POD_LABEL, NEAR_WEB, other(WEB), other(DB), False, id="it matches no more"),
        pytest.param(POD_LABEL, APART_WEB, other(WEB), other(DB), True, id="no longer to keep apart from"),
        pytest.param(POD_LABEL, APART_WEB, other(DB), other(WEB), False, id="now to keep apart from"),
        pytest.param(
            POD_LABEL, APART_BOTH, other(BOTH), other(WEB), True, id="parity: it matched all anti-affinity terms"
        ),
        pytest.param(POD_LABEL, APART_BOTH, other(WEB), other(DB), False, id="parity: it matched only one of them"),
        # a pod went
        pytest.param(ASSIGNED_POD_DELETE, APART_WEB, other(WEB), None, True, id="one to keep apart from went"),
        pytest.param(ASSIGNED_POD_DELETE, APART_WEB, other(DB), None, False, id="another went"),
        pytest.param(ASSIGNED_POD_DELETE, NEAR_WEB, other(WEB), None, False, id="a friend went"),
        pytest.param(
            ASSIGNED_POD_DELETE,
            pod("p").labels(WEB),
            other(DB).pod_anti_affinity("zone", WEB),
            None,
            True,
            id="it repelled us",
        ),
        pytest.param(
            ASSIGNED_POD_DELETE,
            pod("p").labels(WEB),
            other(DB).pod_anti_affinity("zone", WEB).pod_anti_affinity("zone", DB),
            None,
            False,
            id="parity: not all of its terms select us",
        ),
        # nodes
        pytest.param(NODE_ADD, NEAR_WEB, None, node("n").zone("a"), False, id="a node without the key came"),
        pytest.param(NODE_ADD, NEAR_WEB, None, node("n").label("zone", "a"), True, id="a node with the key came"),
        pytest.param(NODE_ADD, APART_WEB, None, node("n"), True, id="any node may do for anti-affinity"),
        pytest.param(NODE_ADD, pod("p"), None, node("n"), False, id="a node came, no rules"),
        pytest.param(NODE_LABEL, NEAR_WEB, node("n"), node("n").label("zone", "a"), True, id="the node got the key"),
        pytest.param(
            NODE_LABEL,
            NEAR_WEB,
            node("n").label("zone", "b"),
            node("n").label("zone", "a"),
            True,
            id="moved to another zone",
        ),
        pytest.param(NODE_LABEL, NEAR_WEB, node("n").label("zone", "a"), node("n"), False, id="the node lost the key"),
        pytest.param(
            NODE_LABEL,
            NEAR_WEB,
            node("n").label("zone", "a"),
            node("n").label("zone", "a").label("x", "y"),
            False,
            id="another label changed",
        ),
        pytest.param(NODE_LABEL, APART_WEB, node("n").label("zone", "a"), node("n"), True, id="left the domain"),
        pytest.param(
            NODE_LABEL, APART_WEB, node("n").label("zone", "b"), node("n").label("zone", "a"), True, id="another domain"
        ),
        pytest.param(NODE_LABEL, APART_WEB, node("n"), node("n").label("zone", "a"), False, id="joined a domain"),
        pytest.param(NODE_DELETE, APART_WEB, node("n"), None, None, id="a node went: not registered"),
    ],
)
def test_hints(bench, event, waiting, old, new, queues):
    """What wakes the pod; None: the event is not registered."""
    answer = bench.hint(bench.make(NAME), event, waiting.obj(), made(old), made(new))
    assert answer is (None if queues is None else QueueingHint.QUEUE if queues else QueueingHint.SKIP)


def test_registered_events(bench):
    """The events are upstream's."""
    pod_changed = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE
    node_changed = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    assert bench.registered(bench.make(NAME)) == {("Pod", pod_changed), ("Node", node_changed)}


def test_namespace_selectors_are_resolved(bench):
    """differs: the pod that it waits for wakes a pod whose term selects namespaces."""
    manifest = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop", "labels": {"team": "red"}}}
    bench.handle.stores.of(Namespace).put(obj(Namespace, manifest))
    waiting = pod("p").pod_affinity("zone", WEB, namespaceSelector=selector({"team": "red"})).obj()
    plugin = bench.make(NAME)
    assert bench.hint(plugin, ASSIGNED_POD_ADD, waiting, None, other(WEB).in_ns("shop").obj()) is QueueingHint.QUEUE
    assert bench.hint(plugin, ASSIGNED_POD_ADD, waiting, None, other(WEB).in_ns("x").obj()) is QueueingHint.SKIP


def test_what_cannot_be_read_wakes(bench):
    """A pod with a bad selector, or an event without a pod, is never slept through."""
    bad = pod("p").pod_affinity("zone", [{"key": "app", "operator": "Sometimes"}]).obj()
    plugin = bench.make(NAME)
    assert bench.hint(plugin, ASSIGNED_POD_ADD, bad, None, other(DB).obj()) is QueueingHint.QUEUE
    assert bench.hint(plugin, NODE_ADD, bad, None, node("n").obj()) is QueueingHint.QUEUE
    assert bench.hint(plugin, ASSIGNED_POD_ADD, NEAR_WEB.obj(), None, None) is QueueingHint.QUEUE
    assert bench.hint(plugin, NODE_ADD, NEAR_WEB.obj(), None, None) is QueueingHint.QUEUE


def test_what_is_kept_of_a_waiting_pod_is_bounded_by_its_terms(bench):
    """Not by the namespaces and kinds of pods that it is asked about."""
    plugin = bench.make(NAME)
    waiting = pod("p").pod_affinity("zone", [not_in("app", "a")], namespaceSelector={})
    for i in range(5):
        waiting = waiting.pod_affinity("zone", [not_in("app", f"a{i}")], namespaceSelector={})
    waiting = waiting.obj()
    for i in range(500):
        event = other({"app": f"a{i % 5}"}).in_ns(f"ns{i}")
        assert bench.hint(plugin, ASSIGNED_POD_ADD, waiting, None, event.obj()) is QueueingHint.SKIP
    near = plugin._hints.rules_of(waiting).near
    assert len(near._means) <= 22
