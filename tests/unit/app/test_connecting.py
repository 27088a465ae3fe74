"""The way to the API server: its own rate limit, and the lease's last word at the socket."""

import asyncio

import pytest
from aiohttp import web

from scheduler.app.connecting import connect_by_http
from scheduler.config.flags import complete, parse_flags
from scheduler.kube.credentials import FileCredentials
from scheduler.kube.errors import TransportError
from scheduler.kube.writes import WRITE_TIMEOUT_S
from scheduler.telemetry.metrics import Metrics
from tests.unit.kube.http_servers import serving


def test_the_lease_is_asked_at_the_socket():
    """For as long as a write may take; reading needs no lease."""
    asked = []

    async def handler(request):
        asked.append(request.method)
        return web.Response()

    def may_write(deadline_s):
        asked.append(deadline_s)
        return False

    async def go():
        async with serving(handler) as port:
            credentials = FileCredentials(f"http://127.0.0.1:{port}")
            transport = connect_by_http(complete(parse_flags([])), credentials, Metrics(), may_write)
            with pytest.raises(TransportError) as refused:
                await transport.request("PATCH", "/", body=b"{}", timeout_s=WRITE_TIMEOUT_S)
            await transport.request("GET", "/", timeout_s=WRITE_TIMEOUT_S)
            await transport.close()
            return refused.value.sent

    assert asyncio.run(go()) is False
    assert asked == [WRITE_TIMEOUT_S, "GET"]
