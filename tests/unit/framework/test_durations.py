"""Durations look as Go prints them."""

import pytest

from scheduler.framework.durations import go_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (10, "10s"),
        (1.5, "1.5s"),
        (60, "1m0s"),
        (900, "15m0s"),
        (3661.25, "1h1m1.25s"),
        (0.1, "100ms"),
        (0.0015, "1.5ms"),
        (0.000002, "2µs"),
        (0.000000003, "3ns"),
        (-2, "-2s"),
    ],
)
def test_go_duration(seconds, text):
    """The texts are those of time.Duration.String."""
    assert go_duration(seconds) == text
