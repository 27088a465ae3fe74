"""MatchingPods: questions asked again cost what changed; the answers are the laws' business (tests/properties)."""

import numpy as np
import pytest

from scheduler.model.meta import LabelSelector
from scheduler.state.index import matching
from scheduler.state.index.matching import MatchingPods
from scheduler.testing.builders import pod

WEB = LabelSelector({"app": "web"})
SHOP = frozenset({"shop"})


@pytest.fixture
def index():
    made = MatchingPods()
    for name in ("a", "b", "c"):
        made.open_node(name)
    return made


def on(node_name, app="web", *, ns="shop", terminating=False):
    made = pod("p").in_ns(ns).labels({"app": app}).on(node_name)
    return (made.terminating() if terminating else made).obj()


def ask(index, names="abc", selector=WEB, namespaces=SHOP, *, include_terminating=False):
    return index.counts(index.slots(list(names)), namespaces, selector, include_terminating=include_terminating)


def test_counts_in_the_order_asked_for(index):
    """Rows are the caller's; nodes that are not asked for do not matter."""
    for made in (on("a"), on("c"), on("c"), on("c", "db"), on("b", ns="bank")):
        index.add(made)

    assert ask(index, "abc").tolist() == [1, 0, 2]
    assert ask(index, "ca").tolist() == [2, 1]


def test_what_is_asked_for(index):
    """Namespaces, selector and terminating pods each have a say."""
    for made in (on("a"), on("a", terminating=True), on("a", ns="bank"), on("a", "db")):
        index.add(made)

    assert ask(index, "a").tolist() == [1]
    assert ask(index, "a", include_terminating=True).tolist() == [2]
    assert ask(index, "a", namespaces=None).tolist() == [2]
    assert ask(index, "a", selector=LabelSelector()).tolist() == [2]
    assert ask(index, "a", selector=None).tolist() == [0]
    assert ask(index, "a", namespaces=frozenset()).tolist() == [0]


def test_an_answer_is_kept_until_it_changes(index):
    """Readers may compare by identity; what they hold is never written to."""
    slots = index.slots("abc")
    index.add(on("a"))
    first = index.counts(slots, SHOP, WEB, include_terminating=False)
    index.add(on("b", "db"))  # another class: this answer is not concerned
    assert index.counts(slots, SHOP, WEB, include_terminating=False) is first

    index.add(on("b"))
    second = index.counts(slots, SHOP, WEB, include_terminating=False)
    assert first.tolist() == [1, 0, 0]
    assert second.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="read-only"):
        second[0] = 5


def test_selectors_are_equal_by_content(index):
    """The order of labels makes no second question."""
    one = LabelSelector({"app": "web", "tier": "x"})
    other = LabelSelector({"tier": "x", "app": "web"})
    slots = index.slots("abc")

    first = index.counts(slots, SHOP, one, include_terminating=False)
    assert index.counts(slots, SHOP, other, include_terminating=False) is first


def test_a_node_that_came_later(index):
    """Its slot lies beyond the kept column; with and without pods on it."""
    assert ask(index).tolist() == [0, 0, 0]
    index.open_node("d")
    assert ask(index, "abcd").tolist() == [0, 0, 0, 0]
    index.add(on("d"))
    assert ask(index, "abcd").tolist() == [0, 0, 0, 1]


def test_catching_up_looks_at_changes_only(index, monkeypatch):
    """More pods of classes that were looked at before take no look, of a new class one, however many pods there are."""
    for _ in range(50):
        index.add(on("a"))
    ask(index)
    looks = []
    monkeypatch.setattr(
        matching, "label_selector_matches", lambda _, labels: looks.append(labels) or labels["app"] == "web"
    )
    for node_name, app in (("b", "web"), ("b", "db"), ("c", "web"), ("c", "db")):
        index.add(on(node_name, app))

    assert ask(index).tolist() == [50, 1, 1]
    assert looks == [{"app": "db"}]


def test_after_a_long_absence_classes_are_counted_instead(index, monkeypatch):
    """A thousand changes within two classes cost at most two looks."""
    ask(index)
    for _ in range(500):
        index.add(on("a"))
        index.add(on("b", "db"))
    looks = []
    monkeypatch.setattr(
        matching, "label_selector_matches", lambda _, labels: looks.append(labels) or labels["app"] == "web"
    )

    assert ask(index).tolist() == [500, 0, 0]
    assert len(looks) <= 2


def test_questions_are_bounded(index, monkeypatch):
    """The least recently asked gives way and is counted anew when it comes back."""
    monkeypatch.setattr(matching, "_MAX_QUESTIONS", 2)
    slots = index.slots("abc")

    def asked(value):
        return index.counts(slots, SHOP, LabelSelector({"app": value}), include_terminating=False)

    first, second = asked("1"), asked("2")
    assert asked("1") is first
    asked("3")
    assert asked("1") is first
    assert asked("2") is not second
    assert len(index._questions) == 2


def test_many_nodes_in_one_class(index):
    """Large classes are added as arrays."""
    names = [f"n{i}" for i in range(40)]
    for i, name in enumerate(names):
        index.open_node(name)
        for _ in range(i % 3):
            index.add(on(name))

    assert ask(index, names).tolist() == [i % 3 for i in range(40)]
    assert ask(index, names).dtype == np.int64
