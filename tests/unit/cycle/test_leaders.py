"""Leaders say what a full scan of the totals would say, whatever changed since."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.cycle.leaders import NO_TOTAL, Leaders


@given(seed=st.integers(0, 2**32), size=st.sampled_from([1, 3, 255, 256, 257, 2_000]), top=st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_the_best_rows_are_those_of_a_full_scan(seed: int, size: int, top: int) -> None:
    """Few distinct totals make many ties, many changes between two questions make many stale blocks."""
    rng = random.Random(seed)
    expected = np.array([rng.randint(NO_TOTAL, top) for _ in range(size)], np.int64)
    expected[rng.randrange(size)] = top
    leaders = Leaders(expected.copy())
    for _ in range(40):
        for _ in range(rng.choice([0, 1, 1, 1, 30])):
            row, total = rng.randrange(size), rng.randint(NO_TOTAL, top)
            expected[row] = total
            leaders.set(row, total)
        if expected.max() != NO_TOTAL:
            assert list(leaders.best()) == np.flatnonzero(expected == expected.max()).tolist()
            assert (leaders.totals == expected).all()


@pytest.mark.parametrize("size", [100, 1_000])
def test_taking_the_best_row_again_and_again_goes_through_all_rows_in_order_of_their_totals(size: int) -> None:
    totals = np.random.default_rng(1).integers(0, 50, size)
    leaders = Leaders(totals.copy())
    seen = []
    for _ in range(size):
        row = leaders.best()[0]
        seen.append(int(totals[row]))
        leaders.set(row, NO_TOTAL)
    assert seen == sorted(totals.tolist(), reverse=True)
