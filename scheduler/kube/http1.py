"""HTTP/1.1 as bytes: what a request looks like, and the parser of its answer. No I/O.

The parser is strict where leniency would let two sides disagree about where an answer ends (RFC 9112, sections 6 and
7): lengths are digits, ``Transfer-Encoding`` is ``chunked`` or nothing, and a connection on which anything looked odd
is not used again.

    HEAD ──▶ LENGTH ───────────────────────────────▶ COMPLETE
      │ ├──▶ CHUNK_SIZE ─▶ CHUNK_DATA ─▶ CHUNK_END      ▲
      │ │      ▲   └─ size 0 ─▶ TRAILERS ──┼────────────┤
      │ │      └───────────────────────────┘            │
      │ └──▶ UNTIL_CLOSE ──────── end of stream ────────┤
      └────── no body (204, 304) ───────────────────────┘
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["HttpSyntaxError", "ResponseParser", "is_request_target", "request_bytes"]

MAX_HEAD_BYTES = 64 * 1024
_MAX_SIZE_LINE_BYTES = 1024
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_BODILESS = frozenset({204, 304})


class HttpSyntaxError(ValueError):
    """The peer does not speak HTTP/1.1, or not as we understand it; the text says what is wrong."""


# Plain numbers, not an enumeration: they are compared many times for each answer.
_HEAD: Final = 0
_LENGTH: Final = 1
_CHUNK_SIZE: Final = 2
_CHUNK_DATA: Final = 3
_CHUNK_END: Final = 4
_TRAILERS: Final = 5
_UNTIL_CLOSE: Final = 6
_COMPLETE: Final = 7


def is_request_target(path: str) -> bool:
    """Say whether ``path`` can stand in a request line: printable ASCII without spaces, so nothing can be added."""
    return path.isascii() and path.isprintable() and " " not in path


def request_bytes(method: str, target: str, fields: str, body: bytes | None, content_type: str) -> bytes:
    """Return a whole request.

    Args:
        method: in capitals.
        target: path and query; see ``is_request_target``.
        fields: header lines that are the same for many requests, each with its line end.
        body: or None.
        content_type: of the body.
    """
    if body is None:
        length = "" if method == "GET" else "Content-Length: 0\r\n"
        return f"{method} {target} HTTP/1.1\r\n{fields}{length}\r\n".encode("ascii")
    head = f"{method} {target} HTTP/1.1\r\n{fields}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


class ResponseParser:
    """Parses the answer to one request other than HEAD.

    Attributes:
        status: 0 until the head has come; interim answers (1xx) are skipped.
        headers: names in lower case, of repeated ones the first value.
        is_complete: the whole answer has come.
        is_reusable: the connection may carry another request once the answer is complete.
    """

    __slots__ = ("_kept", "_left", "_state", "_trailer_bytes", "headers", "is_complete", "is_reusable", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_complete = False
        self.is_reusable = False
        self._state = _HEAD
        self._kept = b""
        self._left = 0
        self._trailer_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """Take what came and return what of it belongs to the body.

        Raises:
            HttpSyntaxError: see there; the connection is of no use any more.
        """
        if self._kept:
            data, self._kept = self._kept + data, b""
        if self._state == _HEAD:
            data = self._take_head(data)
        if self._state == _LENGTH:
            return self._take_length(data)
        if self._state == _UNTIL_CLOSE or not data:
            return data
        if self._state == _COMPLETE:
            self.is_reusable = False  # nobody asked for what came behind the answer
            return b""
        return b"" if self._state == _HEAD else self._take_chunks(data)

    def end(self) -> None:
        """Note that the peer has closed its side; completes an answer that says nothing about its length.

        Raises:
            HttpSyntaxError: the answer is cut.
        """
        if self._state == _UNTIL_CLOSE:
            self._complete()
        if not self.is_complete:
            raise HttpSyntaxError("closed in the middle of the answer" if self.status else "closed without an answer")

    # --- head --------------------------------------------------------------------------------------------------------

    def _take_head(self, data: bytes) -> bytes:
        """Parse the head and return what is behind it; without a whole head everything is kept."""
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0 or end > MAX_HEAD_BYTES:
                if len(data) > MAX_HEAD_BYTES:
                    raise HttpSyntaxError(f"a head of more than {MAX_HEAD_BYTES} bytes")
                self._kept = data
                return b""
            lines = data[:end].decode("latin-1").split("\r\n")
            data = data[end + 4 :]
            line = _STATUS_LINE.fullmatch(lines[0])
            if line is None:
                raise HttpSyntaxError(f"not an HTTP/1.1 answer: {lines[0][:40]!r}")
            version, status = line.groups()
            if status[0] != "1":
                self.status = int(status)
                self._begin_body(self.status, _fields(lines), is_1_1=version == "1")
                return data
            if status == "101":
                raise HttpSyntaxError("the server switched protocols unasked")

    def _begin_body(self, status: int, headers: dict[str, str], *, is_1_1: bool) -> None:
        self.headers = headers
        self.is_reusable = is_1_1 and "close" not in headers.get("connection", "").lower()
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if status in _BODILESS:
            self._complete()
        elif coding is not None:
            if coding.lower() != "chunked":
                raise HttpSyntaxError(f"unknown transfer coding {coding[:40]!r}")
            if length is not None:
                self.is_reusable = False
            self._state = _CHUNK_SIZE
        elif length is not None:
            self._begin_length(length)
        else:
            self.is_reusable = False
            self._state = _UNTIL_CLOSE

    def _begin_length(self, length: str) -> None:
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            raise HttpSyntaxError(f"not a length: {length[:40]!r}")
        self._left = int(length)
        self._state = _LENGTH
        if not self._left:
            self._complete()

    # --- body --------------------------------------------------------------------------------------------------------

    def _take_length(self, data: bytes) -> bytes:
        if len(data) > self._left:
            data = data[: self._left]
            self.is_reusable = False
        self._left -= len(data)
        if not self._left:
            self._complete()
        return data

    def _take_chunks(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        at, size = 0, len(data)
        while at < size and self._state != _COMPLETE:
            if self._state == _CHUNK_DATA:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = _CHUNK_END
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._keep(data[at:])
                return b"".join(pieces)
            self._take_line(data[at:end])
            at = end + 2
        if at < size:
            self.is_reusable = False
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _keep(self, part: bytes) -> None:
        if len(part) > _MAX_SIZE_LINE_BYTES:
            raise HttpSyntaxError("a chunk without a size")
        self._kept = part

    def _take_line(self, line: bytes) -> None:
        """Take a line between two chunks: the end of one, the size of the next, or a trailer."""
        if self._state == _CHUNK_END:
            if line:
                raise HttpSyntaxError("a chunk is longer than its size")
            self._state = _CHUNK_SIZE
        elif self._state == _CHUNK_SIZE:
            match = _SIZE_LINE.fullmatch(line)
            if match is None:
                raise HttpSyntaxError(f"not the size of a chunk: {line[:40]!r}")
            self._left = int(match[1], 16)
            self._state = _CHUNK_DATA if self._left else _TRAILERS
        elif not line:
            self._complete()
        else:
            self._trailer_bytes += len(line)
            if self._trailer_bytes > MAX_HEAD_BYTES:
                raise HttpSyntaxError(f"trailers of more than {MAX_HEAD_BYTES} bytes")

    def _complete(self) -> None:
        self._state = _COMPLETE
        self.is_complete = True


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the header fields; the first line is the status line."""
    fields: dict[str, str] = {}
    del lines[0]
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name[-1] in " \t" or name[0] in " \t":
            raise HttpSyntaxError(f"not a header: {line[:40]!r}")
        name = name.lower()
        if name in fields:
            _check_repeated(name, fields[name], value.strip(" \t"))
        else:
            fields[name] = value.strip(" \t")
    return fields


def _check_repeated(name: str, first: str, again: str) -> None:
    """Of repeated fields the first counts, unless they are about where the answer ends."""
    if name in {"content-length", "transfer-encoding"} and first != again:
        raise HttpSyntaxError(f"two different values of {name}")
