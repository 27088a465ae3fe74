"""LabelClasses: pods that no selector can tell apart are one class; nodes are slots; changes are logged."""

import pytest

from scheduler.state.index import label_classes
from scheduler.state.index.label_classes import LabelClasses
from scheduler.testing.builders import pod


@pytest.fixture
def classes():
    made = LabelClasses()
    for name in ("a", "b"):
        made.open_slot(name)
    return made


def on(node_name, *, ns="shop", terminating=False, **labels):
    made = pod("p").in_ns(ns).labels(labels).on(node_name)
    return (made.terminating() if terminating else made).obj()


def shown(classes, namespaces=None):
    return sorted((of.namespace, dict(of.labels), of.is_terminating, of.counts) for of in classes.within(namespaces))


def test_alike_pods_are_one_class(classes):
    """Same namespace and labels in any order: one class that counts by node."""
    classes.add(on("a", app="web", tier="x"))
    classes.add(on("a", tier="x", app="web"))
    classes.add(on("b", app="web", tier="x"))

    assert shown(classes) == [("shop", {"app": "web", "tier": "x"}, False, {0: 2, 1: 1})]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"app": "db"}, id="another value"),
        pytest.param({"app": "web", "more": ""}, id="one more label"),
        pytest.param({"app": "web", "ns": "bank"}, id="another namespace"),
        pytest.param({"app": "web", "terminating": True}, id="being deleted"),
    ],
)
def test_pods_that_a_rule_can_tell_apart_are_not(classes, other):
    """Each of these differences makes a class of its own."""
    classes.add(on("a", app="web"))
    classes.add(on("a", **other))

    assert classes.num_within(None) == 2


def test_within_looks_into_the_named_namespaces_only(classes):
    """Unknown namespaces have no classes; None means all."""
    classes.add(on("a", ns="shop"))
    classes.add(on("a", ns="bank"))

    assert [of[0] for of in shown(classes, frozenset({"shop", "void"}))] == ["shop"]
    assert classes.num_within(frozenset({"shop", "void"})) == 1
    assert classes.num_within(frozenset()) == 0
    assert [of[0] for of in shown(classes, None)] == ["bank", "shop"]


def test_a_class_goes_with_its_last_pod(classes):
    """Counts and classes that are zero have no entry."""
    first, second = on("a", app="web"), on("b", app="web")
    classes.add(first)
    classes.add(second)
    classes.remove(first)
    assert shown(classes) == [("shop", {"app": "web"}, False, {1: 1})]

    classes.remove(second)
    assert shown(classes) == []
    assert classes.num_within(frozenset({"shop"})) == 0


def test_slots_are_used_anew(classes):
    """A node that goes leaves its number to the next one, so churn costs no memory."""
    classes.close_slot("a")
    classes.open_slot("c")
    classes.open_slot("d")

    assert (classes.slot("b"), classes.slot("c"), classes.slot("d")) == (1, 0, 2)
    assert classes.num_slots == 3


def test_log(classes):
    """Readers get what happened after their position."""
    start = classes.position
    made = on("b", app="web")
    classes.add(made)
    between = classes.position
    classes.remove(made)

    assert [(change.slot, change.delta) for change in classes.changes_since(start)] == [(1, 1), (1, -1)]
    assert [change.delta for change in classes.changes_since(between)] == [-1]
    assert list(classes.changes_since(classes.position)) == []


def test_log_is_bounded(classes, monkeypatch):
    """Who stayed away too long is told to start anew."""
    monkeypatch.setattr(label_classes, "_LOG_LIMIT", 4)
    start = classes.position
    for _ in range(3):
        classes.add(on("a"))
    assert len(classes.changes_since(start)) == 3
    classes.add(on("a"))

    assert classes.changes_since(start) is None
    assert classes.position == 4
    assert len(classes.changes_since(2)) == 2


def test_log_is_as_long_as_readers_use_it(classes):
    """Who is further behind than there are classes counts anew, and needs no log: a small cluster has a short one."""
    for _ in range(1_000):
        classes.add(on("a"))
        position = classes.position
        assert classes.changes_since(max(0, position - label_classes.CHEAP_BACKLOG)) is not None
        assert classes.changes_since(position - 2 * label_classes.CHEAP_BACKLOG) is None
    for number in range(500):
        classes.add(on("a", app=f"app-{number}"))
    for _ in range(2_000):
        classes.add(on("b"))
    assert len(classes.changes_since(classes.position - 501)) == 501


def test_log_of_heavy_pods_is_shorter(classes, monkeypatch):
    """A change keeps its pod's labels alive, of which there may be thousands."""
    monkeypatch.setattr(label_classes, "_MAX_WEIGHT", 10)
    start = classes.position
    heavy = {f"k{i}": "v" for i in range(4)}
    classes.add(on("a", **heavy))
    classes.add(on("a", **heavy))
    assert len(classes.changes_since(start)) == 2
    classes.add(on("a", **heavy))

    assert classes.changes_since(start) is None
    assert classes.position == 3
    assert len(classes.changes_since(2)) == 1
