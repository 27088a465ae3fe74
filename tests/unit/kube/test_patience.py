"""A service that is slow to fail is left alone."""

import pytest

from scheduler.kube.patience import LONGEST_PAUSE_S, PAUSE_S, SLOW_S, TRIES, Patience


def fail(patience, now_s, duration_s=SLOW_S):
    return patience.failed(now_s - duration_s, now_s)


def test_three_slow_failures_in_a_row():
    """Only the third one counts; while it is left alone the remaining time is told."""
    patience = Patience()
    assert [fail(patience, now) for now in (1.0, 2.0, 3.0)] == [False, False, True]
    assert patience.failures == TRIES
    assert patience.remaining_s(3.0) == PAUSE_S
    assert patience.remaining_s(12.0) == 1.0
    assert patience.remaining_s(13.0) == 0.0


def test_pauses_grow():
    """One slow failure after a pause is enough for the next, longer one."""
    patience, now_s, pauses = Patience(), 0.0, []
    for _ in range(8):
        now_s += patience.remaining_s(now_s)
        fail(patience, now_s)
        pauses.append(patience.remaining_s(now_s))
    assert pauses == [0, 0, 10, 20, 40, 60, 60, 60]
    assert max(pauses) == LONGEST_PAUSE_S


@pytest.mark.parametrize(
    "good",
    [
        pytest.param(lambda patience: patience.answered(), id="an answer"),
        pytest.param(lambda patience: fail(patience, 2.5, 0.1), id="a quick failure"),
    ],
)
def test_what_ends_a_row(good):
    """Whoever answers, or fails at once, holds nobody up."""
    patience = Patience()
    fail(patience, 1.0)
    fail(patience, 2.0)
    good(patience)
    assert not fail(patience, 3.0)
    assert patience.failures == 1
