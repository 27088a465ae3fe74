"""Relay: one connection whose bytes mean nothing to the proxy."""

from __future__ import annotations

import asyncio
import socket

from tests.faults.proxy.interruption import before_reading, unless, unless_reset
from tests.faults.proxy.request import connection
from tests.faults.proxy.rules import RuleBook, Subject
from tests.faults.proxy.streams import Reader, connect, open_streams, reset_on_close
from tests.faults.proxy.wire import Wire

__all__ = ["Relay"]

_PIECE_BYTES = 64 * 1024


class Relay:
    """One accepted connection, and its counterpart to the server at ``host`` and ``port``."""

    def __init__(self, sock: socket.socket, book: RuleBook, host: str, port: int) -> None:
        self._sock = sock
        self._subject = Subject(book, connection())
        self._address = (host, port)

    async def serve(self) -> None:
        """Serve it to its end."""
        writers: list[asyncio.StreamWriter] = []
        server_sock: socket.socket | None = None
        try:
            await before_reading(self._subject, self._sock)
            server_sock = await connect(*self._address)
            client, to_client = await open_streams(self._sock, None, is_server=True)
            writers.append(to_client)
            server, to_server = await open_streams(server_sock, None, is_server=False)
            writers.append(to_server)
            down = Wire(to_client, self._get, is_to_client=True)
            await unless_reset(self._both_ways(client, server, Wire(to_server, self._get), down), self._get, self._sock)
        except OSError:
            reset_on_close(self._sock)
        finally:
            for writer in writers:
                writer.transport.abort()
            for sock in (self._sock, server_sock):
                if sock is not None:
                    sock.close()

    @staticmethod
    async def _both_ways(client: Reader, server: Reader, up: Wire, down: Wire) -> bool:
        await unless(_carry(client, up), _carry(server, down))
        return True

    def _get(self) -> Subject:
        return self._subject


async def _carry(reader: Reader, wire: Wire) -> None:
    while data := await reader.read(_PIECE_BYTES):
        await wire.send(data)
    await wire.close()
