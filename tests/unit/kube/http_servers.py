"""Servers on loopback for the tests of the HTTP client, from a web framework down to bare sockets."""

import asyncio
import contextlib
import socket

from aiohttp import web

from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.http_transport import HttpTransport

TIMEOUT_S = 5.0


class Identity:
    """Credentials whose token changes when it is renewed."""

    def __init__(self, server, *tokens, tls=TlsMaterial()):  # noqa: B008  frozen
        self.server, self.tokens, self.current_tls = server, list(tokens), tls
        self.renewed = self.rechecked = 0

    def tls(self):
        return self.current_tls

    def token(self):
        return self.tokens[0] if self.tokens else None

    def recheck(self):
        self.rechecked += 1

    async def renew(self):
        self.renewed += 1
        if len(self.tokens) > 1:
            self.tokens.pop(0)


@contextlib.asynccontextmanager
async def serving(handler, ssl_context=None):
    """Serve every path with ``handler`` on a free port and yield the port."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def raw_server(talk):
    """Serve connections with ``talk(reader, writer)`` below HTTP and yield the base URL."""
    writers = []

    async def connected(reader, writer):
        writers.append(writer)
        await talk(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        server.close()
        await server.wait_closed()


@contextlib.asynccontextmanager
async def connected_to(base, *tokens, **kwargs):
    transport = HttpTransport(Identity(base, *tokens), **kwargs)
    try:
        yield transport
    finally:
        await transport.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
