"""A heap whose items can be found, re-ranked and removed by key.

``heapq`` over tuples compares in C, which a heap that calls back into Python for each comparison cannot match. Removal
is lazy: the entry stays in the heap and is skipped when it surfaces; the heap is rebuilt once dead entries outnumber
the living. Items of equal rank leave in the order in which they came (parity: better than upstream, where that order is
arbitrary), and re-ranking keeps an item's place among its equals.

Invariant: ``_entries`` holds exactly one living entry a key, and every living entry is in ``_heap``.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

__all__ = ["KeyedHeap"]

T = TypeVar("T")

_Entry = tuple[Any, int, int, str, T]
"""rank, arrival, serial, key, item: the serial is unique, so that items themselves are never compared."""

_SPARE_DEAD = 64
"""Dead entries that are not worth a rebuild."""


class KeyedHeap(Generic[T]):
    """Items by key, smallest rank first; every operation is O(log n) amortised, look-ups are O(1)."""

    __slots__ = ("_entries", "_heap", "_serial")

    def __init__(self) -> None:
        self._entries: dict[str, _Entry[T]] = {}
        self._heap: list[_Entry[T]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[T]:
        """Return the items in the order of arrival of their keys."""
        return (entry[4] for entry in self._entries.values())

    def get(self, key: str) -> T | None:
        """Return the item under ``key``, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[4]

    def push(self, key: str, rank: Any, item: T) -> bool:
        """Put ``item`` in, or replace and re-rank the one under ``key``; return whether the key is new."""
        self._serial = serial = self._serial + 1
        known = self._entries.get(key)
        if known is None:
            entry = (rank, serial, serial, key, item)
        elif known[0] == rank and known[4] is item:
            return False
        else:
            entry = (rank, known[1], serial, key, item)
        self._entries[key] = entry
        heapq.heappush(self._heap, entry)
        if known is not None:
            self._drop_dead()
        return known is None

    def remove(self, key: str) -> T | None:
        """Take the item under ``key`` out and return it, or None."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._drop_dead()
        return entry[4]

    def peek(self) -> T | None:
        """Return the item of the smallest rank without taking it out, or None."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[3]) is entry:
                return entry[4]
            heapq.heappop(heap)
        return None

    def pop(self) -> T | None:
        """Take out the item of the smallest rank and return it, or None."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heapq.heappop(heap)
            if entries.get(entry[3]) is entry:
                del entries[entry[3]]
                return entry[4]
        return None

    def _drop_dead(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _SPARE_DEAD:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
