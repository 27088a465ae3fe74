"""BackoffQueue: how long, in which order, and in whole seconds."""

import math

import pytest

from scheduler.api import QueuedPodInfo
from scheduler.state.queue.backoff import MAX_EARLY, NEVER_BACKED_OFF_S, BackoffQueue, backoff_duration_s
from scheduler.testing import pod


@pytest.fixture
def backoff(metrics):
    return make(metrics)


def make(metrics, **options):
    def sort_key(info):
        return (-info.pod.priority, info.timestamp_s)

    return BackoffQueue(**{"initial_s": 1, "max_s": 10, "sort_key": sort_key, "metrics": metrics, **options})


def failed(name, at_s, *plugins, failures=1, errors=0, priority=0):
    return QueuedPodInfo(
        pod(name).priority(priority).obj(),
        at_s,
        unschedulable_count=failures,
        consecutive_errors_count=errors,
        unschedulable_plugins=set(plugins),
    )


@pytest.mark.parametrize(
    ("failures", "expected_s"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (16, 10), (64, 10), (2000, 10)]
)
def test_the_back_off_doubles_up_to_its_maximum(failures, expected_s):
    """1, 2, 4, 8, 10, 10 … and no overflow, ever."""
    assert backoff_duration_s(failures, initial_s=1, max_s=10) == expected_s


def test_an_initial_back_off_above_the_maximum_is_cut():
    """The maximum is the maximum."""
    assert backoff_duration_s(1, initial_s=20, max_s=10) == 10


@pytest.mark.parametrize(
    ("info", "expected_s"),
    [
        pytest.param(failed("a", 100.7, "Fit"), 101, id="the end is cut to a whole second"),
        pytest.param(failed("a", 100.0, "Fit", failures=3), 104, id="the third rejection"),
        pytest.param(failed("a", 100.0, failures=3, errors=1), 101, id="errors in a row count instead of rejections"),
        pytest.param(failed("a", 100.0, failures=0), NEVER_BACKED_OFF_S, id="a pod that never failed"),
    ],
)
def test_expiration(backoff, info, expected_s):
    """Timestamp plus back-off, kept until the next failure."""
    assert backoff.expiration_s(info) == expected_s
    info.timestamp_s += 50
    if expected_s != NEVER_BACKED_OFF_S:
        assert backoff.expiration_s(info) == expected_s


def test_a_maximum_of_zero_turns_back_offs_off(metrics):
    """``podMaxBackoffSeconds: 0``."""
    backoff = make(metrics, max_s=0)
    info = failed("a", 100.0, "Fit", failures=9)
    assert backoff.expiration_s(info) == -math.inf
    assert not backoff.is_backing_off(info, 100.0)


@pytest.mark.parametrize(
    ("now_s", "expected"),
    [
        pytest.param(100.99, True, id="before the second of the expiration"),
        pytest.param(101.0, True, id="in that very second"),
        pytest.param(101.99, True, id="at its end"),
        pytest.param(102.0, False, id="in the next second"),
    ],
)
def test_a_pod_backs_off_through_the_second_of_its_expiration(backoff, now_s, expected):
    """Whole seconds' worth of pods become active together (KEP-5142)."""
    assert backoff.is_backing_off(failed("a", 100.7, "Fit"), now_s) is expected


def test_completed_pods_leave_in_order_and_errors_after_rejections(backoff, metrics):
    """By second, within a second by priority; error back-offs by second only."""
    infos = [
        failed("later", 102.0, "Fit"),
        failed("low", 100.2, "Fit", priority=1),
        failed("high", 100.9, "Fit", priority=2),
        failed("error-low", 100.0, failures=0, errors=1),
        failed("error-high", 100.5, failures=0, errors=1, priority=9),
    ]
    for info in infos:
        backoff.add(info, "ScheduleAttemptFailure")
    assert backoff.next_due_s() == 102
    assert backoff.pop_completed(101.9) == []
    assert [i.pod.name for i in backoff.pop_completed(102.0)] == ["high", "low", "error-low", "error-high"]
    assert len(backoff) == 1
    assert metrics.gauges == {"backoff": 1}
    assert metrics.incoming_pods == {("backoff", "ScheduleAttemptFailure"): 5}


def test_only_rejected_pods_may_go_early(backoff):
    """A pod that failed by an error waits; otherwise a broken API server would be hammered."""
    backoff.add(failed("rejected", 100.0, "Fit"), "x")
    backoff.add(failed("error", 100.0, failures=0, errors=1), "x")
    assert backoff.num_poppable == 1
    assert backoff.pop().pod.name == "rejected"
    assert backoff.pop() is None
    assert backoff.get("default/error").pod.name == "error"


@pytest.mark.parametrize(
    ("failures", "is_own_update", "goes_early"),
    [
        (1, True, True),
        (MAX_EARLY, True, True),
        (MAX_EARLY + 1, True, False),
        (5_000, True, False),
        (5_000, False, True),
    ],
)
def test_a_pod_that_was_rejected_many_times_waits_after_its_own_updates(backoff, failures, is_own_update, goes_early):
    """Else somebody who updates it without a pause would have it tried without a pause; what others do is no churn."""
    info = failed("a", 100, "Fit", failures=failures)
    backoff.add(info, "x", is_own_update=is_own_update)
    backoff.refresh(info)
    assert len(backoff) == 1
    assert backoff.num_poppable == int(goes_early)
    assert (backoff.pop() is info) == goes_early
    if not goes_early:
        assert backoff.pop_completed(110) == []
        assert backoff.pop_completed(111) == [info]


def test_remove_and_refresh_work_in_both_heaps(backoff, metrics):
    """A changed priority moves a pod among the rejected ones."""
    low, high, error = (
        failed("low", 100.0, "Fit"),
        failed("high", 100.0, "Fit", priority=1),
        failed("e", 100.0, errors=1),
    )
    for info in (low, high, error):
        backoff.add(info, "x")
    low.pod = pod("low").priority(5).obj()
    backoff.refresh(low)
    backoff.refresh(error)
    assert backoff.pop() is low
    assert backoff.remove("default/e") is error
    assert backoff.remove("default/e") is None
    assert backoff.infos() == [high]
    assert metrics.gauges == {"backoff": 1}


def test_an_empty_queue_has_no_timer(backoff):
    """The driver may sleep."""
    assert backoff.next_due_s() is None
