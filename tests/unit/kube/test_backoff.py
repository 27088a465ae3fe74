"""How long we wait before asking again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kube.backoff import FAST_RETRY_S, INITIAL_S, MAX_S, OUTAGE_GRACE_S, Backoff


class Chance:
    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


@pytest.mark.parametrize(("chance", "factor"), [(0.0, 0.5), (1.0, 1.0)], ids=["shortest", "longest"])
def test_delays_double_up_to_the_limit(chance, factor):
    """Spread over the upper half of each step."""
    backoff = Backoff(Chance(chance))
    delays = [backoff.next_s(0.0) for _ in range(7)]
    assert delays == pytest.approx([step * factor for step in (0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0)])


def test_reset_starts_again():
    """After success."""
    backoff = Backoff(Chance(1.0))
    for _ in range(5):
        backoff.next_s(0.0)
    backoff.reset()
    assert backoff.next_s(0.0) == INITIAL_S


@given(st.floats(0.0, 1.0), st.lists(st.floats(0.0, 2.0), max_size=60))
def test_server_that_is_away_is_tried_fast_at_first(chance, pauses):
    """At most half a second for the first 30 s of an outage, at most the limit afterwards."""
    backoff, now_s = Backoff(Chance(chance)), 0.0
    for pause in pauses:
        delay = backoff.next_s(now_s, is_away=True)
        assert 0.0 < delay <= (FAST_RETRY_S if now_s < OUTAGE_GRACE_S else MAX_S)
        now_s += pause
