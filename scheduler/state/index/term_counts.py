"""Term counts: what the terms that select some pod add up to, by value of one topology key, ready for columns.

Readers want sums by label code (see ``api.CodedColumn``), because these spread over thousands of nodes by one indexing
operation. Few values are put in one by one. For many, as with a key like hostname, an array by code is kept and brought
up to date at the next reading, so that reading costs a step for each value that changed since. Arrays are kept for
the counts read last, together at most ``_MAX_ENTRIES`` numbers; they repeat what ``counts`` says and may go any time.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import repeat

import numpy as np

from scheduler.api.views import CodedColumn, IntColumn

__all__ = ["DenseCounts", "TermCounts"]

_FEW = 16
_MAX_ENTRIES = 4_000_000


class TermCounts:
    """Sums by topology value; implements ``scheduler.api.TermCounts``.

    Attributes:
        topology_key: the node label.
        is_required: whether the terms are required ones, which are counted; preferences are added by weight.
        counts: topology value -> the sum over the carriers there; may be 0 where weights cancel out.
    """

    __slots__ = ("_carriers", "_dense", "counts", "is_required", "topology_key")

    def __init__(self, topology_key: str, is_required: bool, dense: DenseCounts) -> None:
        self.topology_key = topology_key
        self.is_required = is_required
        self.counts: dict[str, int] = {}
        # How many carriers a value has; of required terms that is what counts says.
        self._carriers: dict[str, int] = self.counts if is_required else {}
        self._dense = dense

    def __repr__(self) -> str:
        return f"<TermCounts {self.topology_key} is_required={self.is_required} {self.counts}>"

    def add(self, value: str, carriers: int, weight: int) -> None:
        """Add carriers (or take them away) in the domain ``value``; ``weight`` is 1 for required terms."""
        left = self._carriers.get(value, 0) + carriers
        if not left:
            self.counts.pop(value, None)
            self._carriers.pop(value, None)
        else:
            self._carriers[value] = left
            if not self.is_required:
                self.counts[value] = self.counts.get(value, 0) + carriers * weight
        self._dense.note(self, value)

    def add_to(self, sums: IntColumn, column: CodedColumn[str], factor: int = 1) -> None:
        """Add ``factor`` times the counts to ``sums``.

        Args:
            sums: one entry for each code of ``column``, and a last one that stays as it is.
            column: the label column of the topology key.
            factor: what a count weighs.
        """
        if len(self.counts) > _FEW:
            dense = self._dense.of(self, column)
            sums += dense if factor == 1 else dense * factor
            return
        for value, count in self.counts.items():
            code = column.code_of.get(value)
            if code is not None:
                sums[code] += count * factor


class _Dense:
    __slots__ = ("by_code", "stale", "values")

    def __init__(self, counts: dict[str, int], column: CodedColumn[str]) -> None:
        self.values = column.values  # its identity tells the dictionary of codes
        self.by_code = _by_code(counts, column)
        # Values that no node of the column has yet keep their place here until one has.
        self.stale = {value for value in counts if value not in column.code_of}

    def read(self, counts: dict[str, int], column: CodedColumn[str]) -> IntColumn:
        size = len(column.values) + 1
        if len(self.by_code) < size:
            self.by_code = np.append(self.by_code, np.zeros(size - len(self.by_code) + size // 4, np.int64))
        if self.stale:
            self.stale = {value for value in self.stale if not self._write(counts, column, value)}
        return self.by_code[:size]

    def _write(self, counts: dict[str, int], column: CodedColumn[str], value: str) -> bool:
        code = column.code_of.get(value)
        if code is None:
            return False
        self.by_code[code] = counts.get(value, 0)
        return True


class DenseCounts:
    """The arrays by code of the counts read last."""

    __slots__ = ("_arrays", "_max_entries", "_num_entries")

    def __init__(self, max_entries: int = _MAX_ENTRIES) -> None:
        self._arrays: OrderedDict[TermCounts, _Dense] = OrderedDict()
        self._max_entries = max_entries
        self._num_entries = 0

    def note(self, counts: TermCounts, value: str) -> None:
        """Remember that a count changed."""
        dense = self._arrays.get(counts)
        if dense is not None:
            dense.stale.add(value)
            if len(dense.stale) > len(counts.counts):
                self.forget(counts)

    def of(self, counts: TermCounts, column: CodedColumn[str]) -> IntColumn:
        """Return the counts by code, and a 0 at the end; good until a count changes."""
        dense = self._arrays.get(counts)
        if dense is not None and dense.values is not column.values:
            self.forget(counts)
            dense = None
        if dense is None:
            dense = self._arrays[counts] = _Dense(counts.counts, column)
            self._num_entries += len(dense.by_code)
        else:
            self._arrays.move_to_end(counts)
        size_before = len(dense.by_code)
        by_code = dense.read(counts.counts, column)
        self._num_entries += len(dense.by_code) - size_before
        while self._num_entries > self._max_entries and len(self._arrays) > 1:
            self.forget(next(iter(self._arrays)))
        return by_code

    def forget(self, counts: TermCounts) -> None:
        """Drop the array, if there is one."""
        dense = self._arrays.pop(counts, None)
        if dense is not None:
            self._num_entries -= len(dense.by_code)


def _by_code(counts: dict[str, int], column: CodedColumn[str]) -> IntColumn:
    by_code = np.zeros(len(column.values) + 1, np.int64)
    codes = np.fromiter(map(column.code_of.get, counts, repeat(-1)), np.intp, len(counts))
    by_code[codes] = np.fromiter(counts.values(), np.int64, len(counts))
    by_code[-1] = 0  # where values without a code went
    return by_code
