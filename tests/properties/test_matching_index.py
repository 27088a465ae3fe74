"""Laws of the index of matching pods: whatever happened, a count kept up equals one made from scratch.

A hypothesis state machine drives a cache with pods that come, change their labels, start to terminate, move and go, and
with nodes that come and go, and asks the same questions again and again at odd times.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.selectors import label_selector_matches
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.index import label_classes, matching
from scheduler.testing.builders import node, pod

NODES = ("n0", "n1", "n2", "n3")
NAMESPACES = ("shop", "bank")
SELECTORS = (
    None,
    LabelSelector(),
    LabelSelector({"app": "web"}),
    LabelSelector({"app": "web", "tier": "x"}),
    LabelSelector({}, (LabelSelectorRequirement("app", "Exists"),)),
    LabelSelector({}, (LabelSelectorRequirement("tier", "NotIn", ("x",)),)),
    LabelSelector({}, (LabelSelectorRequirement("app", "Nonsense", ("x",)),)),
    LabelSelector({}, (LabelSelectorRequirement("tier", "Gt", ("1",)),)),
    LabelSelector({"app": "web"}, (LabelSelectorRequirement("tier", "In", ("x", "y")),)),
    LabelSelector({}, (LabelSelectorRequirement("tier", "In", ("x",)), LabelSelectorRequirement("app", "Exists"))),
)

some_node = st.sampled_from(NODES)
questions = st.tuples(
    st.sampled_from((None, *(frozenset(s) for s in ((), ("shop",), ("shop", "bank"), ("bank", "void"))))),
    st.sampled_from(SELECTORS),
    st.booleans(),
)
shapes = st.tuples(
    st.sampled_from(NAMESPACES),
    st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("web", "x", "3")), max_size=2),
    st.booleans(),
)


def placed(shape, number, node_name):
    namespace, labels, is_terminating = shape
    made = pod(f"p{number}").in_ns(namespace).labels(labels).uid(f"uid-{number}").on(node_name)
    return (made.terminating() if is_terminating else made).obj()


class IndexMachine(RuleBasedStateMachine):
    """Drives a cache; ``pods`` is the plain model of it, the questions asked so far are asked again at every look."""

    assumed = Bundle("assumed")
    added = Bundle("added")

    def __init__(self):
        super().__init__()
        self.cache, self.snapshot = Cache(), Snapshot()
        self.pods = {}
        self.nodes = {}
        self.number = 0

    def _keep(self, made):
        self.pods[made.uid] = made
        return made.uid

    def _new(self, shape, node_name):
        self.number += 1
        return placed(shape, self.number, node_name)

    @rule(name=some_node, zone=st.sampled_from("ab"), rack=st.sampled_from(("1", "2", None)))
    def put_node(self, name, zone, rack):
        made = node(name).zone(zone)
        self.cache.update_node((made if rack is None else made.label("rack", rack)).obj())
        self.nodes[name] = rack

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.cache.remove_node(name)
        del self.nodes[name]

    @rule(target=assumed, shape=shapes, name=some_node)
    def assume(self, shape, name):
        made = self._new(shape, name)
        self.cache.assume_pod(made)
        return self._keep(made)

    @rule(target=added, shape=shapes, name=some_node)
    def add(self, shape, name):
        made = self._new(shape, name)
        self.cache.add_pod(made)
        return self._keep(made)

    @rule(target=added, uid=consumes(assumed), shape=shapes, name=some_node)
    def confirm(self, uid, shape, name):
        made = placed(shape, uid.removeprefix("uid-"), name)
        self.cache.add_pod(made)
        return self._keep(made)

    @rule(uid=consumes(assumed))
    def forget(self, uid):
        self.cache.forget_pod(self.pods.pop(uid))

    @rule(uid=added, shape=shapes)
    def change(self, uid, shape):
        old = self.pods[uid]
        made = placed((old.namespace, *shape[1:]), uid.removeprefix("uid-"), old.node_name)
        self.cache.update_pod(old, made)
        self._keep(made)

    @rule(uid=consumes(added))
    def remove(self, uid):
        self.cache.remove_pod(self.pods.pop(uid))

    @rule(asked=questions, also_rows=st.booleans())
    def ask(self, asked, also_rows):
        self.cache.update_snapshot(self.snapshot)
        namespaces, selector, include_terminating = asked
        found = self.snapshot.matching_pods(namespaces, selector, include_terminating=include_terminating)
        assert dict(zip(self.snapshot.names, found.tolist(), strict=True)) == self._counted(*asked)
        if also_rows and len(self.snapshot):
            view = self.snapshot.take([len(self.snapshot) - 1])
            part = view.matching_pods(namespaces, selector, include_terminating=include_terminating)
            assert part.tolist() == found.tolist()[-1:]

    @rule(asked=questions, also_rows=st.booleans())
    def ask_by_label(self, asked, also_rows):
        """The sums for each value of a label, which nodes may lack, and which may change."""
        self.cache.update_snapshot(self.snapshot)
        self._check_sums(self.snapshot, self.nodes, asked)
        if also_rows and len(self.snapshot):
            view = self.snapshot.take([len(self.snapshot) - 1])
            self._check_sums(view, view.names, asked)

    def _check_sums(self, nodes, names, asked):
        namespaces, selector, include_terminating = asked
        sums = nodes.matching_pods_by("rack", namespaces, selector, include_terminating=include_terminating)
        column, expected = nodes.label("rack"), dict.fromkeys("12", 0)
        for name, count in self._counted(*asked).items():
            if name in names and self.nodes[name] is not None:
                expected[self.nodes[name]] += count
        assert len(sums) == len(column.values) + 1
        assert {value: sums[code] for value, code in column.code_of.items()} == {
            value: expected[value] for value in column.code_of
        }
        assert sums.sum() == sum(expected.values())
        assert column.is_complete is all(self.nodes[name] is not None for name in names)
        assert {value for value, code in column.code_of.items() if column.present[code]} == {
            self.nodes[name] for name in names
        } - {None}

    def _counted(self, namespaces, selector, include_terminating):
        wanted = [
            made
            for made in self.pods.values()
            if (namespaces is None or made.namespace in namespaces)
            and label_selector_matches(selector, made.labels)
            and (include_terminating or not made.is_terminating)
        ]
        return {name: sum(made.node_name == name for made in wanted) for name in self.nodes}

    @invariant()
    def counts_in_classes_equal_the_pods(self):
        classes = list(self.cache._matching._classes.within(None))
        assert sum(sum(of.counts.values()) for of in classes) == len(self.pods)
        assert all(of.counts and min(of.counts.values()) > 0 for of in classes)


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


class TestCrampedIndex(IndexMachine.TestCase):
    """The same with so little room that every way is taken: log cut, counted anew, question displaced."""

    settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

    @pytest.fixture(autouse=True)
    def _cramped(self, monkeypatch):
        monkeypatch.setattr(label_classes, "_LOG_LIMIT", 6)
        monkeypatch.setattr(label_classes, "CHEAP_BACKLOG", 1)
        monkeypatch.setattr(matching, "CHEAP_BACKLOG", 1)
        monkeypatch.setattr(matching, "_FEW_COUNTS", 0)
        monkeypatch.setattr(matching, "_MAX_QUESTIONS", 3)
        monkeypatch.setattr(matching, "_MAX_KNOWN", 1)
