"""Watch streams: which changes a watcher sees, as which event, and how the lines get to its connection.

An object that enters or leaves the selector by a change is ADDED or DELETED for that watcher, whatever happened to it
(parity: the API server's watch cache).

States of a stream:
    initial events ──(asked for: bookmark "initial-events-end")──▶ changes as they come ──time-out, stop──▶ ended
                 └── version compacted ──▶ ERROR line (410) ──▶ ended
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from scheduler.testing.apiserver.resources import Resource
from scheduler.testing.apiserver.selectors import Predicate
from scheduler.testing.apiserver.status import ApiStatusError, Json
from scheduler.testing.apiserver.store import Change, Converter, Stored, encode_json, watch_line

__all__ = ["Watcher", "bookmark_line", "error_line"]

MAX_PENDING_LINES = 200_000
"""A watcher this far behind is cut off, as the real server cuts off slow readers; it resumes by version."""

_EMPTY_BODIES: dict[str, Json] = {
    "Pod": {"spec": {"containers": None}, "status": {}},
    "Node": {"spec": {}, "status": {}},
}


class Watcher:
    """One stream's filter and its lines that were not yet sent."""

    def __init__(
        self,
        resource: Resource,
        prefix: str,
        matches: Predicate | None,
        convert: Converter | None = None,
    ) -> None:
        self.resource = resource
        self._prefix = prefix
        self._matches = matches
        self._convert = convert
        self._pending: list[bytes] = []
        self._wake = asyncio.Event()
        self.is_closed = False

    def offer(self, change: Change) -> None:
        """Take a committed change; called by the store."""
        if self._prefix and not change.key.startswith(self._prefix):
            return
        event = self._event(change)
        if event is not None:
            self.push(change.line(event, self.resource, self._convert))

    def offer_all(self, changes: Iterable[Change]) -> None:
        """Replay changes from the history."""
        for change in changes:
            self.offer(change)

    def show(self, stored: Stored) -> None:
        """Send a present object as a synthetic ADDED event, if it matches."""
        if self._matches is None or self._matches(stored.data):
            self.push(watch_line("ADDED", stored, self.resource, self._convert))

    def bookmark(self, revision: int, *, ends_initial_events: bool = False) -> None:
        """Send a bookmark: everything up to `revision` has been sent."""
        self.push(bookmark_line(self.resource, revision, ends_initial_events=ends_initial_events))

    def push(self, line: bytes) -> None:
        """Queue one line; cuts the stream off when the reader does not keep up."""
        if self.is_closed:
            return
        self._pending.append(line)
        if len(self._pending) > MAX_PENDING_LINES:
            self._pending.clear()
            self.is_closed = True
        self._wake.set()

    def close(self) -> None:
        """End the stream after what is queued."""
        self.is_closed = True
        self._wake.set()

    async def next_chunk(self, timeout_s: float) -> bytes:
        """Wait for lines and return all that are queued; empty after `timeout_s`, or when closed and drained."""
        if not self._pending and not self.is_closed:
            self._wake.clear()
            # What came in the moment of the time-out is handed out: a bookmark that follows must not overtake it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._wake.wait()
        chunk = b"".join(self._pending)
        self._pending.clear()
        return chunk

    def _event(self, change: Change) -> str | None:
        had = change.before is not None and (self._matches is None or self._matches(change.before.data))
        has = change.after is not None and (self._matches is None or self._matches(change.after.data))
        if has:
            return "MODIFIED" if had else "ADDED"
        return "DELETED" if had else None


def bookmark_line(resource: Resource, revision: int, *, ends_initial_events: bool = False) -> bytes:
    """Return a BOOKMARK line: an empty object that carries only a version."""
    metadata: Json = {"resourceVersion": str(revision)}
    if ends_initial_events:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj: Json = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    obj |= _EMPTY_BODIES.get(resource.kind, {})
    return encode_json({"type": "BOOKMARK", "object": obj}) + b"\n"


def error_line(error: ApiStatusError) -> bytes:
    """Return an ERROR line, after which a stream ends."""
    return encode_json({"type": "ERROR", "object": error.body()}) + b"\n"
