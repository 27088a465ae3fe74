"""Rows: how per-row data follows the nodes when their order changes, and sets and logs of rows.

A row number means a node only until the order of the nodes is read anew. ``Reorder`` says where the rows went; whatever
keeps data by row applies it and so stays in step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["ChangeLog", "Reorder", "RowSet", "read_only"]

S = TypeVar("S", bound=np.generic)
T = TypeVar("T")

_LOG_LIMIT = 8192


class Reorder:
    """A change of the row order: rows ``old`` become rows ``new``; rows that nothing maps to are new nodes.

    Attributes:
        size: the number of rows afterwards.
    """

    __slots__ = ("_new", "_old", "_where", "size")

    def __init__(self, sources: NDArray[np.intp], old_size: int) -> None:
        """Make a change of order.

        Args:
            sources: for each row of the new order its row in the old one, or -1.
            old_size: the number of rows before.
        """
        self.size = len(sources)
        self._new = np.flatnonzero(sources >= 0)
        self._old = sources[self._new]
        self._where = np.full(old_size, -1, np.intp)
        self._where[self._old] = self._new

    def move(self, column: NDArray[S], fill: int = 0) -> NDArray[S]:
        """Return the column in the new order, ``fill`` in new rows."""
        moved = np.full(self.size, fill, column.dtype)
        moved[self._new] = column[self._old]
        return moved

    def move_list(self, values: Sequence[T], fill: T) -> list[T]:
        """Return the values in the new order, ``fill`` in new rows."""
        moved = [fill] * self.size
        for new, old in zip(self._new.tolist(), self._old.tolist(), strict=True):
            moved[new] = values[old]
        return moved

    def row(self, old: int) -> int:
        """Return where an old row went, or -1 if its node is gone."""
        return int(self._where[old])


class RowSet:
    """The rows that have some property."""

    __slots__ = ("_rows", "_sorted")

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self._sorted: tuple[int, ...] | None = ()

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    def put(self, row: int, present: bool) -> None:
        """Set whether ``row`` has the property."""
        if present is (row in self._rows):
            return
        if present:
            self._rows.add(row)
        else:
            self._rows.discard(row)
        self._sorted = None

    def reorder(self, change: Reorder) -> None:
        """Follow a change of the row order."""
        if self._rows:
            self._rows = {new for new in map(change.row, self._rows) if new >= 0}
            self._sorted = None

    def rows(self) -> tuple[int, ...]:
        """Return the rows in ascending order; the same tuple until the set changes."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self._rows))
        return self._sorted


class ChangeLog:
    """Which rows changed after which generation, for readers that keep results by row.

    Attributes:
        floor: changes after this generation are in the log; older ones are not (any more).
    """

    __slots__ = ("_generations", "_rows", "floor")

    def __init__(self) -> None:
        self._generations: list[int] = []
        self._rows: list[int] = []
        self.floor = 0

    def add(self, generation: int, row: int) -> None:
        """Note a change; generations never go down."""
        self._generations.append(generation)
        self._rows.append(row)
        if len(self._rows) >= _LOG_LIMIT:
            half = _LOG_LIMIT // 2
            self.floor = self._generations[half - 1]
            del self._generations[:half], self._rows[:half]

    def since(self, generation: int) -> list[int] | None:
        """Return the distinct rows that changed after ``generation``, or None if the log is too young to know."""
        if generation < self.floor:
            return None
        if not self._generations or self._generations[-1] <= generation:
            return []
        return list(dict.fromkeys(self._rows[bisect_right(self._generations, generation) :]))


def read_only(column: NDArray[S]) -> NDArray[S]:
    """Return a view of ``column`` that refuses writes, so that no plugin can spoil the snapshot."""
    view = column.view()
    view.flags.writeable = False
    return view
