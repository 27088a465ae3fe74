"""Events as the API wants them, and how equal ones are folded into a series. Pure: times are handed in.

Two events are *isomorphic* when type, action, reason, controller, instance, regarding and related agree; the note does
not count (parity: ``client-go/tools/events``). Of an isomorphic series

* the first is created,
* the second patches ``series {count: 2}`` onto the first,
* later ones are only counted, and written every 30 minutes,
* a series without news for 6 minutes is written a last time and forgotten; so is a single event after 6 minutes.

# differs: at most 10,000 series are remembered, the oldest go first; client-go has no bound, and one Scheduled event
# for each pod would fill the memory.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

__all__ = [
    "FINISH_S",
    "MAX_NOTE_BYTES",
    "REFRESH_S",
    "Event",
    "Post",
    "Reference",
    "SeriesBook",
    "core_body",
    "core_series",
    "cut_note",
    "event_name",
    "events_body",
    "events_series",
    "micro_time",
]

FINISH_S: Final = 360.0
REFRESH_S: Final = 1_800.0
MAX_NOTE_BYTES: Final = 1_024
_MAX_SERIES = 10_000
_ELLIPSIS = " ..."
_MAX_FIELD_CHARS = 128
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Which object an event is about; encoded, it is the ``ObjectReference``."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class Event(msgspec.Struct, frozen=True):
    """One event as it was emitted. Times are nanoseconds since the Unix epoch."""

    regarding: Reference
    related: Reference | None
    controller: str
    instance: str
    kind: str
    reason: str
    action: str
    note: str
    time_ns: int
    is_core: bool = False

    def key(self) -> tuple[object, ...]:
        """Return what isomorphic events share.

        # parity: the references carry the objects' resourceVersions, so an event about a changed pod starts anew; the
        # note counts in ``v1`` only (client-go/tools/record).
        """
        note = self.note if self.is_core else ""
        return (self.kind, self.action, self.reason, self.controller, self.instance, self.regarding, self.related, note)


@dataclass(slots=True)
class Post:
    """One remembered event, and what of it the server should know.

    Attributes:
        event: the first of its series.
        name: of the Event object.
        count: how often it happened.
        last_ns: when it happened last.
        tries: failed tries to write the current state.
    """

    event: Event
    name: str
    count: int = 1
    last_ns: int = 0
    tries: int = 0
    written_count: int = 0

    @property
    def namespace(self) -> str:
        """Return the namespace of the Event object; cluster-scoped objects have theirs in ``default``."""
        return self.event.regarding.namespace or "default"


class SeriesBook:
    """The series that are alive, oldest news first."""

    def __init__(self, max_series: int = _MAX_SERIES) -> None:
        self._posts: OrderedDict[tuple[object, ...], Post] = OrderedDict()
        self._max_series = max_series
        self._refreshed_ns = 0
        self._finished_ns = 0

    def __len__(self) -> int:
        return len(self._posts)

    def observe(self, event: Event) -> Post | None:
        """Take an event; return the post to create (count 1) or to patch (count 2), or None if it was only counted."""
        key = event.key()
        post = self._posts.get(key)
        if post is None:
            post = Post(event, event_name(event.regarding.name, event.time_ns), last_ns=event.time_ns)
            self._posts[key] = post
            if len(self._posts) > self._max_series:
                self._posts.popitem(last=False)
            return post
        post.count += 1
        post.last_ns = event.time_ns
        self._posts.move_to_end(key)
        return post if post.count == 2 else None

    def due(self, now_ns: int) -> list[Post]:
        """Return the series to write now because of the 30 or the 6 minutes; call it about once a minute."""
        posts: dict[int, Post] = {}
        if now_ns - self._refreshed_ns >= REFRESH_S * 1e9:
            posts.update({id(post): post for post in self._posts.values() if post.count > 1})
            self._refreshed_ns = now_ns
        for key, post in list(self._posts.items()):
            if now_ns - post.last_ns < FINISH_S * 1e9:
                break
            del self._posts[key]
            if post.count > 1 and post.count != post.written_count:
                posts[id(post)] = post
        return list(posts.values())


def micro_time(time_ns: int) -> str:
    """Return ``MicroTime``: RFC 3339 in UTC with six digits."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{_date_time(seconds)}.{rest // 1_000:06d}Z"


def _second_time(time_ns: int) -> str:
    return f"{_date_time(time_ns // 1_000_000_000)}Z"


@lru_cache(maxsize=16)
def _date_time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def event_name(regarding_name: str, time_ns: int) -> str:
    """Return ``NAME.hexnanotime``, or a UUID if that is not a valid object name (k/k#127594)."""
    name = f"{regarding_name}.{time_ns:x}"
    is_valid = len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None
    return name if is_valid else str(uuid.uuid4())


def cut_note(note: str) -> str:
    """Return the note with at most 1,024 bytes of UTF-8, cut between characters (1,020 and " ...").

    What is no Unicode (lone surrogates in a plugin's text) becomes ``?``.
    """
    encoded = note.encode("utf-8", "replace")
    if len(encoded) <= MAX_NOTE_BYTES:
        return encoded.decode()
    return encoded[: MAX_NOTE_BYTES - len(_ELLIPSIS)].decode("utf-8", "ignore") + _ELLIPSIS


def _metadata(post: Post) -> dict[str, str]:
    return {"name": post.name, "namespace": post.namespace}


def events_body(post: Post) -> dict[str, Any]:
    """Return the object for ``events.k8s.io/v1``, for msgspec to encode; with a series if it happened repeatedly."""
    event = post.event
    body: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": _metadata(post),
        "eventTime": micro_time(event.time_ns),
        "reportingController": event.controller,
        "reportingInstance": event.instance[:_MAX_FIELD_CHARS],
        "action": event.action[:_MAX_FIELD_CHARS],
        "reason": event.reason[:_MAX_FIELD_CHARS],
        "regarding": event.regarding,
        "note": cut_note(event.note),
        "type": event.kind,
    }
    if event.related is not None:
        body["related"] = event.related
    if post.count > 1:
        body |= events_series(post)
    return body


def events_series(post: Post) -> dict[str, Any]:
    """Return the patch that tells ``events.k8s.io/v1`` how often it happened."""
    return {"series": {"count": post.count, "lastObservedTime": micro_time(post.last_ns)}}


def core_body(post: Post) -> dict[str, Any]:
    """Return the object for ``v1``, in the form of ``client-go/tools/record``."""
    event = post.event
    host = event.instance.removeprefix(f"{event.controller}-")
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": _metadata(post),
        "involvedObject": event.regarding,
        "reason": event.reason,
        "message": cut_note(event.note),
        "source": {"component": event.controller, "host": host},
        "firstTimestamp": _second_time(event.time_ns),
        "type": event.kind,
        "reportingComponent": event.controller,
        "reportingInstance": event.instance[:_MAX_FIELD_CHARS],
    }
    return body | core_series(post)


def core_series(post: Post) -> dict[str, Any]:
    """Return the patch that tells ``v1`` how often it happened."""
    return {"count": post.count, "lastTimestamp": _second_time(post.last_ns)}
