"""Every arrow of the bind outcome diagram, and its law: nothing is undone that may be bound."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.binding.outcome import (
    BIND_DEADLINE_S,
    CONFIRM_AFTER_S,
    BindAttempt,
    BindState,
    Read,
    Send,
    Settled,
)
from scheduler.kube.errors import ApiError, TransportError
from scheduler.kube.writes import WRITE_TIMEOUT_S, Assignment
from scheduler.state.outcome import BindOutcome

START_S = 1000.0
OURS = Assignment("u1", "n1")
THEIRS = Assignment("u1", "n2")
UNBOUND = Assignment("u1", "")
STRANGER = Assignment("u2", "")
NOT_SENT = TransportError("refused", sent=False, refused=True)
CUT = TransportError("reset", sent=True)
UNKNOWN_FAILURES = [
    pytest.param(ApiError(500), id="500"),
    pytest.param(ApiError(503), id="503 without Retry-After"),
    pytest.param(ApiError(504), id="504"),
    pytest.param(ApiError(408), id="408"),
    pytest.param(CUT, id="cut after sending"),
]
CONFLICT = ApiError(409, "Conflict", "already assigned")


def attempt():
    return BindAttempt("u1", "n1", started_s=START_S, random=random.Random(1))


def after(error, now_s=START_S):
    machine = attempt()
    return machine, machine.answered(error, now_s=now_s)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(None, BindOutcome.BOUND, id="2xx is bound"),
        pytest.param(ApiError(404), BindOutcome.GONE, id="404 is gone"),
        pytest.param(ApiError(400), BindOutcome.REFUSED, id="400 is refused"),
        pytest.param(ApiError(403), BindOutcome.REFUSED, id="403 is refused"),
        pytest.param(ApiError(422), BindOutcome.REFUSED, id="422 is refused"),
        pytest.param(ApiError(301), BindOutcome.REFUSED, id="a redirect is refused"),
    ],
)
def test_answers_that_settle(error, outcome):
    """No read is needed."""
    machine, step = after(error)
    assert isinstance(step, Settled)
    assert step.outcome is outcome
    assert machine.state is BindState.SETTLED


@pytest.mark.parametrize(
    ("error", "at_least_s"),
    [
        pytest.param(NOT_SENT, 0.0, id="refused connection"),
        pytest.param(ApiError(401), 0.0, id="unauthorized"),
        pytest.param(ApiError(429), 0.0, id="429"),
        pytest.param(ApiError(429, retry_after_s=2.0), 2.0, id="429 with Retry-After"),
        pytest.param(ApiError(503, retry_after_s=1.0), 1.0, id="503 with Retry-After"),
    ],
)
def test_answers_that_allow_another_request(error, at_least_s):
    """Sent again inside the deadline; beyond it the pod is not bound for sure."""
    machine, step = after(error)
    assert isinstance(step, Send)
    assert step.after_s >= at_least_s
    assert not machine.is_unknown
    _, step = after(error, START_S + BIND_DEADLINE_S)
    assert step == Settled(BindOutcome.UNREACHABLE, str(error))


def test_requests_are_sent_again_only_inside_the_deadline():
    """However the server refuses, the last request starts before the deadline."""
    machine, now_s = attempt(), START_S
    while isinstance(step := machine.answered(NOT_SENT, now_s=now_s), Send):
        now_s += step.after_s
        assert now_s < START_S + BIND_DEADLINE_S
    assert step.outcome is BindOutcome.UNREACHABLE


@pytest.mark.parametrize(
    ("reading", "outcome"),
    [
        pytest.param(OURS, BindOutcome.BOUND, id="our node: an earlier request took effect"),
        pytest.param(THEIRS, BindOutcome.LOST, id="another node"),
        pytest.param(UNBOUND, BindOutcome.CONFLICT, id="not bound"),
        pytest.param(STRANGER, BindOutcome.GONE, id="another uid"),
        pytest.param(None, BindOutcome.GONE, id="no such pod"),
    ],
)
def test_conflict_is_settled_by_one_read(reading, outcome):
    """409 was an answer, so nothing is under way."""
    machine, step = after(CONFLICT)
    assert step == Read(0.0)
    assert not machine.is_unknown
    assert machine.read_back(reading, now_s=START_S).outcome is outcome


@pytest.mark.parametrize("failure", UNKNOWN_FAILURES)
@pytest.mark.parametrize(
    ("reading", "outcome"),
    [
        pytest.param(OURS, BindOutcome.BOUND, id="our node"),
        pytest.param(THEIRS, BindOutcome.LOST, id="another node"),
        pytest.param(STRANGER, BindOutcome.GONE, id="another uid"),
        pytest.param(None, BindOutcome.GONE, id="no such pod"),
    ],
)
def test_unknown_outcome_is_settled_by_a_final_state(failure, reading, outcome):
    """A pod that is bound or gone stays so: one read, or the watch, is enough."""
    machine, step = after(failure)
    assert isinstance(step, Read)
    assert machine.is_unknown
    assert machine.read_back(reading, now_s=START_S).outcome is outcome
    machine, _ = after(failure)
    assert machine.seen(reading).outcome is outcome


@pytest.mark.parametrize("failure", UNKNOWN_FAILURES)
def test_unknown_outcome_is_not_bound_only_when_read_twice(failure):
    """The second read comes a second later, and after the server has given the request up."""
    machine, step = after(failure)
    now_s, reads = START_S, []
    while isinstance(step, Read):
        now_s += step.after_s
        reads.append(now_s)
        step = machine.read_back(UNBOUND, now_s=now_s)
    assert step.outcome is BindOutcome.UNREACHABLE
    assert reads[-1] - reads[0] >= CONFIRM_AFTER_S
    assert reads[-1] >= START_S + WRITE_TIMEOUT_S
    assert len(reads) <= 6


def test_unbound_on_the_watch_settles_nothing():
    """An update of the pod may have been on its way before our write."""
    machine, _ = after(CUT)
    assert machine.seen(UNBOUND) is None
    assert machine.is_unknown


@pytest.mark.parametrize(
    ("failure", "longest_s"),
    [
        pytest.param(CUT, 5.0, id="a silent server is asked ever more slowly"),
        pytest.param(ApiError(503), 5.0, id="so is a sick one"),
        pytest.param(NOT_SENT, 0.5, id="one that restarts is asked again soon"),
    ],
)
def test_failed_reads_back_off_and_never_settle(failure, longest_s):
    """As long as the server says nothing the capacity stays taken."""
    machine, step = after(CUT)
    delays = []
    for _ in range(20):
        step = machine.read_back(failure, now_s=START_S + 1e6)
        delays.append(step.after_s)
    assert machine.is_unknown
    assert longest_s / 2 <= max(delays) <= longest_s
    assert machine.read_back(ApiError(429, retry_after_s=9.0), now_s=START_S).after_s >= 9.0


def test_a_failed_read_does_not_confirm():
    """Only readings of the pod count."""
    machine, _ = after(CUT)
    late_s = START_S + 100.0
    assert isinstance(machine.read_back(UNBOUND, now_s=late_s), Read)
    assert isinstance(machine.read_back(CUT, now_s=late_s + 0.1), Read)
    assert isinstance(machine.read_back(UNBOUND, now_s=late_s + 0.2), Read)
    assert machine.read_back(UNBOUND, now_s=late_s + 1.0).outcome is BindOutcome.UNREACHABLE


ERRORS = st.sampled_from(
    [NOT_SENT, CUT, CONFLICT, ApiError(429, retry_after_s=0.5), ApiError(500), ApiError(503, retry_after_s=0.2)]
)


@given(
    answers=st.lists(st.tuples(ERRORS, st.booleans()), min_size=1, max_size=8),
    reads_fail=st.lists(st.booleans(), max_size=5),
    turn_s=st.floats(0.0, WRITE_TIMEOUT_S - 0.01),
    commit_delay_s=st.floats(0.0, WRITE_TIMEOUT_S),
)
def test_nothing_is_undone_that_is_bound(answers, reads_fail, turn_s, commit_delay_s):
    """A server that may commit any unanswered request as late as its time limit: the verdict is the truth.

    That limit begins when the request comes, which may have waited for its turn on our side.
    """
    machine, now_s, commits_s = attempt(), START_S, []
    answers, reads_fail = list(answers), list(reads_fail)
    step = Send(0.0)
    while not isinstance(step, Settled):
        now_s += step.after_s
        if isinstance(step, Read):
            error = CUT if reads_fail and reads_fail.pop() else None
            is_bound = any(commit_s <= now_s for commit_s in commits_s)
            step = machine.read_back(error or (OURS if is_bound else UNBOUND), now_s=now_s)
            continue
        assert not commits_s, "a request was sent again although the one before may take effect"
        error, takes_effect = answers.pop() if answers else (None, True)
        is_unknown = error is not None and (error is CUT or getattr(error, "status", 0) == 500)
        if error is None or (is_unknown and takes_effect):
            commits_s.append(now_s + turn_s + (0.0 if error is None else commit_delay_s))
        now_s += turn_s + 0.01
        step = machine.answered(error, now_s=now_s)
    assert (step.outcome is BindOutcome.BOUND) == bool(commits_s)
