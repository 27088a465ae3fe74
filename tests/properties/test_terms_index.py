"""Laws of the index of carried terms: whatever happened, it equals one built from the pods on nodes.

A state machine drives a cache with nodes that come, go and change their labels and with pods with affinity that come,
change, move and go, and compares the index with one made from scratch and its answers with a look at every pod.
"""

from collections import Counter

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.index.term_counts import DenseCounts, TermCounts
from scheduler.state.index.term_questions import Visible
from scheduler.testing.builders import absent, exists, in_, node, not_in, pod, selector

NODES = ("n0", "n1", "n2")
KEYS = ("zone", "rack")
NAMESPACES = {"default": {}, "shop": {"team": "red"}}
SELECTORS = (
    None,
    {},
    {"app": "web"},
    {"app": "db", "tier": "x"},
    [in_("app", "web", "db")],
    [not_in("app", "web")],
    [exists("tier"), in_("app", "db")],
    [absent("tier")],
)
ASKING = [
    pod("p").in_ns(name).labels(labels).obj()
    for name in (*NAMESPACES, "unknown", "unknown-too")
    for labels in (
        {},
        {"app": "web"},
        {"app": "db", "tier": "x"},
        {"tier": "y"},
        {"app": "1"},
        {"app": "2", "pod": "2"},
    )
]

some_node = st.sampled_from(NODES)
some_namespace = st.sampled_from(tuple(NAMESPACES))


@st.composite
def terms(draw):
    fields = {}
    if draw(st.booleans()):
        fields["namespaces"] = draw(st.lists(some_namespace, min_size=1, max_size=2))
    if draw(st.booleans()):
        fields["namespaceSelector"] = draw(st.sampled_from(({}, selector({"team": "red"}), selector([absent("team")]))))
    return draw(st.sampled_from(KEYS)), draw(st.sampled_from(SELECTORS)), fields


@st.composite
def shapes(draw):
    """A pod without name, uid and node."""
    made = pod().in_ns(draw(some_namespace)).labels(draw(st.sampled_from(({}, {"app": "web"}))))
    for key, wanted, fields in draw(st.lists(terms(), max_size=3)):
        add = draw(st.sampled_from((made.pod_affinity, made.pod_anti_affinity)))
        made = add(key, wanted, weight=draw(st.sampled_from((None, 1, 7))), **fields)
    return made


def placed(shape, number, node_name):
    return shape.set("metadata.name", f"p{number}").uid(f"uid-{number}").on(node_name).obj()


class TermsMachine(RuleBasedStateMachine):
    """Drives a cache and keeps a plain model beside it."""

    assumed = Bundle("assumed")
    added = Bundle("added")

    def __init__(self):
        super().__init__()
        self.cache, self.snapshot = Cache(), Snapshot()
        self.nodes, self.pods, self.number = {}, {}, 0

    @rule(name=some_node, labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from("ab")))
    def put_node(self, name, labels):
        made = node(name).labels(labels).obj()
        self.cache.update_node(made)
        self.nodes[name] = made

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.cache.remove_node(name)
        del self.nodes[name]

    def _keep(self, made):
        self.pods[made.uid] = made
        return made.uid

    @rule(target=assumed, shape=shapes(), name=some_node)
    def assume(self, shape, name):
        self.number += 1
        made = placed(shape, self.number, name)
        self.cache.assume_pod(made)
        return self._keep(made)

    @rule(target=added, shape=shapes(), name=some_node)
    def add(self, shape, name):
        self.number += 1
        made = placed(shape, self.number, name)
        self.cache.add_pod(made)
        return self._keep(made)

    @rule(target=added, uid=consumes(assumed), name=some_node)
    def confirm(self, uid, name):
        """The API server's version: the same terms, perhaps another node."""
        made = self.pods[uid].on_node(name)
        self.cache.add_pod(made)
        return self._keep(made)

    @rule(uid=consumes(assumed))
    def forget(self, uid):
        assert self.cache.forget_pod(self.pods.pop(uid))

    @rule(uid=added, shape=shapes())
    def update(self, uid, shape):
        old = self.pods[uid]
        made = placed(shape, uid.removeprefix("uid-"), old.node_name)
        self.cache.update_pod(old, made)
        self._keep(made)

    @rule(uid=consumes(added))
    def remove(self, uid):
        self.cache.remove_pod(self.pods.pop(uid))

    @rule(asking=st.sampled_from(ASKING), repelling=st.booleans())
    def read(self, asking, repelling):
        """Ask in the middle of things, through a snapshot as plugins do."""
        self.cache.update_snapshot(self.snapshot)
        labels = NAMESPACES.get(asking.namespace, {})
        ask = self.snapshot.repelling_terms if repelling else self.snapshot.preferring_terms
        found = ask(asking, labels)
        assert {(each.topology_key, each.is_required): each.counts for each in found} == self._sums(
            asking, labels, repelling=repelling
        )
        for each in found:
            assert sums(each, self.snapshot) == {value: count for value, count in each.counts.items() if count}

    def _sums(self, asking, labels, *, repelling):
        """(topology key, required?) -> value -> sum over the terms that select the pod, from the model alone."""
        expected = {}
        for (term, weight), counts in self._expected(repelling=repelling).items():
            if term.matches(asking.namespace, asking.labels, labels):
                of_key = expected.setdefault((term.topology_key, weight is None), {})
                for value, count in counts.items():
                    of_key[value] = of_key.get(value, 0) + count * (1 if weight is None else weight)
        return expected

    @invariant()
    def index_equals_one_from_scratch(self):
        index = self.cache._terms
        for table, repelling in ((index.repelling, True), (index.preferring, False)):
            assert as_dict(table) == self._expected(repelling=repelling)
            assert bool(table._buckets._by_namespace) is bool(len(table)), "no empty buckets stay behind"
            assert len(table._buckets._places) == len(table)
            assert seen_by(table._visible) == seen_by(visible_of(each.term for each in table))

    def _expected(self, *, repelling):
        """(term, weight) -> value -> count, from the model alone."""
        expected = {}
        for made in self.pods.values():
            if made.node_name not in self.nodes:
                continue
            labels = self.nodes[made.node_name].labels
            for term, weight in carried_by(made, repelling=repelling):
                if term.topology_key in labels and term.selector is not None:
                    expected.setdefault((term, weight), Counter())[labels[term.topology_key]] += 1
        return expected


def visible_of(terms):
    visible = Visible()
    for each in terms:
        visible.add(each)
    return visible


def seen_by(visible):
    pods, namespaces = visible._labels, visible._namespace_labels
    return visible._namespaces, pods._keys, pods._pairs, namespaces._keys, namespaces._pairs


def carried_by(made, *, repelling):
    all_of = made.affinity_terms
    if repelling:
        return [(term, None) for term in all_of.required_anti_affinity]
    return [
        *((term, None) for term in all_of.required_affinity),
        *all_of.preferred_affinity,
        *((term, -weight) for term, weight in all_of.preferred_anti_affinity),
    ]


def keys_of(wanted):
    return [*wanted.match_labels, *(requirement.key for requirement in wanted.match_expressions)]


def as_dict(carried):
    return {(each.term, each.weight): each.counts for each in carried}


def sums(counts, snapshot):
    """What ``add_to`` adds, as value -> count."""
    column = snapshot.label(counts.topology_key)
    added = np.zeros(len(column.values) + 1, np.int64)
    counts.add_to(added, column, 3)
    assert added[-1] == 0
    return {value: count // 3 for value, count in zip(column.values, added.tolist(), strict=False) if count}


TestTerms = TermsMachine.TestCase
TestTerms.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


class DenseMachine(RuleBasedStateMachine):
    """Drives sums by hostname, whose arrays come and go, while nodes bring new values; ``counts`` is the truth."""

    def __init__(self):
        super().__init__()
        self.cache, self.snapshot = Cache(), Snapshot()
        self.dense = DenseCounts(max_entries=90)
        self.terms = [TermCounts("kubernetes.io/hostname", True, self.dense) for _ in range(3)]
        self.num_nodes = 0
        for _ in range(20):
            self.put_node()
        self.count_many(0, range(20))

    @rule()
    def put_node(self):
        self.cache.add_node(node(f"n{self.num_nodes:03d}").hostname().obj())
        self.num_nodes += 1

    @precondition(lambda self: self.num_nodes)
    @rule()
    def rename_values(self):
        """Most values go out of use, so that the codes are made anew."""
        for i in range(self.num_nodes // 2):
            for j in range(6):
                self.cache.update_node(node(f"n{i:03d}").label("kubernetes.io/hostname", f"other-{i}-{j}").obj())
                self.cache.update_snapshot(self.snapshot)

    @rule(which=st.integers(0, 2), numbers=st.sets(st.integers(0, 40), max_size=40))
    def count_many(self, which, numbers):
        """Some of these values are of nodes that are not here (yet)."""
        for number in numbers:
            self.terms[which].add(f"n{number:03d}", 1, 1)

    @rule(which=st.integers(0, 2), data=st.data())
    def uncount(self, which, data):
        counted = self.terms[which].counts
        for value in data.draw(st.sets(st.sampled_from(sorted(counted)), max_size=30)) if counted else ():
            self.terms[which].add(value, -1, 1)

    @rule(which=st.integers(0, 2))
    def read(self, which):
        self.cache.update_snapshot(self.snapshot)
        present = set(self.snapshot.label("kubernetes.io/hostname").code_of)
        term = self.terms[which]
        assert sums(term, self.snapshot) == {v: n for v, n in term.counts.items() if v in present}
        kept = self.dense._arrays
        assert self.dense._num_entries == sum(len(dense.by_code) for dense in kept.values())
        assert self.dense._num_entries <= 90 or len(kept) == 1


TestDense = DenseMachine.TestCase
TestDense.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
