"""PreFilter: skip, narrow, reject, fail."""

import pytest

from scheduler.api import Code, CycleState, FilterPlugin, PreFilterPlugin, PreFilterResult, Status
from scheduler.framework.prefilter import PreFilterOutcome
from scheduler.testing.builders import pod

WEB = pod("web").obj()
OTHER = pod("other").obj()


class Fake(PreFilterPlugin, FilterPlugin):
    def __init__(self, name, answer):
        self.name = name
        self.answer = answer
        self.calls = 0

    def pre_filter(self, state, pod, nodes):
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def filter(self, state, pod, node):
        return None


def only(*names):
    return PreFilterResult(frozenset(names)), None


OK = (None, None)
SKIP = (None, Status.skip())


@pytest.mark.parametrize(
    ("answers", "expected", "num_called"),
    [
        pytest.param([OK, OK], PreFilterOutcome(), 2, id="nobody objects"),
        pytest.param([(PreFilterResult(), None)], PreFilterOutcome(), 1, id="a result without names means all nodes"),
        pytest.param(
            [only("a", "b"), only("b", "c")],
            PreFilterOutcome(None, frozenset({"b"}), ("P0", "P1")),
            2,
            id="narrowing intersects",
        ),
        pytest.param(
            [only(), OK],
            PreFilterOutcome(Status.unresolvable("node(s) didn't satisfy plugin P0"), frozenset(), ("P0",)),
            1,
            id="one plugin leaves no node",
        ),
        pytest.param(
            [only("a"), only("b"), OK],
            PreFilterOutcome(
                Status.unresolvable("node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"),
                frozenset(),
                ("P0", "P1"),
            ),
            2,
            id="two plugins leave no node together",
        ),
        pytest.param(
            [(None, Status.unresolvable("no claim")), OK],
            PreFilterOutcome(Status.unresolvable("no claim").by("P0")),
            1,
            id="unresolvable ends at once",
        ),
        pytest.param(
            [(None, Status.unschedulable("first")), only("a"), (None, Status.unschedulable("last"))],
            PreFilterOutcome(Status.unschedulable("last").by("P2"), frozenset({"a"}), ("P1",)),
            3,
            id="unschedulable lets the others run and the last one speaks",
        ),
        pytest.param(
            [(None, Status.error("boom")), OK],
            PreFilterOutcome(Status.error('running PreFilter plugin "P0": boom').by("P0")),
            1,
            id="an error ends the attempt",
        ),
        pytest.param(
            [(None, Status.pending("later"))],
            PreFilterOutcome(Status.error('running PreFilter plugin "P0": later').by("P0")),
            1,
            id="other answers are errors",
        ),
        pytest.param(
            [None],
            PreFilterOutcome(
                Status.error(
                    'running PreFilter plugin "P0": returned NoneType where '
                    "a pair (PreFilterResult or None, Status or None) was expected"
                ).by("P0")
            ),
            1,
            id="nonsense: no pair",
        ),
        pytest.param(
            [({"a"}, None)],
            PreFilterOutcome(
                Status.error(
                    'running PreFilter plugin "P0": returned set where a PreFilterResult with a set of names, or None was expected'
                ).by("P0")
            ),
            1,
            id="nonsense: a bare set",
        ),
    ],
)
def test_outcomes(framework_of, snapshot_of, answers, expected, num_called):
    """The plugins' answers become one outcome, in upstream's words."""
    plugins = [Fake(f"P{i}", answer) for i, answer in enumerate(answers)]
    outcome = framework_of(pre_filter=plugins).run_pre_filter(CycleState(), WEB, snapshot_of("a", "b"))
    if outcome.status is not None and outcome.status.code is Code.ERROR:
        outcome = PreFilterOutcome(Status.error(outcome.status.message).by(outcome.status.plugin))
    assert outcome == expected
    assert sum(plugin.calls for plugin in plugins) == num_called


def test_exceptions_name_the_plugin(framework_of, snapshot_of, metrics):
    """A plugin that raises fails the attempt, not the scheduler."""
    error = ZeroDivisionError("by zero")
    outcome = framework_of(pre_filter=[Fake("P", error)]).run_pre_filter(CycleState(), WEB, snapshot_of("a"))
    text = 'running PreFilter plugin "P": ZeroDivisionError: by zero'
    assert outcome.status == Status(Code.ERROR, (text,), plugin="P", cause=error)
    assert metrics.points == [("PreFilter", "Error")]


def test_skip_leaves_the_filter_out(framework_of, snapshot_of, metrics):
    """A plugin that skips is not asked again, and its evaluation is not counted."""
    state = CycleState()
    framework = framework_of(pre_filter=[Fake("A", SKIP), Fake("B", OK)])
    framework.run_pre_filter(state, WEB, snapshot_of("a"))
    assert state.skip_filter_plugins == {"A"}
    assert metrics.evaluations == {("B", "PreFilter"): 1}


def test_sampled_attempts_measure_plugins(framework_of, snapshot_of, metrics):
    """Durations of single plugins are observed in marked attempts only."""
    framework = framework_of(pre_filter=[Fake("A", SKIP), Fake("B", OK)])
    framework.run_pre_filter(CycleState(), WEB, snapshot_of("a"))
    assert metrics.durations == []
    framework.run_pre_filter(CycleState(record_plugin_metrics=True), WEB, snapshot_of("a"))
    assert metrics.durations == [("PreFilter", "A", "Skip"), ("PreFilter", "B", "Success")]


class Extended(Fake):
    def add_pod(self, state, pod, added, node):
        return self.answer

    remove_pod = add_pod


@pytest.mark.parametrize(
    ("answer", "skipped", "added", "removed"),
    [
        pytest.param(None, set(), None, None, id="success"),
        pytest.param(
            Status.unschedulable("no"),
            set(),
            'running AddPod on PreFilter plugin "X": no',
            'running RemovePod on PreFilter plugin "X": no',
            id="anything else is an error",
        ),
        pytest.param(Status.unschedulable("no"), {"X"}, None, None, id="skipped plugins are left out"),
        pytest.param(
            "nonsense",
            set(),
            "running AddPod on PreFilter plugin \"X\": returned str ('nonsense') where a Status or None was expected",
            "running RemovePod on PreFilter plugin \"X\": returned str ('nonsense') where a Status or None was expected",
            id="nonsense",
        ),
    ],
)
def test_extensions(framework_of, snapshot_of, *, answer, skipped, added, removed):
    """AddPod and RemovePod reach the plugins that override them."""
    framework = framework_of(pre_filter=[Fake("Plain", OK), Extended("X", answer)])
    state = CycleState()
    state.skip_filter_plugins = skipped
    node = snapshot_of("a").infos[0]
    results = [
        framework.run_pre_filter_add_pod(state, WEB, OTHER, node),
        framework.run_pre_filter_remove_pod(state, WEB, OTHER, node),
    ]
    assert [status and status.message for status in results] == [added, removed]
