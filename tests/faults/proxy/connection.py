"""Connection: one client's connection and its counterpart to the server, request after request."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.proxy.exchange import Exchange, Sides
from tests.faults.proxy.http import Head, ProtocolError, read_head, whole_body
from tests.faults.proxy.interruption import before_reading, unless, unless_reset
from tests.faults.proxy.request import connection, read_request
from tests.faults.proxy.rules import RuleBook, Subject
from tests.faults.proxy.streams import Reader, connect, open_streams, reset_on_close
from tests.faults.proxy.wire import Wire

__all__ = ["Connection", "Upstream"]


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where connections go on to.

    Attributes:
        host: of the server.
        port: of the server.
        identify: returns the client's name and the TLS context to speak to the server with, for its certificate (DER).
    """

    host: str
    port: int
    identify: Callable[[bytes | None], tuple[str, ssl.SSLContext]]


class Connection:
    """One accepted connection.

    Args:
        sock: accepted, not read from yet.
        book: the rules.
        upstream: the server.
        tls: of our own server side.
    """

    def __init__(self, sock: socket.socket, book: RuleBook, upstream: Upstream, tls: ssl.SSLContext) -> None:
        self._sock = sock
        self._book = book
        self._upstream = upstream
        self._tls = tls
        self._whole = self._current = Subject(book, connection())

    async def serve(self) -> None:
        """Serve it to its end."""
        server_sock: socket.socket | None = None
        try:
            await before_reading(self._whole, self._sock)
            # First of all, so that a server that is down looks so to the client.
            server_sock = await connect(self._upstream.host, self._upstream.port)
            await self._serve_tls(server_sock)
        except (OSError, ProtocolError):
            reset_on_close(self._sock)
        finally:
            for sock in (self._sock, server_sock):
                if sock is not None:
                    sock.close()

    async def _serve_tls(self, server_sock: socket.socket) -> None:
        client, to_client = await open_streams(self._sock, self._tls, is_server=True)
        try:
            certificate = to_client.get_extra_info("ssl_object").getpeercert(binary_form=True)
            name, tls = self._upstream.identify(certificate)
            self._whole = self._current = Subject(self._book, connection(name))
            server, to_server = await open_streams(server_sock, tls, is_server=False, server_name=self._upstream.host)
            try:
                await self._serve_requests(name, client, to_client, server, to_server)
            finally:
                to_server.transport.abort()
        finally:
            to_client.transport.abort()

    async def _serve_requests(
        self,
        name: str,
        client: Reader,
        to_client: asyncio.StreamWriter,
        server: Reader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        down, up = Wire(to_client, self._subject, is_to_client=True), Wire(to_server, self._subject)
        await unless_reset(self._requests(name, Sides(client, server, up, down)), self._subject, self._sock)
        to_server.transport.abort()
        await down.close()

    async def _requests(self, name: str, sides: Sides) -> bool:
        """Serve requests until one side closes, or an exchange leaves the connection useless."""
        is_kept: bool | None = True
        while is_kept:
            head = await unless(read_head(sides.client), sides.server.ended.wait())
            if head is None:
                break
            body = await whole_body(sides.client, head, is_answer=False)
            method, target, _ = head.first.split(" ", 2)
            request = read_request(name, method, target, head.get("User-Agent"))
            self._current = Subject(self._book, request, self._whole)
            is_kept = await unless(self._exchange(head, body, sides), self._until_gone(sides))
            if is_kept is None:
                raise ConnectionResetError("the client has gone")
            is_kept = is_kept and head.is_kept_alive
            if is_kept:
                self._current = self._whole
        return True

    async def _exchange(self, head: Head, body: bytes, sides: Sides) -> bool:
        seen = self._book.record.came(self._current.request, body)
        try:
            return await Exchange(self._current, sides, seen).run(head, body)
        finally:
            self._book.record.ended(seen)

    @staticmethod
    async def _until_gone(sides: Sides) -> None:
        """Wait until the client has closed; a black hole lets nobody know."""
        await sides.client.ended.wait()
        await sides.to_client.passable()

    def _subject(self) -> Subject:
        return self._current
