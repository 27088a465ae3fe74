"""The choice among the best."""

import random

import numpy as np
import pytest

from scheduler.cycle.select import best_rows, choose_smallest_name, choose_uniformly


class Nodes:
    names = ("c", "a", "b")


@pytest.mark.parametrize(
    ("totals", "rows"),
    [([1], [0]), ([3, 9, 9], [1, 2]), ([9, 3, 1], [0]), ([0, 0, 0], [0, 1, 2]), ([-5, -3, -5], [1])],
)
def test_best_rows(totals, rows):
    """All rows with the highest total, and no other."""
    assert best_rows(np.array(totals, np.int64)).tolist() == rows


def test_choices():
    """By chance, or by name for comparisons with the oracle."""
    best = np.array([0, 2])
    chance = random.Random(3)
    assert {choose_uniformly(Nodes(), best, chance) for _ in range(50)} == {0, 2}
    assert choose_uniformly(Nodes(), np.array([1]), chance) == 1
    assert choose_smallest_name(Nodes(), best, chance) == 2
