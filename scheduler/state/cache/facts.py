"""Facts: numbers of each node that a plugin computes with, kept as columns from one decision to the next.

What a plugin makes of a node alone (how much is free, how evenly it is used) is the same for every pod. So a plugin
describes it once (``NodeFacts``), and the snapshot keeps it for all nodes: only rows that changed are worked out again,
at the next use, so that whatever a plugin's function raises is raised in that plugin's own call.

Invariant: after ``columns`` every row that is not odd equals what the definition says of the node now.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.api.views import FloatColumns, NodeFacts, NodeView
from scheduler.state.cache.rows import Reorder, read_only

__all__ = ["FactStore", "FactStores"]

_MAX_DEFINITIONS = 16


class FactStore:
    """The columns of one definition."""

    __slots__ = ("_columns", "_definition", "_odd", "_stale", "_view")

    def __init__(self, definition: NodeFacts, size: int) -> None:
        self._definition = definition
        self._take(np.zeros((definition.width, size)))
        self._stale = set(range(size))
        self._odd: set[int] = set()

    def mark(self, row: int) -> None:
        """Note that the node of a row has changed."""
        self._stale.add(row)

    def reorder(self, change: Reorder) -> None:
        """Follow a change of the row order; new rows are marked by whoever writes them."""
        self._take(np.stack([change.move(column) for column in self._columns]))
        self._stale = {new for new in map(change.row, self._stale) if new >= 0}
        self._odd = {new for new in map(change.row, self._odd) if new >= 0}

    def columns(self, infos: Sequence[NodeView]) -> FloatColumns | None:
        """Return the columns, brought up to date; None if the definition does not hold for some node."""
        if self._stale:
            # A new set, because one that was large once is slow to walk for ever.
            stale, self._stale = self._stale, set()
            try:
                for row in stale:
                    self._write(row, infos[row])
            except BaseException:
                self._stale |= stale
                raise
        return None if self._odd else self._view

    def _write(self, row: int, node: NodeView) -> None:
        facts = self._definition.of_node(node)
        if facts is None:
            self._odd.add(row)
            return
        self._odd.discard(row)
        for column, fact in zip(self._columns, facts, strict=True):
            column[row] = fact

    def _take(self, data: FloatColumns) -> None:
        self._columns = list(data)
        self._view = read_only(data)


class FactStores:
    """The columns of all definitions in use; the oldest gives way."""

    __slots__ = ("_by_definition",)

    def __init__(self) -> None:
        self._by_definition: dict[NodeFacts, FactStore] = {}

    def columns(self, definition: NodeFacts, infos: Sequence[NodeView]) -> FloatColumns | None:
        """Return the columns of a definition, made at the first use."""
        store = self._by_definition.get(definition)
        if store is None:
            if len(self._by_definition) >= _MAX_DEFINITIONS:
                del self._by_definition[next(iter(self._by_definition))]
            store = self._by_definition[definition] = FactStore(definition, len(infos))
        return store.columns(infos)

    def mark(self, row: int) -> None:
        """Note that the node of a row has changed."""
        for store in self._by_definition.values():
            store.mark(row)

    def reorder(self, change: Reorder) -> None:
        """Follow a change of the row order."""
        for store in self._by_definition.values():
            store.reorder(change)
