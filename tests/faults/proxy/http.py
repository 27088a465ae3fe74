"""HTTP/1.1 on the wire: heads, and bodies without their framing.

Only what API servers and their clients send: no trailers of interest, no upgrades, no pipelining.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

__all__ = ["LAST_CHUNK", "Head", "ProtocolError", "as_chunk", "body_pieces", "read_head", "whole_body"]

LAST_CHUNK = b"0\r\n\r\n"
_PIECE_BYTES = 64 * 1024
_BODILESS = (204, 304)


class ProtocolError(Exception):
    """A side does not speak HTTP/1.1 as we know it, or has gone away in the middle."""


@dataclass(frozen=True, slots=True)
class Head:
    """First line and fields of a request or an answer, in their order."""

    first: str
    fields: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.fields if key.lower() == name.lower()), default)

    def with_field(self, name: str, value: str | None) -> Head:
        """Return it with a field replaced, or removed for None."""
        fields = [(key, text) for key, text in self.fields if key.lower() != name.lower()]
        if value is not None:
            fields.append((name, value))
        return Head(self.first, tuple(fields))

    @property
    def status(self) -> int:
        """Return the status of an answer."""
        return int(self.first.split(" ", 2)[1])

    @property
    def is_chunked(self) -> bool:
        return "chunked" in self.get("Transfer-Encoding").lower()

    @property
    def is_kept_alive(self) -> bool:
        return "close" not in self.get("Connection").lower()

    def to_bytes(self) -> bytes:
        lines = [self.first, *(f"{name}: {value}" for name, value in self.fields)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def as_chunk(data: bytes) -> bytes:
    """Return data in the chunked coding; there is no chunk for no data, which would be the end."""
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Read a head; None if the peer has closed instead of beginning one.

    Raises:
        ProtocolError: see there.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ProtocolError("closed in the middle of a head") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise ProtocolError("a head without an end") from error
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    fields = [line.partition(":") for line in lines]
    return Head(first, tuple((name, value.strip()) for name, _, value in fields))


async def body_pieces(reader: asyncio.StreamReader, head: Head, *, is_answer: bool) -> AsyncIterator[bytes]:
    """Yield what follows a head, without its framing.

    Raises:
        ProtocolError: it is cut, or framed in a way that we do not know.
    """
    length = head.get("Content-Length")
    try:
        if head.is_chunked:
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
        elif length:
            left = int(length)
            while left:
                piece = await reader.readexactly(min(left, _PIECE_BYTES))
                left -= len(piece)
                yield piece
        elif is_answer and head.status not in _BODILESS:
            while piece := await reader.read(_PIECE_BYTES):
                yield piece
    except (asyncio.IncompleteReadError, ValueError) as error:
        raise ProtocolError(f"cut in the middle of a body: {error}") from error


async def whole_body(reader: asyncio.StreamReader, head: Head, *, is_answer: bool) -> bytes:
    """Return all of a body."""
    return b"".join([piece async for piece in body_pieces(reader, head, is_answer=is_answer)])
