"""Domains: matching pods by value of a topology label, over all nodes at once.

A domain is a code of the label's column. Where all nodes count, the snapshot keeps the sums; else counting is one
``bincount`` over the rows with a matching pod.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, CodedColumn, Int32Column, IntColumn

__all__ = ["NO_DOMAINS", "UNKNOWN_MINIMUM", "Domains", "count_by_code"]

UNKNOWN_MINIMUM = (1 << 31) - 1
"""parity: what the emptiest domain has if there is no domain and ``minDomains`` asks for none."""


def count_by_code(codes: Int32Column, pods: IntColumn, rows: BoolColumn | None, size: int) -> IntColumn:
    """Return the sum of ``pods`` for each code below ``size`` over ``rows`` (None: all), all of which have a code."""
    if rows is not None:
        occupied = pods.nonzero()[0]
        occupied = occupied[rows[occupied]]
        codes, pods = codes[occupied], pods[occupied]
    # bincount adds in float64, which is exact up to 2**53 pods.
    return np.bincount(codes, weights=pods, minlength=size).astype(np.int64)


class Domains:
    """The domains of one hard constraint with their counts; never changed, so that dry runs can share it.

    Attributes:
        column: the topology label.
        counts: matching pods by code; 0 where the code is no domain.
        known: by code, whether it is a domain: the value of a node that counts.
        number: how many domains there are.
    """

    def __init__(self, column: CodedColumn[str], counts: IntColumn, known: BoolColumn) -> None:
        """Take over counts and what is known, by code of the column."""
        self.column = column
        self.counts = counts
        self.known = known
        self.number = int(np.count_nonzero(known))

    @classmethod
    def of_rows(cls, column: CodedColumn[str], pods: IntColumn, rows: BoolColumn) -> Domains:
        """Count on ``rows``, the nodes that count, which must have the label."""
        size = len(column.values)
        known = np.bincount(column.codes[rows], minlength=size) > 0
        return cls(column, count_by_code(column.codes, pods, rows, size), known)

    def code(self, value: str) -> int | None:
        """Return the code of a domain, or None if the value is none."""
        code = self.column.code_of.get(value)
        return code if code is not None and code < len(self.known) and self.known[code] else None

    @cached_property
    def minimum(self) -> int:
        """Return the number of pods in the emptiest domain."""
        return int(self._known_counts.min()) if self.number else UNKNOWN_MINIMUM

    def minimum_without(self, codes: NDArray[np.intp]) -> int:
        """Return the minimum over the domains other than these."""
        if len(codes) == 1 and (self.counts[codes[0]] > self.minimum or self._num_emptiest > 1):
            return self.minimum
        others = self.known.copy()
        others[codes] = False
        return int(self.counts[others].min()) if others.any() else UNKNOWN_MINIMUM

    @cached_property
    def _known_counts(self) -> IntColumn:
        return self.counts if self.number == len(self.counts) else self.counts[self.known]

    @cached_property
    def _num_emptiest(self) -> int:
        return int(np.count_nonzero(self._known_counts == self.minimum))


NO_DOMAINS = Domains(CodedColumn[str](np.zeros(0, np.int32), (), {}), np.zeros(0, np.int64), np.zeros(0, np.bool_))
"""Of a constraint for which no node counts."""
