"""Bytes of the API server to typed objects; nothing in here ever raises on what the bytes contain.

An object that cannot be understood becomes ``Rejected`` with as much of its identity as can be read, and the rest of
the list or stream goes on behind it.

Two paths. The fast one decodes straight into the typed values. Only what it refuses takes the slow one, which decodes
into plain dictionaries, leaves out every ``null`` (to Go, a null list, map or struct is an absent one; bookmarks carry
``"containers": null``) and converts the rest.

Decoded objects keep these promises, on which the rest of the program relies: ``metadata.name`` is set, integers fit
the API's int32 and int64, all quantities that scheduling reads can be parsed, and no pod asks for a negative amount.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from scheduler.model.delta import Rejected
from scheduler.model.meta import KubeObject, ListMeta, ObjectMeta
from scheduler.model.quantity_check import quantity_problem

__all__ = [
    "ADDED",
    "BOOKMARK",
    "DELETED",
    "ERROR",
    "MODIFIED",
    "DecodedList",
    "WatchLine",
    "decode_list",
    "decode_object",
    "decode_watch_line",
    "peek_continue_token",
    "without_nulls",
]

K = TypeVar("K", bound=KubeObject)
S = TypeVar("S", bound=msgspec.Struct)

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"
_OBJECT_TYPES = frozenset({ADDED, MODIFIED, DELETED})

_BAD_INPUT = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
"""All that decoding may raise: malformed JSON, wrong types, huge numbers, bad UTF-8, nesting that is too deep."""

_MAX_REASON_CHARS = 512


@dataclass(frozen=True, slots=True)
class DecodedList(Generic[K]):
    """A list, or one page of it.

    Attributes:
        items: objects and rejected objects, in the server's order.
        resource_version: of the list.
        continue_token: "" on the last page.
        problem: what is wrong with the list as a whole, if it could not be read at all; "" for a good list.
    """

    items: list[K | Rejected]
    resource_version: str = ""
    continue_token: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WatchLine(Generic[K]):
    """One line of a watch stream.

    Attributes:
        type: ``ADDED MODIFIED DELETED BOOKMARK ERROR``, or what the server said instead. A line that cannot be read
            at all is an ERROR with code 0.
        obj: the object of ADDED, MODIFIED and DELETED; None for other types.
        resource_version: of the object or bookmark.
        code: HTTP code of an ERROR, e.g. 410 if the version to resume from is gone.
        message: what an ERROR says.
    """

    type: str
    obj: K | Rejected | None = None
    resource_version: str = ""
    code: int = 0
    message: str = ""


def decode_object(kind: type[K], data: bytes | msgspec.Raw) -> K | Rejected:
    """Decode one object."""
    try:
        obj = _object_decoder(kind).decode(data)
    except _BAD_INPUT as error:
        return _decode_slowly(kind, data, _describe(error))
    return _checked(kind, obj)


def decode_list(kind: type[K], data: bytes) -> DecodedList[K]:
    """Decode a list answer; a bad item does not keep the others from being decoded."""
    try:
        answer = _list_decoder(kind).decode(data)
        items = [_checked(kind, item) for item in answer.items]
    except _BAD_INPUT:
        return _decode_list_by_item(kind, data)
    return DecodedList(items, answer.metadata.resource_version, answer.metadata.continue_)


def peek_continue_token(data: bytes) -> str:
    """Read a list's continue token without decoding its items, in a fifteenth of the time; "" if it cannot be read."""
    try:
        return _list_head_decoder.decode(data).metadata.continue_ or ""
    except _BAD_INPUT:
        return ""  # what is wrong with it comes out when the items are decoded


def decode_watch_line(kind: type[K], line: bytes) -> WatchLine[K]:
    """Decode one line of a watch stream."""
    try:
        event = _event_decoder(kind).decode(line)
    except _BAD_INPUT:
        return _decode_line_by_type(kind, line)
    if event.type not in _OBJECT_TYPES:
        return _decode_line_by_type(kind, line)
    return WatchLine(event.type, _checked(kind, event.object), event.object.metadata.resource_version)


class _List(msgspec.Struct, Generic[K]):
    """A list whose items are all good."""

    items: list[K]
    metadata: ListMeta = ListMeta()


class _Token(msgspec.Struct):
    """What asks for the next page."""

    continue_: str | None = msgspec.field(name="continue", default=None)


class _ListHead(msgspec.Struct):
    """A list whose items are skipped."""

    metadata: _Token


class _RawList(msgspec.Struct):
    """A list whose items are decoded one by one."""

    items: list[msgspec.Raw] | None
    metadata: Any = None


class _Event(msgspec.Struct, Generic[K]):
    """A line about an object."""

    type: str
    object: K


class _RawEvent(msgspec.Struct):
    """A line of any type."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Bookmark(msgspec.Struct):
    """The only part of a bookmark's object that counts."""

    metadata: ObjectMeta = ObjectMeta()


class _ErrorStatus(msgspec.Struct):
    """The ``Status`` object of an ERROR line."""

    code: int = 0
    message: str | None = None
    reason: str | None = None


_NOTHING = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct):
    """An object of which only the identity is read, whatever the rest looks like."""

    metadata: msgspec.Raw = _NOTHING
    spec: msgspec.Raw = _NOTHING


class _Names(msgspec.Struct, rename="camel"):
    """Who an object is, each field as it comes."""

    name: msgspec.Raw = _NOTHING
    namespace: msgspec.Raw = _NOTHING
    uid: msgspec.Raw = _NOTHING
    resource_version: msgspec.Raw = _NOTHING


class _Places(msgspec.Struct, rename="camel"):
    """Whose a pod is, and where, each field as it comes."""

    scheduler_name: msgspec.Raw = _NOTHING
    node_name: msgspec.Raw = _NOTHING


_list_head_decoder = msgspec.json.Decoder(_ListHead)
_raw_list_decoder = msgspec.json.Decoder(_RawList)
_raw_event_decoder = msgspec.json.Decoder(_RawEvent)
_bookmark_decoder = msgspec.json.Decoder(_Bookmark)
_error_decoder = msgspec.json.Decoder(_ErrorStatus)


@functools.cache
def _object_decoder(kind: type[K]) -> msgspec.json.Decoder[K]:
    return msgspec.json.Decoder(kind)


@functools.cache
def _list_decoder(kind: type[K]) -> msgspec.json.Decoder[_List[K]]:
    return msgspec.json.Decoder(_List[kind])  # type: ignore[valid-type]


@functools.cache
def _event_decoder(kind: type[K]) -> msgspec.json.Decoder[_Event[K]]:
    return msgspec.json.Decoder(_Event[kind])  # type: ignore[valid-type]


def _checked(kind: type[K], obj: K) -> K | Rejected:
    meta = obj.metadata
    problem = quantity_problem(obj) if meta.name else "metadata.name is missing"
    if not problem:
        return obj
    spec = getattr(obj, "spec", None)
    names = (getattr(spec, "scheduler_name", ""), getattr(spec, "node_name", ""))
    return _rejected(kind, problem, _Identity(meta, *names))


def _decode_slowly(kind: type[K], data: bytes | msgspec.Raw, refusal: str) -> K | Rejected:
    """Decode what the fast path refused with ``refusal``."""
    try:
        plain = without_nulls(msgspec.json.decode(data))
    except _BAD_INPUT:
        return _rejected(kind, refusal, _identity(data))
    try:
        obj = msgspec.convert(plain, kind)
    except _BAD_INPUT as error:
        return _rejected(kind, _describe(error), _identity(data))
    return _checked(kind, obj)


def without_nulls(plain: Any) -> Any:
    """Return plain data without the fields that are null: to Go they are absent."""
    if isinstance(plain, dict):
        return {key: without_nulls(value) for key, value in plain.items() if value is not None}
    if isinstance(plain, list):
        return [without_nulls(item) for item in plain]
    return plain


def _decode_list_by_item(kind: type[K], data: bytes) -> DecodedList[K]:
    try:
        answer = _raw_list_decoder.decode(data)
        meta = msgspec.convert(without_nulls(answer.metadata or {}), ListMeta)
    except _BAD_INPUT as error:
        return DecodedList([], problem=f"list cannot be read: {_describe(error)}")
    items = [decode_object(kind, item) for item in answer.items or ()]
    return DecodedList(items, meta.resource_version, meta.continue_)


def _decode_line_by_type(kind: type[K], line: bytes) -> WatchLine[K]:
    try:
        event = _raw_event_decoder.decode(line)
        if event.type == ERROR:
            status = _error_decoder.decode(event.object)
            return WatchLine(ERROR, code=status.code, message=status.message or status.reason or "")
        if event.type == BOOKMARK:
            bookmark = _bookmark_decoder.decode(event.object)
            return WatchLine(BOOKMARK, resource_version=bookmark.metadata.resource_version)
    except _BAD_INPUT as error:
        return WatchLine(ERROR, message=f"watch line cannot be read: {_describe(error)}")
    if event.type not in _OBJECT_TYPES:
        return WatchLine(event.type)
    obj = decode_object(kind, event.object)
    version = obj.resource_version if isinstance(obj, Rejected) else obj.metadata.resource_version
    return WatchLine(event.type, obj, version)


class _Identity(NamedTuple):
    """What can be read of an object that cannot be understood."""

    meta: ObjectMeta = ObjectMeta()
    scheduler_name: str = ""
    node_name: str = ""


def _identity(data: bytes | msgspec.Raw) -> _Identity:
    """Read who the object is field by field, so that one bad field does not hide the others."""
    envelope = _read(data, _Envelope)
    names, places = _read(envelope.metadata, _Names), _read(envelope.spec, _Places)
    return _Identity(
        ObjectMeta(
            name=_text(names.name),
            namespace=_text(names.namespace),
            uid=_text(names.uid),
            resource_version=_text(names.resource_version),
        ),
        scheduler_name=_text(places.scheduler_name),
        node_name=_text(places.node_name),
    )


def _read(data: bytes | msgspec.Raw, part: type[S]) -> S:
    try:
        return msgspec.json.decode(data, type=part)
    except _BAD_INPUT:
        return part()


def _text(data: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(data, type=str)
    except _BAD_INPUT:
        return ""


def _rejected(kind: type[KubeObject], reason: str, identity: _Identity) -> Rejected:
    meta = identity.meta
    return Rejected(
        kind,
        meta.namespace,
        meta.name,
        meta.uid,
        meta.resource_version,
        reason[:_MAX_REASON_CHARS],
        scheduler_name=identity.scheduler_name,
        node_name=identity.node_name,
    )


def _describe(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
