"""The log of a term table: which carriers came and went, for readers that keep sums of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.state.index.carried import Carried

__all__ = ["TermChange", "TermLog"]

_LIMIT = 16384
_MAX_WEIGHT = 8 * _LIMIT


class TermChange(NamedTuple):
    """One carrier that came (1) to a domain or left it (-1)."""

    of: Carried
    value: str
    delta: int


class TermLog:
    """The newest changes, numbered from 0 on; so many, or fewer if their terms are large."""

    __slots__ = ("_changes", "_first", "_weight")

    def __init__(self) -> None:
        self._changes: list[TermChange] = []
        self._first = 0
        self._weight = 0

    @property
    def position(self) -> int:
        """Return the number of changes so far."""
        return self._first + len(self._changes)

    def since(self, position: int) -> Sequence[TermChange] | None:
        """Return the changes after the first ``position`` ones, or None if the log does not reach back that far."""
        return self._changes[position - self._first :] if position >= self._first else None

    def add(self, change: TermChange) -> None:
        """Note a change."""
        self._changes.append(change)
        self._weight += change.of.term.weight
        if len(self._changes) >= _LIMIT or self._weight > _MAX_WEIGHT:
            half = (len(self._changes) + 1) // 2
            self._weight -= sum(dropped.of.term.weight for dropped in self._changes[:half])
            del self._changes[:half]
            self._first += half
