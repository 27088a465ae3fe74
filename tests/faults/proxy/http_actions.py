"""HTTP actions: faults of one request and its answer.

Each turns the answer into another one; several that fit are applied in the order of their rules. One that keeps the
request from the server does so for all.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.proxy.http import Head
from tests.faults.proxy.rules import Action

__all__ = [
    "Answer",
    "DelayBody",
    "DelayRequest",
    "DropAnswer",
    "DropRequest",
    "GzipBomb",
    "HttpAction",
    "Oversize",
    "Reply",
    "Rewrite",
    "RewriteText",
    "Truncate",
    "WrongContentType",
]

JSON = "application/json"
_PIECE = bytes(64 * 1024)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the client gets.

    Attributes:
        head: its length and coding are set when it is sent.
        body: in pieces.
        length_bytes: None: in chunks.
        body_delay_s: between head and body.
        cut_at_bytes: the connection is closed after so much of the body.
        is_silent: it never comes, on a connection that stays.
    """

    head: Head
    body: Iterable[bytes] = ()
    length_bytes: int | None = None
    body_delay_s: float = 0.0
    cut_at_bytes: int | None = None
    is_silent: bool = False

    def with_body(self, body: bytes) -> Answer:
        return replace(self, body=(body,), length_bytes=len(body))


class HttpAction(Action):
    """A fault of a request or its answer."""

    @property
    def forwards(self) -> bool:
        """Tell whether the server gets the request."""
        return True

    @property
    def request_delay_s(self) -> float:
        """Return by how much the server gets the request later."""
        return 0.0

    def change(self, answer: Answer) -> Answer | None:
        """Return another answer; None: the connection is closed without one."""
        return answer


@dataclass(frozen=True, slots=True)
class Reply(HttpAction):
    """The proxy answers by itself; with ``is_forwarded`` the server has carried the request out nevertheless.

    Without a body it is a Status as the API server's. ``retry_after_s`` sets the Retry-After header.
    """

    status: int
    body: bytes | None = None
    reason: str = "InternalError"
    message: str = "made up by the fault proxy"
    retry_after_s: int | None = None
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    is_forwarded: bool = False

    @property
    def forwards(self) -> bool:
        return self.is_forwarded

    def change(self, answer: Answer) -> Answer:
        del answer
        fields = {"Content-Type": self.content_type, **self.headers}
        if self.retry_after_s is not None:
            fields["Retry-After"] = str(self.retry_after_s)
        body = self.body if self.body is not None else json.dumps(self._as_status()).encode()
        return Answer(Head(f"HTTP/1.1 {self.status} Fault", tuple(fields.items()))).with_body(body)

    def _as_status(self) -> Mapping[str, object]:
        status: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status |= {"message": self.message, "reason": self.reason, "code": self.status}
        if self.retry_after_s is not None:
            status["details"] = {"retryAfterSeconds": self.retry_after_s}
        return status


@dataclass(frozen=True, slots=True)
class DropRequest(HttpAction):
    """The request never reaches the server; the connection is closed, or with ``is_silent`` stays without an answer."""

    is_silent: bool = False

    @property
    def forwards(self) -> bool:
        return False

    def change(self, answer: Answer) -> Answer | None:
        return replace(answer, is_silent=True) if self.is_silent else None


@dataclass(frozen=True, slots=True)
class DropAnswer(HttpAction):
    """The server carries the request out, and its answer is swallowed; ``is_silent`` as for ``DropRequest``."""

    is_silent: bool = False

    def change(self, answer: Answer) -> Answer | None:
        return replace(answer, is_silent=True) if self.is_silent else None


@dataclass(frozen=True, slots=True)
class DelayRequest(HttpAction):
    """The server gets the request so much later, whether or not the client still waits."""

    delay_s: float

    @property
    def request_delay_s(self) -> float:
        return self.delay_s


@dataclass(frozen=True, slots=True)
class DelayBody(HttpAction):
    """The head of the answer comes at once, the body later."""

    delay_s: float

    def change(self, answer: Answer) -> Answer:
        return replace(answer, body_delay_s=answer.body_delay_s + self.delay_s)


@dataclass(frozen=True, slots=True)
class Truncate(HttpAction):
    """The head promises the whole body, and the connection is closed after so many bytes of it."""

    at_bytes: int

    def change(self, answer: Answer) -> Answer:
        return replace(answer, cut_at_bytes=self.at_bytes)


@dataclass(frozen=True, slots=True)
class WrongContentType(HttpAction):
    """The answer says that it is something else; with ``body`` it is."""

    content_type: str = "text/html"
    body: bytes | None = None

    def change(self, answer: Answer) -> Answer:
        answer = replace(answer, head=answer.head.with_field("Content-Type", self.content_type))
        return answer if self.body is None else answer.with_body(self.body)


@dataclass(frozen=True, slots=True)
class GzipBomb(HttpAction):
    """The body is compressed and becomes so large when unpacked."""

    unpacked_bytes: int

    def change(self, answer: Answer) -> Answer:
        packer = zlib.compressobj(9, wbits=31)
        packed = [packer.compress(piece) for piece in _filler(self.unpacked_bytes)]
        body = b"".join([*packed, packer.flush()])
        return replace(answer, head=answer.head.with_field("Content-Encoding", "gzip")).with_body(body)


@dataclass(frozen=True, slots=True)
class Oversize(HttpAction):
    """The body is followed by so much more; in chunks, so that its length is not known before."""

    more_bytes: int

    def change(self, answer: Answer) -> Answer:
        def pieces() -> Iterable[bytes]:
            yield from answer.body
            yield from _filler(self.more_bytes)

        return replace(answer, body=pieces(), length_bytes=None)


@dataclass(frozen=True, slots=True)
class Rewrite(HttpAction):
    """Objects are changed on their way to the client: in answers, in each item of lists, in each line of watches.

    ``edit`` gets the decoded object and returns what the client is to see instead.
    """

    edit: Callable[[Any], Any]

    def change(self, answer: Answer) -> Answer:
        document = json.loads(b"".join(answer.body))
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            # Items of a list do not say their kind; `edit` gets them as they are.
            document["items"] = [self.edit(item) for item in document["items"]]
        else:
            document = self.edit(document)
        return answer.with_body(json.dumps(document).encode())

    def __str__(self) -> str:
        return f"Rewrite({getattr(self.edit, '__name__', 'edit')})"


@dataclass(frozen=True, slots=True)
class RewriteText(HttpAction):
    """Bytes are replaced by others in answers and lines of watches: for what no JSON library would write."""

    old: bytes
    new: bytes

    def change(self, answer: Answer) -> Answer:
        return answer.with_body(b"".join(answer.body).replace(self.old, self.new))

    def __str__(self) -> str:
        return f"RewriteText({self.old[:40]!r}, {len(self.new)} bytes)"


def _filler(size: int) -> Iterable[bytes]:
    """Yield white space, which may stand around every JSON document."""
    blanks = _PIECE.replace(b"\0", b" ")
    for start in range(0, size, len(blanks)):
        yield blanks[: size - start]
