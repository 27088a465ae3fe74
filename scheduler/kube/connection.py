"""Connection: one TCP or TLS connection to the API server, one request at a time.

    connecting ─▶ idle ◀──answer complete, may be reused── busy ─▶ lost (closed, cut, silent for too long, nonsense)
                    └────────────────request──────────────▶┘

Whoever asked gets either the whole answer or ``ConnectionBrokenError``; once the request has been written, nobody can
tell whether it was carried out, and the error does not pretend to.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from scheduler.failpoints import failpoint
from scheduler.kube.http1 import HttpSyntaxError, ResponseParser
from scheduler.kube.transport import Response

__all__ = ["CONNECT_TIMEOUT_S", "BodyStream", "Connection", "ConnectionBrokenError", "Endpoint", "connect"]

CONNECT_TIMEOUT_S = 2.0
"""Connecting has its own, shorter time limit, so that a dead address is recognised as such."""

_DEAD_PEER_S = 30
_MAX_BUFFERED_BYTES = 1 << 20


class ConnectionBrokenError(Exception):
    """There will be no (complete) answer; the text says why."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect to.

    Attributes:
        host: name or address.
        port: TCP port.
        tls: None: plain HTTP.
        server_name: name expected in the server's certificate.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str = ""


class _Receiver(Protocol):
    """Takes one answer."""

    def head(self, parser: ResponseParser) -> None:
        """The status line and the headers are there."""

    def piece(self, data: bytes) -> None:
        """A part of the body is there."""

    def complete(self) -> None:
        """The answer is whole."""

    def broken(self, why: str) -> None:
        """There will be no more."""


class Connection(asyncio.Protocol):
    """See the module. All methods belong to one event loop."""

    def __init__(self) -> None:
        self.idle_since_s = 0.0
        """When the last answer was complete; the pool's business."""
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        self._receiver: _Receiver | None = None
        self._on_lost: Callable[[Connection], None] | None = None

    @property
    def is_idle(self) -> bool:
        """Say whether a request may be sent."""
        return self._transport is not None and self._receiver is None and not self._transport.is_closing()

    def request(self, data: bytes) -> asyncio.Future[Response]:
        """Send a request on an idle connection and return its answer to come.

        The future ends with ConnectionBrokenError if there is none. Cancelling it closes the connection.
        """
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._send(data, _WholeAnswer(answer))
        return answer

    def open(self, data: bytes) -> BodyStream:
        """Send a request on an idle connection and return its answer piece by piece."""
        stream = BodyStream(self)
        self._send(data, stream)
        return stream

    def give_up(self, why: str) -> None:
        """Close at once; whoever waits for an answer is told why there is none."""
        transport, receiver = self._transport, self._receiver
        self._receiver = self._parser = None
        if transport is not None:
            transport.abort()
        if receiver is not None:
            receiver.broken(why)

    def when_lost(self, callback: Callable[[Connection], None]) -> None:
        """Have ``callback`` called when the connection is gone."""
        self._on_lost = callback

    def pause(self, *, is_paused: bool) -> None:
        """Stop or go on reading, for a reader that cannot keep up."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if is_paused:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _send(self, data: bytes, receiver: _Receiver) -> None:
        assert self._transport is not None
        assert self._receiver is None
        self._parser, self._receiver = ResponseParser(), receiver
        self._transport.write(data)
        failpoint("request.sent", data)

    # --- asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        parser, receiver = self._parser, self._receiver
        if parser is None or receiver is None:
            self.give_up("")  # nobody asked; such a connection cannot be trusted
            return
        has_head = parser.status != 0
        try:
            piece = parser.feed(data)
        except HttpSyntaxError as error:
            self.give_up(str(error))
            return
        if not has_head and parser.status:
            receiver.head(parser)
        if piece:
            receiver.piece(piece)
        if parser.is_complete:
            self._end(parser, receiver)

    def eof_received(self) -> None:
        """The server has closed its side; what it sent until then may still be a whole answer."""
        if self._parser is None or self._receiver is None:
            return  # closing an idle connection is the server's right
        try:
            self._parser.end()
        except HttpSyntaxError as error:
            self.give_up(str(error))
        else:
            self._end(self._parser, self._receiver)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._receiver is not None and exc is None:
            self.eof_received()  # TLS connections end without a word of their own
        else:
            self.give_up(f"the connection was lost: {exc}")
        self._transport = None
        if self._on_lost is not None:
            self._on_lost(self)

    def _end(self, parser: ResponseParser, receiver: _Receiver) -> None:
        self._parser = self._receiver = None
        if not parser.is_reusable and self._transport is not None:
            self._transport.close()
        receiver.complete()


class _WholeAnswer:
    """Collects an answer for a future."""

    __slots__ = ("_answer", "_parser", "_pieces")

    def __init__(self, answer: asyncio.Future[Response]) -> None:
        self._answer = answer
        self._pieces: list[bytes] = []
        self._parser: ResponseParser | None = None

    def head(self, parser: ResponseParser) -> None:
        self._parser = parser

    def piece(self, data: bytes) -> None:
        self._pieces.append(data)

    def complete(self) -> None:
        parser, pieces = self._parser, self._pieces
        assert parser is not None
        if not self._answer.done():
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            self._answer.set_result(Response(parser.status, parser.headers, body))

    def broken(self, why: str) -> None:
        if not self._answer.done():
            self._answer.set_exception(ConnectionBrokenError(why))


class BodyStream:
    """The answer to one request as it comes; iterating ends with the answer.

    All that has come is handed out at once. A reader that cannot keep up stops the server after a mebibyte.
    """

    __slots__ = ("_connection", "_is_complete", "_is_paused", "_news", "_num_bytes", "_parser", "_pieces", "_why")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parser: ResponseParser | None = None
        self._pieces: list[bytes] = []
        self._num_bytes = 0
        self._is_complete = False
        self._is_paused = False
        self._why: str | None = None
        self._news: asyncio.Future[None] | None = None

    async def answered(self) -> ResponseParser:
        """Wait for status and headers.

        Raises:
            ConnectionBrokenError: they do not come.
        """
        while self._parser is None:
            self._raise_if_broken()
            await self._wait()
        return self._parser

    def __aiter__(self) -> BodyStream:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            self._raise_if_broken()
            if self._is_complete:
                raise StopAsyncIteration
            await self._wait()
        pieces, self._pieces, self._num_bytes = self._pieces, [], 0
        if self._is_paused:
            self._is_paused = False
            self._connection.pause(is_paused=False)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close the connection."""
        self._connection.give_up("closed by us")

    def head(self, parser: ResponseParser) -> None:
        self._parser = parser
        self._wake()

    def piece(self, data: bytes) -> None:
        self._pieces.append(data)
        self._num_bytes += len(data)
        if self._num_bytes > _MAX_BUFFERED_BYTES and not self._is_paused:
            self._is_paused = True
            self._connection.pause(is_paused=True)
        self._wake()

    def complete(self) -> None:
        self._is_complete = True
        self._wake()

    def broken(self, why: str) -> None:
        self._why = why
        self._wake()

    def _raise_if_broken(self) -> None:
        if self._why is not None:
            raise ConnectionBrokenError(self._why)

    async def _wait(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


async def connect(endpoint: Endpoint) -> Connection:
    """Connect to the first address that answers.

    Raises:
        OSError: none does, or the TLS handshake fails; ConnectionRefusedError only if every address refused.
        UnicodeError: the host is not a name.
    """
    loop = asyncio.get_running_loop()
    server_name = (endpoint.server_name or endpoint.host) if endpoint.tls is not None else None
    failures: list[OSError] = []
    for family, *_, address in await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM):
        host, port = str(address[0]), int(address[1])
        try:
            # The loop must make the socket: uvloop closes one that it was given twice when the TLS handshake fails, and
            # the second time the descriptor may be another connection's.
            transport, connection = await loop.create_connection(
                Connection, host, port, family=family, ssl=endpoint.tls, server_hostname=server_name
            )
        except OSError as error:
            # Its traceback holds a frame of asyncio which holds the error: garbage that waits for a collection.
            failures.append(error.with_traceback(None))
        else:
            _detect_dead_peers(transport.get_extra_info("socket"))
            return connection
    try:
        raise next((error for error in failures if not isinstance(error, ConnectionRefusedError)), failures[0])
    finally:
        del failures  # for the same reason: the error's new traceback holds this frame


def _detect_dead_peers(sock: socket.socket) -> None:
    """Let the kernel find out that a peer is gone, where it can be told when."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": _DEAD_PEER_S // 2,
        "TCP_KEEPINTVL": _DEAD_PEER_S // 6,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": _DEAD_PEER_S * 1000,
    }
    for name, value in options.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
