"""Sums by code: how many pods there are for each value of a node label, kept up pod by pod.

A domain of spread or affinity is a value of a label. Adding up thousands of nodes in each cycle costs more than
anything else that these rules do, while between two cycles a pod or two come and go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler.api.views import CodedColumn, IntColumn

__all__ = ["CodesBySlot", "SumsByCode", "sum_by_code"]

Slots = NDArray[np.intp]


def sum_by_code(column: CodedColumn[str], pods: IntColumn) -> IntColumn:
    """Return the sum of ``pods`` over the rows of each code; one more entry, a 0, for rows without a value."""
    size = len(column.values)
    occupied = pods.nonzero()[0]
    # Moved by one, so that code -1 has a place too. bincount adds in float64, which is exact up to 2**53 pods.
    codes = column.codes[occupied] + np.int32(1)
    sums = np.bincount(codes, weights=pods[occupied], minlength=size + 1)
    counts = np.zeros(size + 1, np.int64)
    counts[:size] = sums[1 : size + 1]
    return counts


class CodesBySlot:
    """Which code each slot's node has, for one label column and one order of the nodes.

    Attributes:
        column: the label column.
        slots: of the rows.
    """

    __slots__ = ("_codes", "column", "slots")

    def __init__(self, column: CodedColumn[str], slots: Slots) -> None:
        self.column = column
        self.slots = slots
        self._codes = np.full(int(slots.max()) + 1 if len(slots) else 0, -1, np.int32)
        self._codes[slots] = column.codes

    def code(self, slot: int) -> int:
        """Return the code of the node in this slot; -1 if it has none, or is no node of the order."""
        return self._codes.item(slot) if slot < len(self._codes) else -1


class SumsByCode:
    """The sums of one question for one label column.

    Attributes:
        codes: what they are by.
        sums: an entry for each code and a 0; never written to again once it was handed out.
    """

    __slots__ = ("_is_shared", "codes", "sums")

    def __init__(self, codes: CodesBySlot, pods: IntColumn) -> None:
        self.codes = codes
        self.sums = sum_by_code(codes.column, pods)
        self._is_shared = False

    def add(self, slot: int, delta: int) -> None:
        """Count pods in or out."""
        code = self.codes.code(slot)
        if code >= 0:
            if self._is_shared:
                self.sums, self._is_shared = self.sums.copy(), False
            self.sums[code] += delta

    def hand_out(self) -> IntColumn:
        """Return the sums."""
        self._is_shared = True
        return self.sums
