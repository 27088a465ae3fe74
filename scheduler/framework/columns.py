"""Columns as plugins return them: what counts as one, and what as a column of scores."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from scheduler.api import MAX_NODE_SCORE, BoolColumn, IntColumn, Verdicts

__all__ = ["are_in_range", "are_verdicts", "as_bool_column", "as_int_column"]

_BOOL = np.dtype(np.bool_)  # there is one object of each plain dtype
_INT64 = np.dtype(np.int64)
_UINT64 = np.dtype(np.uint64)


def as_bool_column(answer: object, size: int) -> BoolColumn | None:
    """Return a plugin's answer as bool column, or None if it is none."""
    if not isinstance(answer, np.ndarray) or answer.dtype is not _BOOL or answer.shape != (size,):
        return None
    return answer


def are_verdicts(answer: object, size: int) -> TypeGuard[Verdicts]:
    """Say whether a plugin's answer are Verdicts whose columns have one bool for each of ``size`` nodes."""
    if not isinstance(answer, Verdicts) or as_bool_column(answer.ok, size) is None:
        return False
    return answer.errors is None or as_bool_column(answer.errors, size) is not None


def as_int_column(answer: object, size: int) -> IntColumn | None:
    """Return a plugin's answer as int64 column, or None if it is none; floats are refused, not rounded."""
    if not isinstance(answer, np.ndarray) or answer.shape != (size,):
        return None
    if answer.dtype is _INT64:
        return answer
    # Narrower integers are harmless; uint64 may not fit and bool or float mean a mistake.
    return answer.astype(np.int64) if answer.dtype.kind in "iu" and np.can_cast(answer.dtype, np.int64) else None


def are_in_range(scores: IntColumn) -> bool:
    """Say whether all scores lie in 0..100."""
    # A negative int64 read as uint64 is huge, so one pass checks both ends.
    # (argmax and a look-up take half the time of max.)
    unsigned = scores.view(_UINT64)
    return not len(unsigned) or unsigned.item(unsigned.argmax()) <= MAX_NODE_SCORE
