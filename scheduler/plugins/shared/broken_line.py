"""A line through given points: how welcome each utilization is (``helper.BuildBrokenLinearFunction``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

__all__ = ["line_value"]


def line_value(shape: Sequence[tuple[int, int]], x: int) -> int:
    """Return the line's value at ``x``; outside the points it is level.

    Args:
        shape: (x, y) with x rising, at least one point.
        x: where to read the line.
    """
    if x <= shape[0][0]:
        return shape[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(shape):
        if x <= x1:
            return y0 + _truncated_quotient((y1 - y0) * (x - x0), x1 - x0)
    return shape[-1][1]


def _truncated_quotient(numerator: int, denominator: int) -> int:
    # parity: Go truncates toward zero, which matters on falling lines
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient
