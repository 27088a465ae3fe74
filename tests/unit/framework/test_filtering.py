"""Filter: columns and single nodes, who owns a rejection, nominated pods."""

import numpy as np
import pytest

from scheduler.api import Code, CycleState, FilterPlugin, PreFilterPlugin, Status, Verdicts
from scheduler.testing.builders import pod

WEB = pod("web").priority(5).obj()
NO = Status.unschedulable("no room")


class Each(FilterPlugin):
    """Per-node form only: rejects what a table says."""

    def __init__(self, name, table):
        self.name = name
        self.table = table
        self.asked = []

    def filter(self, state, pod, node):
        self.asked.append(node.name)
        answer = self.table.get(node.name)
        if isinstance(answer, Exception):
            raise answer
        return answer


class All(Each):
    """Both forms, from the same table."""

    def filter_all(self, state, pod, nodes):
        ok = np.array([name not in self.table for name in nodes.names], bool)
        names = list(nodes.names)

        def explain(rows):
            return [(self.table[names[row]], np.array([row], np.intp)) for row in rows]

        return Verdicts(ok, explain)


class Answers(FilterPlugin):
    """Answers the whole-cluster question with what it is told."""

    name = "Odd"

    def __init__(self, answer):
        self.answer = answer

    def filter(self, state, pod, node):
        return None

    def filter_all(self, state, pod, nodes):
        return self.answer


def explained(outcome, nodes, visited=None):
    groups = outcome.explain(visited)
    assert not isinstance(groups, Status), groups
    return {nodes.names[row]: status for status, rows in groups for row in rows.tolist()}


@pytest.mark.parametrize("first", [Each, All])
@pytest.mark.parametrize("second", [Each, All])
def test_first_plugin_that_says_no_owns_the_node(framework_of, snapshot_of, metrics, first, second):
    """Both forms, in any mixture, give the verdicts of upstream's loop over nodes and plugins."""
    nodes = snapshot_of("a", "b", "c", "d")
    one = first("One", {"a": NO, "b": Status.unresolvable("cordoned")})
    two = second("Two", {"b": Status.unschedulable("late"), "c": Status.pending("wait")})
    outcome = framework_of(filter=[one, two]).run_filter(CycleState(), WEB, nodes)
    assert [nodes.names[row] for row in np.flatnonzero(outcome.ok)] == ["d"]
    assert explained(outcome, nodes) == {
        "a": NO.by("One"),
        "b": Status.unresolvable("cordoned").by("One"),
        "c": Status.pending("wait").by("Two"),
    }
    assert metrics.evaluations == {("One", "Filter"): 4, ("Two", "Filter"): 2}


def test_per_node_plugins_see_only_what_is_left(framework_of, snapshot_of):
    """A plugin without a whole-cluster form is not asked about nodes that others have rejected."""
    nodes = snapshot_of("a", "b", "c")
    slow = Each("Slow", {})
    framework = framework_of(filter=[All("One", {"b": NO}), slow])
    assert not framework.is_whole_cluster
    framework.run_filter(CycleState(), WEB, nodes)
    assert slow.asked == ["a", "c"]


def test_nothing_is_asked_once_no_node_is_left(framework_of, snapshot_of):
    """Later plugins are spared when all nodes are out."""
    last = Each("Last", {})
    framework_of(filter=[All("One", {"a": NO}), last]).run_filter(CycleState(), WEB, snapshot_of("a"))
    assert last.asked == []


def test_skipped_plugins_are_left_out(framework_of, snapshot_of):
    """PreFilter's Skip counts here."""
    state = CycleState()
    state.skip_filter_plugins = {"One"}
    framework = framework_of(filter=[All("One", {"a": NO})])
    nodes = snapshot_of("a")
    assert framework.run_filter(state, WEB, nodes).ok.tolist() == [True]
    assert framework.run_filter_on_node(state, WEB, nodes.infos[0]) is None


def test_unvisited_rows_give_no_reasons(framework_of, snapshot_of):
    """After an early stop only the nodes that were looked at count."""
    nodes = snapshot_of("a", "b")
    outcome = framework_of(filter=[All("One", {"a": NO, "b": NO})]).run_filter(CycleState(), WEB, nodes)
    assert explained(outcome, nodes, np.array([False, True])) == {"b": NO.by("One")}


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        pytest.param(Each("X", {"a": Status.error("boom")}), 'running "X" filter plugin: boom', id="per-node error"),
        pytest.param(Each("X", {"a": Status.skip()}), 'running "X" filter plugin: ', id="skip is no verdict"),
        pytest.param(
            Each("X", {"a": OSError("disk")}), 'running "X" filter plugin: OSError: disk', id="per-node exception"
        ),
        pytest.param(
            Each("X", {"a": False}),
            'running "X" filter plugin: returned bool (False) where a Status or None was expected',
            id="per-node nonsense",
        ),
        pytest.param(
            Answers(None),
            'running "Odd" filter plugin: returned NoneType where Verdicts with one bool for each of 2 nodes was expected',
            id="no verdicts",
        ),
        pytest.param(
            Answers(Verdicts(np.ones(3, bool), lambda rows: [])),
            'running "Odd" filter plugin: returned Verdicts where Verdicts with one bool for each of 2 nodes was expected',
            id="wrong length",
        ),
        pytest.param(
            Answers(Verdicts([True, True], lambda rows: [])),
            'running "Odd" filter plugin: returned Verdicts where Verdicts with one bool for each of 2 nodes was expected',
            id="a list is no column",
        ),
        pytest.param(
            Answers(Verdicts(np.ones(2, np.int64), lambda rows: [])),
            'running "Odd" filter plugin: returned Verdicts where Verdicts with one bool for each of 2 nodes was expected',
            id="ints are no bools",
        ),
        pytest.param(
            Answers(Verdicts(np.ones(2, bool), lambda rows: [], errors=np.ones(3, bool))),
            'running "Odd" filter plugin: returned Verdicts where Verdicts with one bool for each of 2 nodes was expected',
            id="errors of the wrong length",
        ),
    ],
)
def test_faults_end_the_attempt(framework_of, snapshot_of, plugin, text):
    """An error on any node is the attempt's error."""
    status = framework_of(filter=[plugin]).run_filter(CycleState(), WEB, snapshot_of("a", "b"))
    assert (status.code, status.message, status.plugin) == (Code.ERROR, text, plugin.name)


def raise_value_error(rows):
    raise ValueError("lost")


@pytest.mark.parametrize(
    ("explain", "text"),
    [
        pytest.param(raise_value_error, 'running "Odd" filter plugin: ValueError: lost', id="exception"),
        pytest.param(
            lambda rows: [(NO, rows[:1])],
            'running "Odd" filter plugin: returned list where each failing row exactly once was expected',
            id="rows are missing",
        ),
        pytest.param(
            lambda rows: [(NO, rows + 7)],
            'running "Odd" filter plugin: returned list where each failing row exactly once was expected',
            id="rows that did not fail",
        ),
        pytest.param(
            lambda rows: [(None, rows)],
            'running "Odd" filter plugin: returned NoneType where a rejection of the failing rows was expected',
            id="success for a failing row",
        ),
        pytest.param(
            lambda rows: [(Status.error("boom"), rows)], 'running "Odd" filter plugin: boom', id="error status"
        ),
        pytest.param(
            lambda rows: 7,
            "running \"Odd\" filter plugin: TypeError: 'int' object is not iterable",
            id="nonsense",
        ),
    ],
)
def test_faulty_explanations(framework_of, snapshot_of, explain, text):
    """Reasons are third-party code as well."""
    outcome = framework_of(filter=[Answers(Verdicts(np.zeros(2, bool), explain))]).run_filter(
        CycleState(), WEB, snapshot_of("a", "b")
    )
    status = outcome.explain(None)
    assert (status.code, status.message) == (Code.ERROR, text)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param({}, None, id="passes"),
        pytest.param({"a": NO}, NO.by("X"), id="rejected, plugin named"),
        pytest.param({"a": Status.wait()}, Status.error('running "X" filter plugin: ').by("X"), id="not a verdict"),
    ],
)
def test_single_node(framework_of, snapshot_of, table, expected):
    """The per-node form alone, for nominated nodes and dry runs."""
    framework = framework_of(filter=[Each("X", table)])
    assert framework.run_filter_on_node(CycleState(), WEB, snapshot_of("a").infos[0]) == expected


class Nominated:
    def __init__(self, pods):
        self.pods = pods

    @property
    def nominated_nodes(self):
        return self.pods.keys()

    def nominated_pods_for_node(self, name):
        return self.pods.get(name, [])


class MaxPods(PreFilterPlugin, FilterPlugin):
    """Admits so many pods a node; counts added ones through the state, as real plugins do."""

    name = "MaxPods"

    def __init__(self, limit, wants=()):
        self.limit = limit
        self.wants = wants

    def pre_filter(self, state, pod, nodes):
        return None, None

    def add_pod(self, state, pod, added, node):
        assert added in node.pods
        return Status.error("add failed") if added.name == "poison" else None

    def filter(self, state, pod, node):
        if any(other.name in self.wants for other in node.pods):
            return None
        if self.wants:
            return Status.unschedulable("friend is missing")
        return NO if node.num_pods >= self.limit else None


@pytest.mark.parametrize(
    ("plugin", "nominated", "expected"),
    [
        pytest.param(MaxPods(1), pod("vip").priority(9), NO.by("MaxPods"), id="higher priority keeps its place"),
        pytest.param(MaxPods(1), pod("peer").priority(5), NO.by("MaxPods"), id="equal priority keeps its place"),
        pytest.param(MaxPods(1), pod("low").priority(1), None, id="lower priority does not count"),
        pytest.param(MaxPods(1), pod("web").priority(5), None, id="the pod's own nomination does not count"),
        pytest.param(
            MaxPods(9, wants=("vip",)),
            pod("vip").priority(9),
            Status.unschedulable("friend is missing").by("MaxPods"),
            id="the pod must fit without the nominated pods too",
        ),
        pytest.param(
            MaxPods(1),
            pod("poison").priority(9),
            Status.error('running AddPod on PreFilter plugin "MaxPods": add failed').by("MaxPods"),
            id="a failing AddPod is an error",
        ),
    ],
)
def test_nominated_pods(framework_of, snapshot_of, plugin, nominated, expected):
    """A node must take the pod with and without the pods nominated to it; both ways of asking agree."""
    framework = framework_of(pre_filter=[plugin], filter=[plugin])
    framework.set_nominations(Nominated({"a": [nominated.obj()], "gone": [nominated.obj()]}))
    nodes = snapshot_of("a", "b")
    info = nodes.infos[nodes.row("a")]
    assert framework.run_filter_on_node_with_nominated_pods(CycleState(), WEB, info) == expected
    outcome = framework.run_filter(CycleState(), WEB, nodes)
    if isinstance(outcome, Status):
        assert outcome == expected
    else:
        assert explained(outcome, nodes).get("a") == expected
    assert info.num_pods == 0


def test_verdict_with_nominated_pods_comes_first(framework_of, snapshot_of):
    """Where a node fails both ways, the reason is the one with the nominated pods, which upstream asks for first."""

    class Counting(FilterPlugin):
        name = "Counting"

        def filter(self, state, pod, node):
            return Status.unschedulable(f"{node.num_pods} pods here")

    framework = framework_of(filter=[Counting()])
    framework.set_nominations(Nominated({"a": [pod("vip").priority(9).obj()]}))
    nodes = snapshot_of("a")
    outcome = framework.run_filter(CycleState(), WEB, nodes)
    assert explained(outcome, nodes) == {"a": Status.unschedulable("1 pods here").by("Counting")}


class Failing(All):
    """Whole-cluster form that tells which rows it could not judge."""

    def filter_all(self, state, pod, nodes):
        verdicts = super().filter_all(state, pod, nodes)
        broken = [name in self.table and not self.table[name].is_rejected for name in nodes.names]
        return Verdicts(verdicts.ok, verdicts.explain, errors=np.array(broken, bool))


def test_rows_that_could_not_be_judged(framework_of, snapshot_of):
    """An error on a node that is still in the running fails the attempt; on a rejected node nobody would have asked."""
    nodes = snapshot_of("a", "b", "c")
    plugin = Failing("X", {"b": Status.error("boom"), "c": NO})
    status = framework_of(filter=[plugin]).run_filter(CycleState(), WEB, nodes)
    assert isinstance(status, Status)
    assert (status.code, status.reasons) == (Code.ERROR, ('running "X" filter plugin: boom',))
    outcome = framework_of(filter=[All("One", {"b": NO}), plugin]).run_filter(CycleState(), WEB, nodes)
    assert explained(outcome, nodes) == {"b": NO.by("One"), "c": NO.by("X")}


def test_an_error_that_is_none_is_nonsense(framework_of, snapshot_of, metrics):
    """A plugin that points at an error must show one."""
    answer = Verdicts(np.array([False]), lambda rows: [(NO, rows)], errors=np.array([True]))
    status = framework_of(filter=[Answers(answer)]).run_filter(CycleState(), WEB, snapshot_of("a"))
    assert status.code is Code.ERROR
    assert metrics.faults == [("Odd", "Filter", "bad_answer")]
