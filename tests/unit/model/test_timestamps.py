"""RFC 3339 timestamps as seconds."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.timestamps import unix_s
from scheduler.testing import pod


@settings(deadline=None)
@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001  naive bounds by hypothesis' rule
def test_every_moment_of_the_calendar(moment):
    """What the API server writes comes back as the same second."""
    moment = moment.replace(microsecond=0)
    assert unix_s(moment.strftime("%Y-%m-%dT%H:%M:%SZ")) == moment.timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="epoch"),
        pytest.param("1970-01-01T00:00:01.25Z", 1.25, id="fraction"),
        pytest.param("1970-01-01T02:00:00+01:30", 1800, id="east"),
        pytest.param("1969-12-31T22:30:00-01:30", 0, id="west"),
        pytest.param("yesterday", None, id="no timestamp"),
        pytest.param("2026-01-01T00:00:00", None, id="without zone"),
        pytest.param("", None, id="empty"),
    ],
)
def test_forms(text, seconds):
    """Offsets and fractions are understood; anything else is no timestamp."""
    assert unix_s(text) == seconds


def test_start_of_a_pod():
    """A pod that has not started has no start."""
    assert pod().obj().started_s is None
    assert pod().started("1970-01-01T00:01:00Z").obj().started_s == 60
