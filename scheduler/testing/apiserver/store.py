"""What the server remembers: objects under one global revision counter, and the changes that led here.

Why a history: watches resume from a version, and a paged list must go on showing the version that its first page
showed. Both need the past, bounded, and both are told 410 when it is gone.

Invariants:
    * every committed change has its own revision, one higher than the last;
    * stored values are never mutated: a write commits a new `Stored`;
    * each object is encoded once when it is committed, each watch line once however many watchers there are;
    * `Table.compacted` is the highest revision whose successor changes may be missing from the history.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from scheduler.testing.apiserver.resources import RESOURCES, Resource

__all__ = ["Change", "Store", "Stored", "Subscriber", "Table"]

Json = dict[str, Any]
Converter = Callable[[Json], Json]
encode_json = msgspec.json.Encoder().encode


class Stored:
    """One object at one revision: the parsed value and its JSON without kind and apiVersion."""

    __slots__ = ("body", "data", "revision")

    def __init__(self, data: Json, revision: int) -> None:
        self.data = data
        self.revision = revision
        self.body = encode_json(data)

    def typed_body(self, resource: Resource) -> bytes:
        """Return the JSON with kind and apiVersion, as single objects and watch events carry it."""
        return type_prefix(resource) + self.body[1:]


def type_prefix(resource: Resource) -> bytes:
    """Return the opening of an object's JSON, up to where the stored body goes on."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


@dataclass(slots=True, eq=False)
class Change:
    """One committed change; `before` is None for a creation, `after` for a deletion."""

    revision: int
    key: str
    before: Stored | None
    after: Stored | None
    _lines: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def line(self, event: str, resource: Resource, convert: Converter | None = None) -> bytes:
        """Return the watch line "ADDED", "MODIFIED" or "DELETED"; encoded once per API version."""
        cached = self._lines.get((event, resource.group))
        if cached is None:
            cached = watch_line(event, self._shown(event), resource, convert)
            self._lines[(event, resource.group)] = cached
        return cached

    def _shown(self, event: str) -> Stored:
        if event != "DELETED":
            assert self.after is not None
            return self.after
        # parity: who leaves (deleted, or out of the selector) is shown as it last was, at the change's version
        assert self.before is not None
        metadata = {**self.before.data["metadata"], "resourceVersion": str(self.revision)}
        return Stored({**self.before.data, "metadata": metadata}, self.revision)


def watch_line(event: str, stored: Stored, resource: Resource, convert: Converter | None = None) -> bytes:
    """Return one line of a watch stream."""
    body = stored.body if convert is None else encode_json(convert(stored.data))
    return b'{"type":"' + event.encode() + b'","object":' + type_prefix(resource) + body[1:] + b"}\n"


class Subscriber(Protocol):
    """Who is told of changes as they are committed."""

    def offer(self, change: Change) -> None: ...


class Table:
    """All objects of one resource, by key ("namespace/name", or the name), with their recent changes."""

    def __init__(self, history_limit: int) -> None:
        self.objects: dict[str, Stored] = {}
        self.history: deque[Change] = deque()
        self.compacted = 0
        self.subscribers: dict[Subscriber, None] = {}  # in order, so that they hear in order
        self._history_limit = history_limit
        self._sorted_keys: list[str] = []

    def apply(self, change: Change) -> None:
        """Take a change in and tell the subscribers."""
        if change.after is None:
            del self.objects[change.key]
            del self._sorted_keys[bisect.bisect_left(self._sorted_keys, change.key)]
        else:
            if change.before is None:
                bisect.insort(self._sorted_keys, change.key)
            self.objects[change.key] = change.after
        self.history.append(change)
        if len(self.history) > self._history_limit:
            self.compacted = self.history.popleft().revision
        for subscriber in tuple(self.subscribers):
            subscriber.offer(change)

    def compact(self, revision: int) -> None:
        """Forget the changes up to `revision`."""
        while self.history and self.history[0].revision <= revision:
            self.history.popleft()
        self.compacted = max(self.compacted, revision)

    def changes_after(self, revision: int) -> list[Change]:
        """Return the remembered changes later than `revision`, oldest first."""
        start = bisect.bisect_right(self.history, revision, key=lambda change: change.revision)
        return [self.history[index] for index in range(start, len(self.history))]

    def at(self, revision: int) -> dict[str, Stored]:
        """Return the objects as they were at `revision` (not before `compacted`)."""
        objects = dict(self.objects)
        for change in reversed(self.changes_after(revision)):
            if change.before is None:
                del objects[change.key]
            else:
                objects[change.key] = change.before
        return objects

    def scan(self, prefix: str, after: str = "") -> Iterator[tuple[str, Stored]]:
        """Yield the present objects whose key starts with `prefix`, in key order, from `after` on."""
        keys = self._sorted_keys
        for index in range(bisect.bisect_left(keys, max(prefix, after)), len(keys)):
            if not keys[index].startswith(prefix):
                return
            yield keys[index], self.objects[keys[index]]


class Store:
    """All tables and the one revision counter."""

    def __init__(self, history_limit: int = 10_000) -> None:
        self.revision = 1
        self._tables = {(r.group, r.plural): Table(history_limit) for r in RESOURCES if not r.view_of}

    def table(self, resource: Resource) -> Table:
        """Return the table that holds the resource's objects."""
        if resource.view_of:
            return self._tables[("", resource.view_of)]
        return self._tables[(resource.group, resource.plural)]

    def put(self, resource: Resource, key: str, data: Json) -> Stored:
        """Create or replace; `data` gets the new revision and belongs to the store from now on."""
        table = self.table(resource)
        self.revision += 1
        data["metadata"]["resourceVersion"] = str(self.revision)
        stored = Stored(data, self.revision)
        table.apply(Change(self.revision, key, table.objects.get(key), stored))
        return stored

    def remove(self, resource: Resource, key: str) -> None:
        """Delete the object under `key`."""
        table = self.table(resource)
        self.revision += 1
        table.apply(Change(self.revision, key, table.objects[key], None))

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to `revision` (default: all of it): resuming before it is answered 410."""
        for table in self._tables.values():
            table.compact(self.revision if revision is None else revision)
