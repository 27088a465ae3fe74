"""What a reflector counts, for metrics and for ``/readyz?verbose``.

``ReflectorStats`` are plain numbers that may be read at any time; ``ReflectorMetrics`` is told as things happen, never
once an event: events are reported by the chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

__all__ = ["NullReflectorMetrics", "ReflectorMetrics", "ReflectorStats"]


@dataclass(slots=True)
class ReflectorStats:
    """Counters of one kind since the start.

    Attributes:
        lists: full lists that were completed.
        relists: lists that became necessary after the first.
        watches_opened: streams that the server accepted.
        streams_silent: streams given up because no byte came.
        streams_cut: streams that broke off instead of ending.
        failures: requests that failed.
        events: lines read from streams.
        duplicates: events that told nothing new.
        rejected: objects that could not be understood.
        stale_deletions: deletions that only a list showed.
        objects: objects known now.
        last_resource_version: where the next watch starts, "" before the first list.
        relists_served: the newest ticket of ``request_relist`` for which a list is complete.
        unavailable_reason: why the kind cannot be read, "" if it can.
        is_synced: the kind has been delivered in full.
    """

    lists: int = 0
    relists: int = 0
    watches_opened: int = 0
    streams_silent: int = 0
    streams_cut: int = 0
    failures: int = 0
    events: int = 0
    duplicates: int = 0
    rejected: int = 0
    stale_deletions: int = 0
    objects: int = 0
    last_resource_version: str = ""
    relists_served: int = 0
    unavailable_reason: str = ""
    is_synced: bool = False


class ReflectorMetrics(Protocol):
    """Receives the counts; ``kind`` is the name in manifests, e.g. ``Pod``."""

    def listed(self, kind: str, objects: int, duration_s: float) -> None:
        """Note a complete list."""

    def relisting(self, kind: str, cause: str) -> None:
        """Note that a new list is needed.

        ``cause``: ``expired``, ``rewound``, ``requested``, ``drift`` or ``unconfirmed``.
        """

    def watch_opened(self, kind: str) -> None:
        """Note an accepted stream."""

    def watch_ended(self, kind: str, cause: str) -> None:
        """Note the end of a stream; ``cause``: ``closed``, ``cut``, ``silent`` or ``error``."""

    def events(self, kind: str, count: int) -> None:
        """Note lines read from a stream."""

    def rejected(self, kind: str) -> None:
        """Note an object that could not be understood."""


class NullReflectorMetrics:
    """Counts nothing."""

    def listed(self, kind: str, objects: int, duration_s: float) -> None: ...
    def relisting(self, kind: str, cause: str) -> None: ...
    def watch_opened(self, kind: str) -> None: ...
    def watch_ended(self, kind: str, cause: str) -> None: ...
    def events(self, kind: str, count: int) -> None: ...
    def rejected(self, kind: str) -> None: ...
