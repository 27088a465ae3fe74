"""Connections: how many there may be, who gives way, and what one may take before it has asked for anything.

    accepted ─▶ handshake ─▶ waiting ──request──▶ who? may they? ──▶ answer is made ──▶ sent ──▶ waiting
       │                                                               (safe)
       └── each of these may be closed for a newer connection, but for the safe ones

They are counted from the moment they are accepted, before any handshake. When there are too many, the one that has
been without a request that it may ask for longest is closed; a new one is refused only when all others are being
answered. So whoever opens connections and asks nothing, or asks and does not read, keeps nobody out: probes get theirs.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from scheduler.telemetry.logging import get_logger

__all__ = ["DEFAULT_LIMITS", "Connection", "Connections", "Limits"]

_BACKLOG = 128
_LINE_BYTES = 8190
_PAUSE_S = 0.5
_CLOSE_S = 1.0
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one caller, and all together, may take.

    Attributes:
        connections: open ones, those in their handshake included.
        header_bytes: all names and values of a request.
        body_bytes: of a request.
        read_s: for a handshake, for a request to arrive, for a pause between requests, and for an answer to be taken.
        answer_s: for making an answer.
        stop_s: for running answers when the server stops.
    """

    connections: int = 100
    header_bytes: int = 16 * 1024
    body_bytes: int = 1024 * 1024
    read_s: float = 10.0
    answer_s: float = 30.0
    stop_s: float = 5.0


DEFAULT_LIMITS: Final = Limits()


class Connection(RequestHandler):
    """One connection, from accepted to closed.

    Attributes:
        sock: its socket.
        since_s: when it was accepted, or has last been answered; by the loop's clock.
        is_safe: an answer that the caller may have is being made.
    """

    __slots__ = ("_head_bytes", "_limits", "_num_answered", "_on_lost", "is_safe", "since_s", "sock")

    def __init__(
        self, server: web.Server, sock: socket.socket, limits: Limits, on_lost: Callable[[Connection], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        settings: dict[str, Any] = {
            "access_log": None,
            "keepalive_timeout": limits.read_s,
            "lingering_time": 0,  # the handler reads what is left of a body
            "max_line_size": _LINE_BYTES,
            "max_field_size": limits.header_bytes,
        }
        super().__init__(server, loop=loop, **settings)
        self.sock = sock
        self.since_s = loop.time()
        self.is_safe = False
        self._limits = limits
        self._on_lost = on_lost
        self._head_bytes = 0
        self._num_answered = 0

    def answered(self) -> None:
        """Note that a request has had its answer."""
        self._num_answered += 1
        self._head_bytes = 0
        self.since_s = self._loop.time()

    def data_received(self, data: bytes) -> None:
        """Take what has come; more than the head of a request, and still no request, ends the connection."""
        if self._request_count > self._num_answered:
            self._head_bytes = 0
        elif self._head_bytes > self._limits.header_bytes + _LINE_BYTES:
            self.end()
            return
        else:
            self._head_bytes += len(data)
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Leave the place to others."""
        self._on_lost(self)
        super().connection_lost(exc)

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what is not HTTP: nothing of it is repeated, neither to the caller nor, as an error, in the log."""
        del message
        if status < 500:
            _log.debug("request could not be read", peer=request.remote, err=exc)
        else:
            _log.error("request could not be answered", path=request.path, exc_info=exc)
        answer = web.Response(text=f"{status} bad request\n" if status < 500 else f"{status} internal error\n")
        answer.set_status(status)
        answer.headers["Server"] = "podium"
        answer.force_close()
        return answer

    def end(self) -> None:
        """Close it at once, whatever it is doing."""
        if self.transport is not None:
            self.transport.abort()
        else:  # in its handshake, which ends with the socket
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


class Connections:
    """All connections of one listening socket.

    Args:
        handler: deals with a request, and calls ``answered`` of its connection in the end.
        context: TLS.
        limits: how many, how long, how much.
    """

    def __init__(
        self, handler: Callable[[BaseRequest], Awaitable[web.StreamResponse]], context: ssl.SSLContext, limits: Limits
    ) -> None:
        self._server = web.Server(handler)
        self._context = context
        self._limits = limits
        self._open: set[Connection] = set()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        self._is_stopping = False

    @property
    def port(self) -> int:
        """Return the port that is listened on; 0 when none is."""
        return int(self._socket.getsockname()[1]) if self._socket is not None else 0

    def start(self, sock: socket.socket) -> None:
        """Accept connections of a bound socket, which is ours from now on.

        Raises:
            OSError: it cannot be listened on.
        """
        sock.setblocking(False)
        sock.listen(_BACKLOG)
        self._socket = sock
        self._accepting = asyncio.create_task(self._accept(sock))

    async def stop(self) -> None:
        """Listen no more, let running answers end within the limit, then close everything."""
        self._is_stopping = True
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        for connection in [each for each in self._open if each.transport is None]:
            connection.end()
        self._server.pre_shutdown()
        await self._server.shutdown(self._limits.stop_s)
        await asyncio.gather(*self._handshakes)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listening)
            except OSError as error:  # too many open files, or gone before it was accepted
                _log.warning("a connection was not accepted", err=str(error))
                await asyncio.sleep(_PAUSE_S)
                continue
            if not self._make_room():
                sock.close()
                continue
            connection = Connection(self._server, sock, self._limits, self._open.discard)
            self._open.add(connection)
            task = asyncio.create_task(self._shake_hands(connection))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def _make_room(self) -> bool:
        """Say whether one more may come; closes the one that gives way."""
        if len(self._open) < self._limits.connections:
            return True
        waiting = [connection for connection in self._open if not connection.is_safe]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda connection: connection.since_s)
        self._open.discard(oldest)
        oldest.end()
        return True

    async def _shake_hands(self, connection: Connection) -> None:
        settings: dict[str, Any] = {
            "ssl": self._context,
            "ssl_handshake_timeout": self._limits.read_s,
            "ssl_shutdown_timeout": _CLOSE_S,
        }
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: connection, connection.sock, **settings)
        except OSError as error:  # also ssl.SSLError, and the time limit
            self._open.discard(connection)
            _log.debug("TLS handshake failed", err=str(error))
            return
        if self._is_stopping:
            connection.end()
