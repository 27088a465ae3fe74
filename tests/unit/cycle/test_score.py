"""Ranking by plugins and extenders together."""

import pytest

from scheduler.api import Code, PreScorePlugin, Status
from scheduler.framework.extender import ExtenderError, ExtenderVerdict


class Ranks:
    """An extender that only ranks."""

    is_filter = False
    is_prioritizer = True
    is_ignorable = False

    def __init__(self, scores, weight=1, interested=True):
        self.name = "http://rank"
        self.scores = scores
        self.weight = weight
        self.interested = interested

    def is_interested(self, pod):
        return self.interested

    def filter(self, pod, nodes):
        return ExtenderVerdict(tuple(nodes.names), {}, {})

    def prioritize(self, pod, nodes):
        if isinstance(self.scores, Exception):
            raise self.scores
        return self.scores, self.weight


@pytest.mark.parametrize(
    ("extender", "totals", "node"),
    [
        pytest.param(Ranks({"b": 3}), {"a": 20, "b": 30 + 0}, "b", id="a point counts ten"),
        pytest.param(Ranks({"a": 1, "b": 10}, weight=2), {"a": 40, "b": 200}, "b", id="weighted"),
        pytest.param(Ranks({"ghost": 10}), {"a": 20, "b": 0}, "a", id="unknown nodes are passed over"),
        pytest.param(Ranks(ExtenderError("down")), {"a": 20, "b": 0}, "a", id="errors are passed over"),
        pytest.param(Ranks({"b": 10}, interested=False), {"a": 20, "b": 0}, "a", id="not its business"),
    ],
)
def test_extender_scores(world, extender, totals, node):
    """Extenders add score x weight x 10."""
    made = world(score=[world.Liking(a=20)], extenders=[extender])
    attempt, (job,) = made.run("one")
    assert dict(zip(attempt.scores.nodes.names, attempt.scores.totals.tolist(), strict=True)) == totals
    assert job.node_name == node


def test_extender_columns_are_kept_for_observers(world):
    """Explain shows an extender's part like a plugin's."""
    made = world(score=[world.Liking(a=20)], extenders=[Ranks({"b": 3}, weight=2)])
    attempt, _ = made.run("one")
    assert dict(attempt.scores.weighted()) == {"Liking": {"a": 20, "b": 0}, "http://rank": {"a": 0, "b": 60}}


def test_one_feasible_node_is_not_scored(world):
    """There is nothing to compare."""
    made = world(nodes=("a",), score=[world.Liking(a=20)])
    attempt, _ = made.run("one")
    assert (attempt.scores, attempt.node_name) == (None, "a")


class BadPreScore(PreScorePlugin):
    name = "Bad"

    def pre_score(self, state, pod, nodes):
        return Status.error("boom")


@pytest.mark.parametrize(
    ("points", "text"),
    [
        pytest.param({"pre_score": [BadPreScore()]}, 'running PreScore plugin "Bad": boom', id="PreScore"),
        pytest.param({}, "returns an invalid score 101", id="Score"),
    ],
)
def test_failures_end_the_attempt(world, points, text):
    """An error while scoring is the attempt's error."""
    attempt, _ = world(score=[world.Liking(a=101)], **points).run("one")
    assert attempt.status.code is Code.ERROR
    assert text in attempt.status.message
