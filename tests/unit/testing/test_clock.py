"""FakeClock."""

from __future__ import annotations

import pytest

from scheduler.testing import FakeClock


def test_time_moves_only_by_hand() -> None:
    """It stands still, advances, and never goes back."""
    clock = FakeClock(5.0)
    assert (clock.now(), clock.now()) == (5.0, 5.0)
    clock.advance(2.5)
    assert clock.now() == 7.5
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)
