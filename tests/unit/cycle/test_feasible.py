"""Which nodes are looked at, and in what order."""

import pytest

from scheduler.api import FilterPlugin, PreFilterPlugin, PreFilterResult, ScorePlugin, Status
from scheduler.cycle.feasible import num_nodes_to_find
from scheduler.framework.extender import ExtenderError, ExtenderVerdict
from scheduler.framework.runtime import EXTENDER
from scheduler.testing.builders import pod

NO = Status.unschedulable("no")


class Each(FilterPlugin):
    """Per-node filter that counts."""

    name = "Each"

    def __init__(self, bad=()):
        self.bad = set(bad)
        self.asked = []

    def filter(self, state, pod, node):
        self.asked.append(node.name)
        return NO if node.name in self.bad else None


class EachScore(ScorePlugin):
    name = "EachScore"

    def score(self, state, pod, node):
        return 1


class Names(PreFilterPlugin):
    name = "Names"

    def __init__(self, *names):
        self.names = frozenset(names)

    def pre_filter(self, state, pod, nodes):
        return PreFilterResult(self.names), None


def nodes(count):
    return [f"n{i:04}" for i in range(count)]


@pytest.mark.parametrize(
    ("count", "percentage", "own", "per_node", "wanted"),
    [
        pytest.param(99, 5, None, False, 99, id="small clusters are searched whole"),
        pytest.param(1000, 0, None, False, 1000, id="unset, plugins on columns: all nodes"),
        pytest.param(1000, 0, None, True, 420, id="unset, per-node plugins: 50 - n/125 percent"),
        pytest.param(6000, 0, None, True, 300, id="never below 5 percent"),
        pytest.param(200, 0, None, True, 100, id="never below 100 nodes"),
        pytest.param(1000, 30, None, False, 300, id="a percentage counts for plugins on columns too"),
        pytest.param(1000, 30, 70, False, 700, id="the profile's own percentage wins"),
        pytest.param(1000, 30, 0, True, 420, id="the profile may ask for the adaptive number"),
        pytest.param(1000, 100, None, True, 1000, id="100 is all"),
    ],
)
def test_num_nodes_to_find(world, *, count, percentage, own, per_node, wanted):
    """decision percentageOfNodesToScore."""
    score = EachScore() if per_node else world.Liking()
    made = world(nodes=(), percentage=percentage, profile_percentage=own, filter=[world.Room()], score=[score])
    assert num_nodes_to_find(made.engine, made.framework, count) == wanted


def test_one_is_enough_without_ranking(world):
    """If nothing ranks nodes, the first feasible one will do."""
    made = world(nodes=nodes(5), filter=[world.Room()])
    assert num_nodes_to_find(made.engine, made.framework, 5) == 1
    chosen = [made.run(f"p{i}")[1][0].node_name for i in range(5)]
    assert chosen == nodes(5)


def test_the_search_goes_round(world):
    """It starts where the last one stopped, stops at the first node beyond the wanted number, and wraps around."""
    each = Each(bad=["n0000", "n0102", "n0150"])
    made = world(nodes=nodes(200), percentage=1, filter=[each], score=[world.Liking()])
    attempt, _ = made.run("one")
    assert attempt.feasible_nodes == nodes(200)[1:101]
    assert made.engine.next_start_node_index == 101
    assert attempt.num_evaluated == 101
    assert attempt.explain() is None
    assert list(attempt.diagnosis.explicit()) == ["n0000"]
    attempt, _ = made.run("two")
    expected = [name for name in nodes(200)[101:] + nodes(200)[:4] if name not in each.bad]
    assert attempt.feasible_nodes == expected
    assert len(attempt.feasible_nodes) == 100
    assert attempt.explain() is None
    assert set(attempt.diagnosis.explicit()) == {"n0102", "n0150", "n0000"}
    assert made.engine.next_start_node_index == 4


def test_both_forms_stop_at_the_same_node(world):
    """A plugin on columns judges all nodes at once but counts only what a per-node search would have seen."""

    class OnColumns(Each):
        def filter_all(self, state, pod, nodes):
            import numpy as np

            from scheduler.api import Verdicts

            return Verdicts.all_equal(np.array([name not in self.bad for name in nodes.names], bool), NO)

    bad = nodes(300)[::3]
    seen = []
    for plugin in (Each(bad), OnColumns(bad)):
        made = world(nodes=nodes(300), percentage=35, filter=[plugin], score=[world.Liking()])
        results = []
        for number in range(4):
            attempt, _ = made.run(f"p{number}")
            attempt.explain()
            results.append((attempt.feasible_nodes, set(attempt.diagnosis.explicit()), attempt.num_evaluated))
        seen.append((results, made.engine.next_start_node_index))
    assert seen[0] == seen[1]


def test_per_node_plugins_are_not_asked_about_the_whole_cluster(world):
    """The search goes block by block."""
    each = Each()
    made = world(nodes=nodes(2000), filter=[each], score=[EachScore()])
    made.run("one")
    assert len(each.asked) == 2000 * (50 - 2000 // 125) // 100 + 1


def test_narrowed_search(world):
    """Only the nodes that PreFilter named are looked at; all others count as absent."""
    made = world(nodes=("a", "b", "c", "d"), pre_filter=[Names("d", "b", "ghost")], filter=[each := Each(["b", "d"])])
    made.add("other")
    attempt, _ = made.run("one")
    assert sorted(each.asked) == ["b", "d"]
    assert attempt.status.message == ("0/4 nodes are available: 2 no, 2 node(s) didn't satisfy plugin(s) [Names].")
    assert attempt.status.cause.diagnosis.unschedulable_plugins == {"Each", "Names"}


def test_names_that_do_not_exist(world):
    """Narrowing to nodes that are not there leaves nothing to look at."""
    made = world(pre_filter=[Names("ghost")], filter=[Each()])
    attempt, _ = made.run("one")
    assert attempt.status.message == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [Names]."


def test_pre_filter_rejection(world):
    """A rejection for the whole cluster is every node's status, and its text stands alone."""

    class Rejects(PreFilterPlugin):
        name = "Rejects"

        def pre_filter(self, state, pod, nodes):
            return None, Status.unresolvable("no such claim")

    made = world(pre_filter=[Rejects()])
    attempt, _ = made.run("one")
    assert attempt.status.message == "0/2 nodes are available: no such claim."
    status = Status.unresolvable("no such claim").by("Rejects")
    assert dict(attempt.diagnosis.statuses) == {"a": status, "b": status}


@pytest.mark.parametrize(
    ("nominated", "bad", "asked", "chosen"),
    [
        pytest.param("b", [], ["b"], "b", id="it fits: no other node is looked at"),
        pytest.param("b", ["b"], ["b", "a", "b"], "a", id="it does not fit: all are looked at"),
        pytest.param("ghost", [], ["a", "b"], "a", id="it is gone: all are looked at"),
    ],
)
def test_nominated_node_first(world, nominated, bad, asked, chosen):
    """The node that room was made on is tried alone before all others."""
    each = Each(bad)
    made = world(filter=[each], score=[world.Liking()])
    attempt, (job,) = made.run(pod("one").nominated(nominated))
    assert (each.asked, job.node_name) == (asked, chosen)
    assert attempt.is_nominated_first is (chosen == nominated)
    attempt.explain()
    assert set(attempt.diagnosis.explicit()) == set(bad)


def test_rejected_nominated_node_counts_once(world):
    """The nominated node's status stands once in the message, though it was judged twice."""
    made = world(filter=[Each(["a", "b"])], score=[world.Liking()])
    attempt, _ = made.run(pod("one").nominated("b"))
    assert attempt.status.message == "0/2 nodes are available: 2 no."


def test_rejector_of_the_nominated_node_is_named_for_nodes_left_out(world):
    """Upstream keeps one set for plugins that named nodes and those that rejected one; the text shows it."""
    made = world(pre_filter=[Names("a")], filter=[Each(["a", "b"])], score=[world.Liking()])
    attempt, _ = made.run(pod("one").nominated("a"))
    assert attempt.status.message == "0/2 nodes are available: 1 no, 1 node(s) didn't satisfy plugin(s) [Each Names]."


class FakeExtender:
    """An extender that keeps what it is told."""

    is_prioritizer = False
    is_filter = True

    def __init__(self, name, kept=(), *, failed=None, unresolvable=None, error=None, ignorable=False, interested=True):
        self.name = name
        self.verdict = ExtenderVerdict(tuple(kept), failed or {}, unresolvable or {})
        self.error = error
        self.is_ignorable = ignorable
        self.interested = interested
        self.asked = []

    def is_interested(self, pod):
        return self.interested

    def filter(self, pod, nodes):
        self.asked.append(list(nodes.names))
        if self.error is not None:
            raise self.error
        return self.verdict

    def prioritize(self, pod, nodes):
        return dict.fromkeys(nodes.names, 0), 0


def test_extenders_strike_nodes_off_one_after_the_other(world):
    """Each gets what the one before kept."""
    first, second = FakeExtender("x", ["c", "a"]), FakeExtender("y", ["c"])
    made = world(nodes=("a", "b", "c"), extenders=[first, second])
    attempt, (job,) = made.run("one")
    assert (first.asked, second.asked, job.node_name) == ([["a", "b", "c"]], [["c", "a"]], "c")
    assert attempt.diagnosis.unschedulable_plugins == {EXTENDER}


def test_extenders_reasons(world):
    """Reasons are counted; "unresolvable" wins where a node has both."""
    extender = FakeExtender("x", [], failed={"a": "full", "b": "full"}, unresolvable={"b": "broken"})
    made = world(extenders=[extender])
    attempt, _ = made.run("one")
    assert attempt.status.message == "0/2 nodes are available: 1 broken, 1 full."
    assert attempt.diagnosis.statuses["b"] == Status.unresolvable("broken")
    assert made.queue.get("default/one").unschedulable_plugins == {EXTENDER}


@pytest.mark.parametrize(
    ("extender", "message"),
    [
        pytest.param(FakeExtender("x", error=ExtenderError("down")), "down", id="an error ends the attempt"),
        pytest.param(FakeExtender("x", error=ExtenderError("down"), ignorable=True), None, id="unless ignorable"),
        pytest.param(FakeExtender("x", interested=False), None, id="not its business"),
    ],
)
def test_extender_errors(world, extender, message):
    """An extender that fails takes the pod with it only if it must not be ignored."""
    attempt, _ = world(extenders=[extender]).run("one")
    assert (attempt.status and attempt.status.message) == message


def test_extender_has_a_say_about_the_nominated_node(world):
    """A nominated node that an extender refuses is not used alone."""

    class OnlyA(FakeExtender):
        def filter(self, pod, nodes):
            return ExtenderVerdict(tuple(name for name in nodes.names if name == "a"), {}, {})

    attempt, (job,) = world(extenders=[OnlyA("x")]).run(pod("one").nominated("b"))
    assert (job.node_name, attempt.is_nominated_first) == ("a", False)
