"""ClaimUse: which persistent volume claims the pods on the nodes use.

Read by the rule that a ReadWriteOncePod volume has one pod at a time, and by volume counts. A claim is in use as long
as a row names it; most rows name none and cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scheduler.state.cache.rows import Reorder

__all__ = ["ClaimUse"]


class ClaimUse:
    """Claims by row, and how many rows name each."""

    __slots__ = ("_by_row", "_rows_of")

    def __init__(self) -> None:
        self._by_row: dict[int, frozenset[str]] = {}
        self._rows_of: dict[str, int] = {}

    def put(self, row: int, claims: Mapping[str, int]) -> None:
        """Set the claims that the pods of one row use."""
        if not claims and row not in self._by_row:
            return
        old = self._by_row.get(row, frozenset())
        if old == claims.keys():
            return
        self._remove(old)
        for claim in claims:
            self._rows_of[claim] = self._rows_of.get(claim, 0) + 1
        if claims:
            self._by_row[row] = frozenset(claims)
        else:
            del self._by_row[row]

    def reorder(self, change: Reorder) -> None:
        """Follow a change of the row order; claims of rows that went are no longer used there."""
        by_row, self._by_row = self._by_row, {}
        for old, claims in by_row.items():
            row = change.row(old)
            if row >= 0:
                self._by_row[row] = claims
            else:
                self._remove(claims)

    def used(self) -> Collection[str]:
        """Return the claims in use."""
        return self._rows_of.keys()

    def _remove(self, claims: frozenset[str]) -> None:
        for claim in claims:
            left = self._rows_of[claim] - 1
            if left:
                self._rows_of[claim] = left
            else:
                del self._rows_of[claim]
