"""Pods on hold: allowed by all, rejected by one, or timed out."""

import pytest

from scheduler.api import Status
from scheduler.framework.waiting import WaitingPods
from scheduler.testing.builders import pod

WEB = pod("web").obj()


@pytest.fixture
def waiting(clock):
    return WaitingPods(clock)


def test_all_plugins_must_allow(waiting):
    """The pod goes on when the last pending plugin allows it."""
    held = waiting.add(WEB, {"A": 10, "B": 20})
    calls = []
    held.subscribe(lambda: calls.append(held.result))
    held.allow("A")
    held.allow("Unknown")
    assert (held.is_done, held.pending_plugins, calls) == (False, ("B",), [])
    held.allow("B")
    assert (held.is_done, held.result, calls) == (True, None, [None])


def test_one_rejection_is_enough_and_the_first_result_stands(waiting):
    """A rejection names its plugin; whatever comes later changes nothing."""
    held = waiting.add(WEB, {"A": 10, "B": 20})
    held.reject("B", "gang is gone")
    held.allow("A")
    held.allow("B")
    assert held.result == Status.unschedulable("gang is gone").by("B")


def test_preemption_is_an_error_not_a_rejection(waiting):
    """A preempted pod is retried after a back-off, without waiting for an event."""
    held = waiting.add(WEB, {"A": 10})
    held.preempt("DefaultPreemption", "preempted")
    assert held.result == Status.error("waiting on permit for pod: preempted").by("DefaultPreemption")


def test_late_subscribers_hear_at_once(waiting):
    """The binding cycle may subscribe after the result."""
    held = waiting.add(WEB, {"A": 10})
    held.allow("A")
    calls = []
    held.subscribe(lambda: calls.append(True))
    assert calls == [True]


def test_timeouts(waiting, clock):
    """The plugin with the earliest deadline rejects the pod, in upstream's words."""
    held = waiting.add(WEB, {"A": 90, "B": 60})
    assert waiting.next_timer_s() == clock.now() + 60
    waiting.expire(clock.now() + 59)
    assert not held.is_done
    clock.advance(60)
    waiting.expire(clock.now())
    assert held.result == Status.unschedulable("rejected due to timeout after waiting 1m0s at plugin B").by("B")
    assert waiting.next_timer_s() is None


def test_allowing_stops_the_plugins_clock(waiting, clock):
    """A plugin that has allowed the pod cannot time out any more."""
    held = waiting.add(WEB, {"A": 10, "B": 60})
    held.allow("A")
    assert waiting.next_timer_s() == clock.now() + 60
    waiting.expire(clock.now() + 30)
    assert not held.is_done


def test_reject_by_uid(waiting):
    """Others reject a pod by its UID and learn whether it was on hold."""
    assert not waiting.reject(WEB.uid, "", "removed")
    held = waiting.add(WEB, {"A": 10})
    assert waiting.reject(WEB.uid, "", "removed")
    assert held.result == Status.unschedulable("removed")
    assert not waiting.reject(WEB.uid, "", "removed again")
    assert list(waiting) == [held]
    waiting.remove(WEB.uid)
    assert (len(waiting), waiting.get(WEB.uid)) == (0, None)
