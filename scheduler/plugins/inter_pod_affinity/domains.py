"""Domain counts: how many pods run in each domain of a topology key, with the changes of a dry run on top.

A domain is a value of a node label, and the counts of one key are an array over the label's codes, so that "is there a
pod in this node's domain" is answered for all nodes by one indexing operation. A dry run changes few domains: its
changes stand beside the array, which all clones share.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.api import BoolColumn, CodedColumn, IntColumn, NodesView

__all__ = ["DomainCounts", "TopologyCounts"]


class DomainCounts:
    """The counts of one topology key."""

    __slots__ = ("_by_code", "_changes", "_code_of")

    def __init__(self, column: CodedColumn[str] | None = None, by_code: IntColumn | None = None) -> None:
        """Take over counts by code with a 0 at the end (not written to), or start with none at all."""
        self._code_of: Mapping[str, int] = {} if column is None else column.code_of
        self._by_code = by_code
        self._changes: dict[str, int] = {}

    def clone(self) -> DomainCounts:
        """Return a copy that can be changed without changing this one."""
        copy = DomainCounts()
        copy._code_of, copy._by_code = self._code_of, self._by_code
        copy._changes = self._changes.copy()
        return copy

    def count(self, value: str) -> int:
        """Return how many pods the domain has."""
        code = self._code_of.get(value)
        before = 0 if code is None or self._by_code is None else int(self._by_code[code])
        return before + self._changes.get(value, 0)

    def change(self, value: str, delta: int) -> None:
        """Count pods in or out of a domain."""
        self._changes[value] = self._changes.get(value, 0) + delta

    def occupied(self, column: CodedColumn[str]) -> BoolColumn:
        """Return for each row of the key's ``column`` whether its domain has a pod; False without a value."""
        lut = np.zeros(len(column.values) + 1, np.bool_) if self._by_code is None else self._by_code > 0
        for value in self._changes:
            code = column.code_of.get(value)
            if code is not None:
                lut[code] = self.count(value) > 0
        return lut.take(column.codes)  # code -1 takes the last entry


class TopologyCounts:
    """The counts of several topology keys.

    Attributes:
        by_key: counts by topology key.
        total: the sum of all counts.
    """

    __slots__ = ("by_key", "total")

    def __init__(self) -> None:
        self.by_key: dict[str, DomainCounts] = {}
        self.total = 0

    def clone(self) -> TopologyCounts:
        """Return a copy that can be changed without changing this one."""
        copy = TopologyCounts()
        copy.by_key = {key: counts.clone() for key, counts in self.by_key.items()}
        copy.total = self.total
        return copy

    def put(self, key: str, column: CodedColumn[str], by_code: IntColumn) -> None:
        """Set the counts of a key that has none yet."""
        self.by_key[key] = DomainCounts(column, by_code)
        self.total += int(np.add.reduce(by_code))

    def change(self, key: str, labels: Mapping[str, str], delta: int) -> None:
        """Count pods in or out on a node with these labels; nothing changes if it lacks the key."""
        value = labels.get(key)
        if value is None:
            return
        counts = self.by_key.get(key)
        if counts is None:
            counts = self.by_key[key] = DomainCounts()
        counts.change(value, delta)
        self.total += delta

    def any_occupied(self, nodes: NodesView) -> BoolColumn | None:
        """Return for each row whether a pod runs in its domain of any of the keys; None if that is nowhere."""
        occupied: BoolColumn | None = None
        if self.total:
            for key, counts in self.by_key.items():
                of_key = counts.occupied(nodes.label(key))
                occupied = of_key if occupied is None else occupied | of_key
        return occupied

    def is_any_occupied(self, labels: Mapping[str, str]) -> bool:
        """Say the same of one node with these labels."""
        return bool(self.total) and any(
            (value := labels.get(key)) is not None and counts.count(value) > 0 for key, counts in self.by_key.items()
        )
