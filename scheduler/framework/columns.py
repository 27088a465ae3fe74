"""Columns as plugins return them: what counts as one, and what as a column of scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

from scheduler.api import MAX_NODE_SCORE, BoolColumn, IntColumn, ScoreColumn, Verdicts

__all__ = [
    "add_weighted",
    "are_in_range",
    "are_verdicts",
    "as_bool_column",
    "as_int_column",
    "as_score_column",
    "narrowed",
    "totals_type",
]

_BOOL = np.dtype(np.bool_)  # there is one object of each plain dtype
_INT16 = np.dtype(np.int16)
_INT64 = np.dtype(np.int64)
_UNSIGNED: dict[np.dtype[Any], np.dtype[np.unsignedinteger[Any]]] = {
    _INT16: np.dtype(np.uint16),
    _INT64: np.dtype(np.uint64),
}
_MAX_INT16 = (1 << 15) - 1


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


def as_score_column(answer: object, size: int) -> ScoreColumn | None:
    """Return what ``as_int_column`` returns, but an int16 column as it is: it costs a fraction to add up."""
    if isinstance(answer, np.ndarray) and answer.dtype is _INT16 and answer.shape == (size,):
        return answer
    return as_int_column(answer, size)


def narrowed(scores: ScoreColumn) -> ScoreColumn:
    """Return the scores as int16 if all of them fit."""
    fit = not len(scores) or -_MAX_INT16 <= int(scores.min()) <= int(scores.max()) <= _MAX_INT16
    return scores.astype(_INT16) if fit else scores


def are_in_range(scores: ScoreColumn) -> bool:
    """Say whether all scores, int16 or int64, lie in 0..100."""
    # A negative number read as unsigned is huge, so one pass checks both ends.
    # (argmax and a look-up take half the time of max.)
    unsigned = scores.view(_UNSIGNED[scores.dtype])
    return not len(unsigned) or unsigned.item(unsigned.argmax()) <= MAX_NODE_SCORE


def totals_type(weights: Iterable[int]) -> np.dtype[np.signedinteger[Any]]:
    """Return the type of the sums of scores with these weights: the narrowest of int16 and int64 that holds them."""
    return _INT16 if sum(weights) * MAX_NODE_SCORE <= _MAX_INT16 else _INT64


def add_weighted(totals: ScoreColumn, scores: ScoreColumn, weight: int) -> None:
    """Add normalized scores, or a change of them, to the totals of ``totals_type`` in place."""
    if scores.dtype is not totals.dtype:
        scores = scores.astype(totals.dtype)
    totals += scores if weight == 1 else scores * weight
