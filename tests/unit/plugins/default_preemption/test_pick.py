"""The five tie-breakers, one after the other."""

import pytest

from scheduler.api import Victims
from scheduler.plugins.default_preemption.pick import best_nodes
from scheduler.testing import pod

NOW_S = 2_000_000_000.0


def victims(*priorities, violations=0, started=()):
    pods = []
    for i, priority in enumerate(priorities):
        made = pod(f"v{i}").priority(priority)
        pods.append((made.started(started[i]) if i < len(started) and started[i] else made).obj())
    return Victims(tuple(pods), violations)


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("a", "b", "best"),
    [
        pytest.param(victims(9, 9, 9), victims(0, violations=1), ["a"], id="fewest violated budgets"),
        pytest.param(victims(5), victims(4, 4, 4), ["b"], id="lowest most important victim"),
        pytest.param(victims(4, 3), victims(4, 4), ["a"], id="smallest sum of priorities"),
        pytest.param(victims(-1, -1), victims(-1), ["b"], id="fewer pods are better than more of negative priority"),
        pytest.param(victims(4, -(2**31), -(2**31)), victims(4, -(2**31)), ["b"], id="fewest victims"),
        pytest.param(victims(4, started=[EARLY]), victims(4, started=[LATE]), ["b"], id="latest start"),
        pytest.param(
            victims(4, 4, started=[LATE, EARLY]), victims(4, 4, started=[LATE, LATE]), ["b"], id="of the earliest"
        ),
        pytest.param(
            victims(4, 3, started=[LATE, EARLY]),
            victims(4, 3, started=[LATE, LATE]),
            ["a", "b"],
            id="of the most important ones only",
        ),
        pytest.param(victims(4, started=[LATE]), victims(4), ["b"], id="not started counts as started now"),
        pytest.param(victims(4), victims(4), ["a", "b"], id="equal"),
    ],
)
def test_order_of_the_rules(a, b, best):
    """Each case is equal in all rules before the one that decides."""
    assert best_nodes({"b": b, "a": a}, NOW_S) == best


def test_a_single_candidate_needs_no_comparison():
    """An extender may even have emptied its victims."""
    assert best_nodes({"a": Victims(())}, NOW_S) == ["a"]
    assert best_nodes({}, NOW_S) == []
