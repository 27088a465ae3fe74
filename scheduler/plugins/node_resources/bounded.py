"""Bounded amounts: what scores compute with, so that products and sums stay inside int64.

A tenant may write any amount into a pod, and sums of such amounts reach the end of int64. A score asks only how full a
node is, and a node cannot be fuller than full, so amounts are cut to what the node offers. That changes no score: all
strategies treat "full" and "more than full" alike. The same cuts are made for one node and for columns, so both forms
agree on all input.
"""

from __future__ import annotations

import numpy as np

from scheduler.api import IntColumn

__all__ = ["MAX_EXACT_CAPACITY", "MAX_SCORED_AMOUNT", "bounded", "bounded_columns"]

MAX_SCORED_AMOUNT = 1 << 56
"""The most of a resource that a node is scored by, 64 PiB; times 100 it fits int64. differs: upstream overflows."""

MAX_EXACT_CAPACITY = 1 << 46
"""Up to 64 TiB scores can be worked out in floats, several times faster: 100 times that is below 2**53, so products and
sums are exact, and a quotient rounded down is that of the integer division (it is a whole number or at least 1/capacity
away from the next one, which is more than a float's rounding)."""


def bounded(capacity: int, used: int, amount: int) -> tuple[int, int, int]:
    """Return capacity, what is used and what would be used with ``amount`` more; nothing given may be negative."""
    capacity = min(capacity, MAX_SCORED_AMOUNT)
    used = min(used, capacity)
    return capacity, used, used + min(amount, MAX_SCORED_AMOUNT)


def bounded_columns(capacity: IntColumn, used: IntColumn, amount: int) -> tuple[IntColumn, IntColumn, IntColumn]:
    """Return ``bounded`` for each node."""
    capacity = np.minimum(capacity, MAX_SCORED_AMOUNT)
    used = np.minimum(used, capacity)
    return capacity, used, used + min(amount, MAX_SCORED_AMOUNT)
