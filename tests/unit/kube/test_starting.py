"""A 403 of a server that has not read its RBAC rules yet is no refusal."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from scheduler.kube.errors import ApiError, TransportError
from scheduler.kube.starting import DOUBT_S, STARTING, PatientTransport
from scheduler.kube.transport import JSON, Response


class Server:
    """Answers what it is told; counts the questions about readiness."""

    def __init__(self, *, ready: bool, status: int = 403) -> None:
        self.ready, self.status, self.asked = ready, status, 0
        self.now_s = 0.0
        self.is_lost = False

    async def request(self, method, path, *, body=None, content_type="", accept=JSON, timeout_s):
        if self.is_lost:
            raise TransportError("refused", sent=False, refused=True)
        if path == "/readyz":
            self.asked += 1
            await asyncio.sleep(0)
            return Response(200 if self.ready else 500, {}, b"")
        return Response(self.status, {}, b"")

    @asynccontextmanager
    async def stream(self, path, *, connect_timeout_s):
        if self.status != 200:
            raise ApiError(self.status)
        yield None

    async def close(self):
        return None


def ask(server, *, after_s=0.0, count=1):
    """Return the statuses of ``count`` requests at once, ``after_s`` after the start."""

    async def run():
        transport = PatientTransport(server, monotonic=lambda: server.now_s)
        server.now_s = after_s
        answers = await asyncio.gather(*(transport.request("GET", "/x", timeout_s=1.0) for _ in range(count)))
        return [answer.status for answer in answers]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("server", "after_s", "status"),
    [
        pytest.param(Server(ready=False), 0.0, 503, id="a starting server's 403 is an unavailability"),
        pytest.param(Server(ready=True), 0.0, 403, id="a ready server's 403 is a refusal"),
        pytest.param(Server(ready=False), DOUBT_S, 403, id="a server that has long been there is believed"),
        pytest.param(Server(ready=False, status=409), 0.0, 409, id="other answers are handed on"),
    ],
)
def test_refusals_are_believed_only_from_a_ready_server(server, after_s, status):
    """Only a 403, and only while there is doubt, is checked."""
    assert ask(server, after_s=after_s) == [status]


def test_many_refusals_ask_once():
    """64 binds that are refused together cost one question."""
    server = Server(ready=False)
    assert ask(server, count=64) == [503] * 64
    assert server.asked == 1


def test_lost_connection_brings_the_doubt_back():
    """An hour later the server restarts: again its first 403 is not believed."""

    async def run():
        server = Server(ready=False)
        transport = PatientTransport(server, monotonic=lambda: server.now_s)
        server.now_s = 3600.0
        assert (await transport.request("GET", "/x", timeout_s=1.0)).status == 403
        server.is_lost = True
        with pytest.raises(TransportError):
            await transport.request("GET", "/x", timeout_s=1.0)
        server.is_lost = False
        assert (await transport.request("GET", "/x", timeout_s=1.0)).status == 503

    asyncio.run(run())


def test_streams_are_treated_alike():
    """A watch that a starting server refuses is to be tried again soon."""

    async def run():
        server = Server(ready=False)
        transport = PatientTransport(server, monotonic=lambda: server.now_s)
        with pytest.raises(ApiError) as caught:
            async with transport.stream("/x", connect_timeout_s=1.0):
                pass
        assert (caught.value.status, caught.value.message, caught.value.retry_after_s) == (503, STARTING, 1.0)
        server.ready = True
        transport = PatientTransport(server, monotonic=lambda: server.now_s)
        with pytest.raises(ApiError) as caught:
            async with transport.stream("/x", connect_timeout_s=1.0):
                pass
        assert caught.value.status == 403

    asyncio.run(run())
