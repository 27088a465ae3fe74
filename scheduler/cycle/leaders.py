"""Leaders: the rows with the highest total, kept up as single rows change.

A decision changes one row, the node that got the pod. Looking for the best of 65,000 totals takes 60 µs, so it is not
done anew each time: the best rows are kept as a list, from which rows go and to which rows come. When it runs empty,
the next best are looked for by the maxima of blocks of rows, of which only those of changed rows are worked out again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np

from scheduler.api import IntColumn

__all__ = ["NO_TOTAL", "Leaders"]

NO_TOTAL = -1
"""Total of a row that is out of the running; totals that count are not negative."""

_BLOCK_BITS = 8
_BLOCK = 1 << _BLOCK_BITS
_FEW_BLOCKS = 12  # more of them are worked out faster all at once


class Leaders:
    """Totals by row, and which rows are best.

    Attributes:
        totals: one a row; change it by ``set`` alone.

    Invariant: ``_best``, unless it is empty, holds exactly the rows whose total is ``_top``, ascending, and no total is
    higher; ``_maxima`` is right for all blocks but the ``_stale`` ones.
    """

    __slots__ = ("_best", "_blocks", "_maxima", "_stale", "_top", "totals")

    def __init__(self, totals: IntColumn) -> None:
        """Take over ``totals``, of which at least one is not ``NO_TOTAL``."""
        size = len(totals)
        padded = np.full(-(-size // _BLOCK) * _BLOCK, NO_TOTAL, np.int64)
        padded[:size] = totals
        self.totals: IntColumn = padded[:size]
        self._blocks = padded.reshape(-1, _BLOCK)
        self._maxima: IntColumn = self._blocks.max(axis=1)
        self._stale: set[int] = set()
        self._top = NO_TOTAL
        self._best: list[int] = []

    def set(self, row: int, total: int) -> None:
        """Change the total of one row."""
        old = self.totals.item(row)
        if old == total:
            return
        self.totals[row] = total
        self._stale.add(row >> _BLOCK_BITS)
        best = self._best
        if not best:
            return
        if total > self._top:
            self._top, self._best = total, [row]
        elif total == self._top:
            insort(best, row)
        elif old == self._top:
            del best[bisect_left(best, row)]

    def best(self) -> Sequence[int]:
        """Return the rows with the highest total, ascending."""
        if not self._best:
            self._refresh()
            self._top = int(self._maxima.max())
            blocks = np.flatnonzero(self._maxima == self._top)
            block, column = np.nonzero(self._blocks[blocks] == self._top)
            self._best = ((blocks[block] << _BLOCK_BITS) + column).tolist()
        return self._best

    def _refresh(self) -> None:
        if len(self._stale) > _FEW_BLOCKS:
            self._blocks.max(axis=1, out=self._maxima)
        else:
            for block in self._stale:
                self._maxima[block] = self._blocks[block].max()
        self._stale.clear()
