"""Throttle: after "not now" nothing for so long, then one at a time, then as many as before."""

from scheduler.binding.throttle import Throttle


def test_without_a_refusal_nothing_is_held_back():
    """The ordinary case."""
    assert Throttle().limit(100, 0.0) == 100


def test_refusal_closes_for_as_long_as_the_server_says():
    """Then one bind finds out whether the server can be asked again."""
    throttle = Throttle()
    throttle.refused(2.0, 10.0)
    assert (throttle.limit(100, 11.9), throttle.limit(100, 12.0)) == (0, 1)
    throttle.refused(2.0, 12.1)
    assert (throttle.limit(100, 14.0), throttle.limit(100, 14.1)) == (0, 1)
    throttle.answered()
    assert throttle.limit(100, 14.2) == 100


def test_earlier_moment_does_not_shorten_a_later_one():
    """Of several refusals the longest counts."""
    throttle = Throttle()
    throttle.refused(5.0, 10.0)
    throttle.refused(0.0, 10.1)
    assert throttle.limit(100, 14.9) == 0


def test_absurd_patience_is_not_granted():
    """A proxy may say anything; a bind is tried after half a minute."""
    throttle = Throttle()
    throttle.refused(1e9, 0.0)
    assert throttle.limit(100, 30.0) == 1
