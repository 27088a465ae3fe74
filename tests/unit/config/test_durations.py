"""Durations read and write as in Go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.config.durations import DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("15s", 15.0, id="seconds"),
        pytest.param("1h2m3.5s", 3723.5, id="several units"),
        pytest.param("100ms", 0.1, id="milliseconds"),
        pytest.param("1.5h", 5400.0, id="fraction of an hour"),
        pytest.param("-1m", -60.0, id="negative"),
        pytest.param("+2s", 2.0, id="plus sign"),
        pytest.param("0", 0.0, id="zero needs no unit"),
        pytest.param(".5s", 0.5, id="leading point"),
        pytest.param("3µs", 3e-6, id="micro sign"),
        pytest.param("1ns", 1e-9, id="nanoseconds"),
    ],
)
def test_parse(text, seconds):
    """Every form of the grammar."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="empty"),
        pytest.param("20", 'time: missing unit in duration "20"', id="no unit"),
        pytest.param("15x", 'time: unknown unit "x" in duration "15x"', id="unknown unit"),
        pytest.param("x", 'time: invalid duration "x"', id="no number"),
        pytest.param("-", 'time: invalid duration "-"', id="only a sign"),
        pytest.param(".s", 'time: invalid duration ".s"', id="no digits"),
        pytest.param("9999999999h", 'time: invalid duration "9999999999h"', id="overflow"),
    ],
)
def test_parse_refuses(text, message):
    """With Go's texts."""
    with pytest.raises(DurationError) as caught:
        parse_duration(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (15.0, "15s"), (600.0, "10m0s"), (3600.5, "1h0m0.5s"), (0.1, "100ms"), (1.5e-6, "1.5µs"), (-60.0, "-1m0s"), (2e-9, "2ns")],
)  # fmt: skip
def test_format(seconds, text):
    """Go's way to print them."""
    assert format_duration(seconds) == text


@given(st.integers(min_value=-(10**16), max_value=10**16))
def test_format_is_read_back(nanoseconds):
    """Nothing is lost between text and value (up to 115 days in nanoseconds)."""
    seconds = nanoseconds / 10**9

    assert parse_duration(format_duration(seconds)) == seconds
