"""Taints and tolerations: which toleration covers which taint (spec §4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scheduler.model.meta import Value
from scheduler.model.quantity import MAX_INT64, MIN_INT64

if TYPE_CHECKING:
    from scheduler.model.pod import Toleration

__all__ = [
    "NO_EXECUTE",
    "NO_SCHEDULE",
    "PREFER_NO_SCHEDULE",
    "Taint",
    "find_untolerated",
    "tolerates",
]

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}")


class Taint(Value, frozen=True):
    """A mark on a node that keeps pods away unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Say whether the toleration covers the taint.

    Args:
        toleration: of the pod; an empty effect or key covers any.
        taint: of the node.
        comparison_operators: whether ``Lt`` and ``Gt`` have a meaning (gate TaintTolerationComparisonOperators).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparison_operators:
            return _compares(toleration, taint)
        case _:
            return False


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: frozenset[str],
    *,
    comparison_operators: bool = False,
) -> Taint | None:
    """Return the first taint with one of ``effects`` that no toleration covers, or None."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, comparison_operators=comparison_operators) for toleration in tolerations
        ):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    threshold, actual = _int64(toleration.value), _int64(taint.value)
    if threshold is None or actual is None:
        return False
    return actual < threshold if toleration.operator == "Lt" else actual > threshold


def _int64(text: str) -> int | None:
    if not _DECIMAL.fullmatch(text):
        return None
    number = int(text)
    return number if MIN_INT64 <= number <= MAX_INT64 else None
