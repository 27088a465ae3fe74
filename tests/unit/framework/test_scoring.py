"""PreScore, Score, NormalizeScore: sums, weights, limits."""

import numpy as np
import pytest

from scheduler.api import Code, CycleState, PreScorePlugin, ScorePlugin, Status, default_normalize
from scheduler.testing.builders import pod

WEB = pod("web").obj()


class Each(ScorePlugin):
    """Per-node form only."""

    def __init__(self, name, scores):
        self.name = name
        self.scores = scores

    def score(self, state, pod, node):
        answer = self.scores[node.name]
        if isinstance(answer, Exception):
            raise answer
        return answer


class All(Each):
    """Both forms."""

    def score_all(self, state, pod, nodes):
        return np.array([self.scores[name] for name in nodes.names], np.int64)


class Normalized(Each):
    def normalize(self, state, pod, nodes, scores):
        return default_normalize(scores, reverse=True)


class Answers(Each):
    """Answers the whole-cluster question with what it is told."""

    def score_all(self, state, pod, nodes):
        return self.scores


class Normalizes(All):
    def __init__(self, name, scores, normalized):
        super().__init__(name, scores)
        self.normalized = normalized

    def normalize(self, state, pod, nodes, scores):
        if isinstance(self.normalized, Exception):
            raise self.normalized
        return self.normalized


def test_weighted_sums(framework_of, snapshot_of, metrics):
    """Totals are the weighted sums of normalized scores; both forms count alike."""
    nodes = snapshot_of("a", "b")
    plugins = [
        Each("Each", {"a": 10, "b": 20}),
        All("All", {"a": 100, "b": 0}),
        Normalized("Norm", {"a": 4, "b": 2}),
    ]
    framework = framework_of(weights={"Each": 3, "Norm": 2}, score=plugins)
    scores = framework.run_score(CycleState(), WEB, nodes)
    assert scores.totals.tolist() == [30 + 100 + 0, 60 + 0 + 100]
    assert dict(scores.weighted()) == {
        "Each": {"a": 30, "b": 60},
        "All": {"a": 100, "b": 0},
        "Norm": {"a": 0, "b": 100},
    }
    assert metrics.evaluations == {("Each", "Score"): 2, ("All", "Score"): 2, ("Norm", "Score"): 2}
    assert metrics.points == [("Score", "Success")]


def test_answers_are_not_written_to(framework_of, snapshot_of):
    """A plugin may hand out the same column again."""
    column = np.array([1, 2], np.int64)
    column.flags.writeable = False
    framework = framework_of(score=[Answers("A", column), Answers("B", column)])
    nodes = snapshot_of("a", "b")
    for _ in range(2):
        assert framework.run_score(CycleState(), WEB, nodes).totals.tolist() == [2, 4]
    assert column.tolist() == [1, 2]


def test_no_plugin_scores_zero(framework_of, snapshot_of):
    """Without a scoring plugin all nodes are equal."""
    assert framework_of().run_score(CycleState(), WEB, snapshot_of("a", "b")).totals.tolist() == [0, 0]


RANGE = (
    'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score {}, '
    "it should in the range of [0, 100] after normalizing"
)
SCORE = 'running Score plugins: plugin "X" failed with: {}'
NORMALIZE = 'running Normalize on Score plugins: plugin "X" failed with: {}'
COLUMN = "returned {} where one int64 for each of 2 nodes was expected"
FINE = {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        pytest.param(All("X", {"a": 1, "b": 101}), RANGE.format(101), id="too high"),
        pytest.param(Each("X", {"a": -1, "b": 5}), RANGE.format(-1), id="negative"),
        pytest.param(Each("X", {"a": 1, "b": OSError("x")}), SCORE.format("OSError: x"), id="exception"),
        pytest.param(
            Each("X", {"a": 1, "b": "7"}),
            SCORE.format("returned str ('7') where an int that fits int64 was expected"),
            id="a text",
        ),
        pytest.param(
            Each("X", {"a": 1, "b": 2**70}),
            SCORE.format(f"returned int ({2**70}) where an int that fits int64 was expected"),
            id="too big for int64",
        ),
        pytest.param(
            Each("X", {"a": 1, "b": 0.5}),
            SCORE.format("returned float (0.5) where an int that fits int64 was expected"),
            id="a float",
        ),
        pytest.param(Answers("X", None), SCORE.format(COLUMN.format("NoneType")), id="no column"),
        pytest.param(Answers("X", np.zeros(3, np.int64)), SCORE.format(COLUMN.format("ndarray")), id="wrong length"),
        pytest.param(Answers("X", np.zeros(2)), SCORE.format(COLUMN.format("ndarray")), id="a column of floats"),
        pytest.param(Answers("X", np.zeros(2, bool)), SCORE.format(COLUMN.format("ndarray")), id="a column of bools"),
        pytest.param(Normalizes("X", FINE, KeyError("z")), NORMALIZE.format("KeyError: 'z'"), id="normalize raises"),
        pytest.param(Normalizes("X", FINE, None), NORMALIZE.format(COLUMN.format("NoneType")), id="normalize: nothing"),
        pytest.param(Normalizes("X", FINE, np.array([0, 500])), RANGE.format(500), id="still out of range"),
    ],
)
def test_faults_end_the_attempt(framework_of, snapshot_of, plugin, text):
    """Every fault is an Error that names the plugin."""
    status = framework_of(score=[plugin]).run_score(CycleState(), WEB, snapshot_of("a", "b"))
    assert (status.code, status.message, status.plugin) == (Code.ERROR, text, "X")


def test_narrow_integers_are_taken(framework_of, snapshot_of):
    """A column of another integer type is widened."""
    framework = framework_of(score=[Answers("X", np.array([7, 9], np.int8))])
    assert framework.run_score(CycleState(), WEB, snapshot_of("a", "b")).totals.tolist() == [7, 9]


class Pre(PreScorePlugin, ScorePlugin):
    def __init__(self, name, answer):
        self.name = name
        self.answer = answer

    def pre_score(self, state, pod, nodes):
        return self.answer

    def score(self, state, pod, node):
        return 50


@pytest.mark.parametrize(
    ("answer", "message", "skipped"),
    [
        pytest.param(None, None, set(), id="success"),
        pytest.param(Status.skip(), None, {"X"}, id="skip"),
        pytest.param(
            Status.unschedulable("no"), 'running PreScore plugin "X": no', set(), id="a rejection is an error"
        ),
        pytest.param(
            3,
            'running PreScore plugin "X": returned int (3) where a Status or None was expected',
            set(),
            id="nonsense",
        ),
    ],
)
def test_pre_score(framework_of, snapshot_of, answer, message, skipped):
    """PreScore may only succeed, skip or fail."""
    state = CycleState()
    status = framework_of(pre_score=[Pre("X", answer)]).run_pre_score(state, WEB, snapshot_of("a"))
    assert (status and status.message, state.skip_score_plugins) == (message, skipped)


def test_skipped_plugins_do_not_score(framework_of, snapshot_of):
    """A skipped plugin takes no part in the totals and has no column."""
    plugin = Pre("X", Status.skip())
    framework = framework_of(pre_score=[plugin], score=[plugin, All("Y", {"a": 3})])
    state = CycleState()
    nodes = snapshot_of("a")
    framework.run_pre_score(state, WEB, nodes)
    assert dict(framework.run_score(state, WEB, nodes).weighted()) == {"Y": {"a": 3}}
