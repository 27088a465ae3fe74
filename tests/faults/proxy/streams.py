"""Streams: sockets as asyncio readers and writers, with TLS or without, and readers that tell when the other side ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct

__all__ = ["Reader", "connect", "is_closed", "open_streams", "reset_on_close"]

_LIMIT_BYTES = 1 << 20
_SHUTDOWN_S = 1.0
_HANDSHAKE_S = 60.0


class Reader(asyncio.StreamReader):
    """A StreamReader that can be watched for the end without reading."""

    def __init__(self) -> None:
        super().__init__(limit=_LIMIT_BYTES)
        self.ended = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.ended.set()


async def connect(host: str, port: int) -> socket.socket:
    """Connect a socket.

    Raises:
        OSError: refused, or the like.
    """
    sock = socket.socket()
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
    except BaseException:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


async def open_streams(
    sock: socket.socket, tls: ssl.SSLContext | None, *, is_server: bool, server_name: str = ""
) -> tuple[Reader, asyncio.StreamWriter]:
    """Speak over a connected socket.

    Raises:
        OSError: the TLS handshake fails.
    """
    loop = asyncio.get_running_loop()
    reader = Reader()
    protocol = asyncio.StreamReaderProtocol(reader)
    handshake_s, shutdown_s = (_HANDSHAKE_S, _SHUTDOWN_S) if tls is not None else (None, None)
    if is_server:
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, sock, ssl=tls, ssl_handshake_timeout=handshake_s, ssl_shutdown_timeout=shutdown_s
        )
    else:
        transport, _ = await loop.create_connection(
            lambda: protocol,
            sock=sock,
            ssl=tls,
            server_hostname=server_name if tls is not None else None,
            ssl_handshake_timeout=handshake_s,
            ssl_shutdown_timeout=shutdown_s,
        )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def reset_on_close(sock: socket.socket) -> None:
    """Make the kernel send a reset when the socket is closed."""
    if sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def is_closed(sock: socket.socket) -> bool:
    """Tell whether the other side has closed a socket that nobody has read from yet."""
    try:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
