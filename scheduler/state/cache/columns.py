"""Columns: the facts of all nodes as arrays, kept in step row by row.

Filters and scores look at thousands of nodes at once; they read arrays instead of objects. A column comes into being
when it is first asked for and is kept up from then on, one row at a time, when that row's node changes. So a cluster
pays for the resources and label keys that its pods really name.

Bounds: at most ``_MAX_SCALARS`` resources beyond cpu, memory, ephemeral storage and pods, and ``_MAX_LABELS`` label
keys have a column at a time; the oldest gives way (its arrays stay valid for whoever holds them) and is built again on
demand. A dictionary of coded values is renewed when most of its values are no longer in use.

Invariants: after ``write`` of every changed row each column equals one built from scratch; arrays handed out are
read-only views that follow later writes until the order of the rows changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from scheduler.api.views import CodedColumn, IntColumn
from scheduler.model.node import Node
from scheduler.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from scheduler.state.cache.rows import Reorder, read_only

__all__ = ["CodedStore", "LabelColumns", "ResourceColumns"]

S = TypeVar("S")
V = TypeVar("V", bound=Hashable)

_CORE = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})
_MAX_SCALARS = 64
_MAX_LABELS = 128
_INT64_MAX = (1 << 63) - 1
_SLACK = 64


class ResourceColumns(Generic[S]):
    """One kind of amount, e.g. what is requested: a column for each resource that was asked for.

    ``S`` is where a row's amounts stand: the node object, or the record with its pods.

    Resources other than the core four are usually on few nodes, and there may be thousands of them (one per node is a
    known case). Their holders are noted by name, so that a column for one costs no look at every node.
    """

    __slots__ = ("_amounts_of", "_data", "_held_by", "_holders", "_views")

    def __init__(self, amounts_of: Callable[[S], Resources]) -> None:
        self._amounts_of = amounts_of
        self._data: dict[str, IntColumn] = {}
        self._views: dict[str, IntColumn] = {}
        # Names, not rows: they survive a change of order. Both sides, so that what a node gives up is forgotten:
        # anybody may make pods that name a thousand resources of their own and a node to run on.
        self._holders: dict[str, set[str]] = {}
        self._held_by: dict[str, frozenset[str]] = {}

    def column(self, resource: str, sources: Sequence[S], row_of: Mapping[str, int]) -> IntColumn:
        """Return the column of ``resource``, zeros where a row's source names none."""
        view = self._views.get(resource)
        if view is None:
            data = self._build(resource, sources, row_of)
            self._make_room(resource)
            self._data[resource] = data
            view = self._views[resource] = read_only(data)
        return view

    def write(self, row: int, name: str, source: S) -> None:
        """Bring the row of node ``name`` up to date in every column."""
        amounts = self._amounts_of(source)
        for resource, data in self._data.items():
            try:
                data[row] = amounts.get(resource, 0)
            except OverflowError:
                data[row] = _clamp(amounts[resource])
        held = amounts.keys() - _CORE
        if held or name in self._held_by:
            self._note_holder(name, frozenset(held))

    def reorder(self, change: Reorder, row_of: Mapping[str, int]) -> None:
        """Follow a change of the row order."""
        self._data = {resource: change.move(data) for resource, data in self._data.items()}
        self._views = {resource: read_only(data) for resource, data in self._data.items()}
        for name in [name for name in self._held_by if name not in row_of]:
            self._note_holder(name, frozenset())

    def _build(self, resource: str, sources: Sequence[S], row_of: Mapping[str, int]) -> IntColumn:
        amounts_of = self._amounts_of
        if resource in _CORE:
            amounts = (_clamp(amounts_of(source).get(resource, 0)) for source in sources)
            return np.fromiter(amounts, np.int64, len(sources))
        data = np.zeros(len(sources), np.int64)
        for name in self._holders.get(resource, ()):
            row = row_of.get(name)
            if row is not None:
                data[row] = _clamp(amounts_of(sources[row]).get(resource, 0))
        return data

    def _make_room(self, resource: str) -> None:
        if resource in _CORE:
            return
        scalars = [name for name in self._data if name not in _CORE]
        if len(scalars) >= _MAX_SCALARS:
            del self._data[scalars[0]], self._views[scalars[0]]

    def _note_holder(self, name: str, held: frozenset[str]) -> None:
        before = self._held_by.get(name, frozenset())
        if held == before:
            return
        for resource in held - before:
            self._holders.setdefault(resource, set()).add(name)
        for resource in before - held:
            self._holders[resource].discard(name)
            if not self._holders[resource]:
                del self._holders[resource]
        if held:
            self._held_by[name] = held
        else:
            del self._held_by[name]


class CodedStore(Generic[V]):
    """A dictionary-coded column that is written row by row."""

    __slots__ = ("_code_of", "_codes", "_column", "_values")

    def __init__(self, values: Sequence[V | None]) -> None:
        """Code ``values``, one a row, None where a row has no value."""
        self._values: list[V] = []
        self._code_of: dict[V, int] = {}
        self._codes = np.fromiter(map(self._code, values), np.int32, len(values))
        self._column: CodedColumn[V] | None = None

    @property
    def column(self) -> CodedColumn[V]:
        """Return the column as it is now.

        It is another object whenever a row, the order of rows or the dictionary has changed, so that what was worked
        out of a column can be kept with it.
        """
        if self._column is None:
            self._column = CodedColumn(read_only(self._codes), self._values, self._code_of)
        return self._column

    def write(self, row: int, value: V | None) -> None:
        """Set the value of one row."""
        code = self._code(value)
        if self._codes.item(row) == code:
            return
        self._codes[row] = code
        self._column = None
        if len(self._values) > 2 * len(self._codes) + _SLACK:
            self._renew()

    def reorder(self, change: Reorder) -> None:
        """Follow a change of the row order; new rows have no value until they are written."""
        self._codes = change.move(self._codes, fill=-1)
        self._column = None

    def _code(self, value: V | None) -> int:
        if value is None:
            return -1
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self._values)
            self._values.append(value)
        return code

    def _renew(self) -> None:
        """Give codes to the values in use only."""
        used, codes = np.unique(self._codes, return_inverse=True)
        has_none = len(used) > 0 and used[0] < 0
        self._values = [self._values[code] for code in used.tolist() if code >= 0]
        self._code_of = {value: code for code, value in enumerate(self._values)}
        self._codes = (codes - int(has_none)).astype(np.int32)


class LabelColumns:
    """A coded column for each label key that was asked for."""

    __slots__ = ("_stores",)

    def __init__(self) -> None:
        self._stores: dict[str, CodedStore[str]] = {}

    def column(self, key: str, nodes: Sequence[Node]) -> CodedColumn[str]:
        """Return the column of ``key``."""
        store = self._stores.get(key)
        if store is None:
            if len(self._stores) >= _MAX_LABELS:
                del self._stores[next(iter(self._stores))]
            store = self._stores[key] = CodedStore([node.metadata.labels.get(key) for node in nodes])
        return store.column

    def write(self, row: int, node: Node) -> None:
        """Bring one row of every column up to date."""
        labels = node.metadata.labels
        for key, store in self._stores.items():
            store.write(row, labels.get(key))

    def reorder(self, change: Reorder) -> None:
        """Follow a change of the row order."""
        for store in self._stores.values():
            store.reorder(change)


def _clamp(amount: int) -> int:
    # differs: Go's sums wrap around; ours stop at the ends, so a hostile pod cannot turn full into empty.
    return max(-_INT64_MAX - 1, min(amount, _INT64_MAX))
