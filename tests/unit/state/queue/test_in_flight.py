"""InFlight: who sees which events, and when they are dropped."""

import pytest

from scheduler.state.changes import ASSIGNED_POD_ADD, NODE_ADD, POD_POPPED_LABEL
from scheduler.state.queue.in_flight import Happening, InFlight
from scheduler.testing import pod

A, B, C = pod("a").obj(), pod("b").obj(), pod("c").obj()
EVENTS = [Happening.of(NODE_ADD, None, number) for number in range(6)]


@pytest.fixture
def in_flight(metrics):
    return InFlight(metrics)


def test_a_pod_sees_the_events_since_its_own_pop(in_flight):
    """Not those before, and all of those after, whoever else is in flight."""
    assert in_flight.start(A)
    in_flight.note(EVENTS[0])
    assert in_flight.start(B)
    in_flight.note(EVENTS[1])
    assert in_flight.since_pop(A.uid) == EVENTS[:2]
    assert in_flight.since_pop(B.uid) == EVENTS[1:2]
    assert in_flight.since_pop(C.uid) is None


def test_nothing_is_kept_while_nothing_is_in_flight(in_flight, metrics):
    """Events cost no memory then."""
    in_flight.note(EVENTS[0])
    assert in_flight.num_events == 0
    assert metrics.events == {}


def test_events_are_dropped_as_the_oldest_flights_end(in_flight, metrics):
    """The end of a younger flight drops nothing; the end of the oldest drops what only it could see."""
    in_flight.start(A)
    in_flight.note(EVENTS[0])
    in_flight.start(B)
    in_flight.note(Happening.of(ASSIGNED_POD_ADD, None, C))
    in_flight.start(C)
    in_flight.note(EVENTS[1])
    assert metrics.events == {POD_POPPED_LABEL: 3, "NodeAdd": 2, "AssignedPodAdd": 1}
    in_flight.done(B.uid)
    assert in_flight.num_events == 3
    in_flight.done(A.uid)
    assert in_flight.since_pop(C.uid) == EVENTS[1:2]
    assert in_flight.num_events == 1
    assert metrics.non_zero(metrics.events) == {POD_POPPED_LABEL: 1, "NodeAdd": 1}
    in_flight.done(C.uid)
    assert in_flight.num_events == 0
    assert metrics.non_zero(metrics.events) == {}


def test_starting_twice_is_refused_and_done_twice_is_fine(in_flight, metrics):
    """A second start must not overwrite the first, or its events would never be dropped (k/k#127016)."""
    assert in_flight.start(A)
    in_flight.note(EVENTS[0])
    assert not in_flight.start(A)
    assert in_flight.since_pop(A.uid) == EVENTS[:1]
    in_flight.done(A.uid)
    in_flight.done(A.uid)
    assert len(in_flight) == 0
    assert metrics.non_zero(metrics.events) == {}


def test_events_about_a_pod_are_kept_only_if_it_is_in_flight(in_flight):
    """Other pods in flight see them too, as they are in one log."""
    in_flight.start(A)
    assert not in_flight.note_about(B, EVENTS[:1])
    assert in_flight.num_events == 0
    in_flight.start(B)
    assert in_flight.note_about(B, EVENTS[:2])
    assert in_flight.since_pop(A.uid) == EVENTS[:2]


def test_clear_ends_all_flights(in_flight, metrics):
    """The gauges go back to zero."""
    for one in (A, B):
        in_flight.start(one)
        in_flight.note(EVENTS[0])
    assert in_flight.pods == [A, B]
    in_flight.clear()
    assert (len(in_flight), in_flight.num_events) == (0, 0)
    assert metrics.non_zero(metrics.events) == {}
