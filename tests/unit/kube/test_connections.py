"""Connections: which are used again, which never, and what a request is told when its own breaks."""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import struct
import threading
import time
from pathlib import Path

import pytest
import trustme
import uvloop

from scheduler.kube.client_tls import client_context
from scheduler.kube.connection import Endpoint, connect
from scheduler.kube.credentials import TlsMaterial
from scheduler.kube.errors import CredentialsError, TransportError
from scheduler.kube.http_transport import HttpTransport
from scheduler.kube.pool import KEEP_IDLE_S, Pool
from tests.unit.kube.http_servers import TIMEOUT_S, Identity, connected_to, raw_server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NOW_S = 100.0


class Talker:
    """A server that answers every request with ``answer``, and remembers who sent it what."""

    def __init__(self, answer=OK, *, closes=False):
        self.answer, self.closes = answer, closes
        self.connections, self.requests, self.ended = [], [], 0

    async def __call__(self, reader, writer):
        self.connections.append(writer)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests.append(len(self.connections))
                writer.write(self.answer)
                if self.closes:
                    writer.close()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended += 1

    @contextlib.asynccontextmanager
    async def connected(self, **kwargs):
        async with raw_server(self) as base, connected_to(base, **kwargs) as transport:
            yield transport


async def get(transport, timeout_s=TIMEOUT_S):
    return (await transport.request("GET", "/", timeout_s=timeout_s)).status


async def until(condition):
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110  a plain value of another task
            await asyncio.sleep(0.005)


def test_connection_is_kept_for_the_next_request(run):
    server = Talker()

    async def go():
        async with server.connected() as transport:
            return [await get(transport) for _ in range(3)]

    assert run(go()) == [200, 200, 200]
    assert server.requests == [1, 1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", id="it is announced"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", id="more than was asked for"
        ),
    ],
)
def test_connection_that_may_not_be_used_again_is_closed(run, answer):
    server = Talker(answer)

    async def go():
        async with server.connected() as transport:
            statuses = [await get(transport) for _ in range(2)]
            await until(lambda: server.ended == 2)
            return statuses

    assert run(go()) == [200, 200]
    assert server.requests == [1, 2]


def test_connection_that_the_server_closed_while_idle_costs_no_request(run):
    """As when the API server restarts or has had enough of waiting."""
    server = Talker(closes=True)

    async def go():
        async with server.connected() as transport:
            statuses = []
            for _ in range(3):
                statuses.append(await get(transport))
                await until(lambda: not transport._pool._idle)
            return statuses

    assert run(go()) == [200, 200, 200]
    assert server.requests == [1, 2, 3]


def test_answer_that_nobody_asked_for_is_given_to_nobody(run):
    """Otherwise the next request would take it for its own."""
    server = Talker()

    async def go():
        async with server.connected() as transport:
            await get(transport)
            server.connections[0].write(b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n")
            await until(lambda: server.ended == 1)
            return await get(transport)

    assert run(go()) == 200
    assert server.requests == [1, 2]


def test_connection_that_was_idle_for_long_is_not_used_again(run):
    """The server might close it just then, and nobody could tell whether the request was carried out."""
    server, clock = Talker(), [NOW_S]

    async def go():
        async with server.connected(monotonic=lambda: clock[0]) as transport:
            await get(transport)
            clock[0] += KEEP_IDLE_S + 1
            await get(transport)

    run(go())
    assert server.requests == [1, 2]


def test_request_that_is_given_up_takes_its_connection_with_it(run):
    """Its answer may still come, and must not be taken for that of another request."""
    server = Talker(b"")

    async def go():
        async with server.connected(pool_size=1) as transport:
            asking = asyncio.create_task(get(transport))
            await until(lambda: server.requests)
            asking.cancel()
            await until(lambda: server.ended == 1)
            server.answer = OK
            return asking.cancelled(), await get(transport)

    assert run(go()) == (True, 200)


def test_time_that_is_over_ends_the_connection(run):
    server = Talker(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")

    async def go():
        async with server.connected() as transport:
            with pytest.raises(TransportError, match="no answer in time") as caught:
                await get(transport, 0.1)
            await until(lambda: server.ended == 1)
            return caught.value.sent

    assert run(go())


def test_connection_that_breaks_under_a_reused_request_is_not_tried_again(run):
    """It may have been carried out; the caller reads back what became of it."""
    server = Talker()

    async def go():
        async with server.connected() as transport:
            await get(transport)
            server.answer, server.closes = b"", True
            with pytest.raises(TransportError) as caught:
                await get(transport)
            return caught.value.sent

    assert run(go())
    assert server.requests == [1, 1]


def test_requests_wait_for_a_place_in_the_order_of_coming(run):
    server, order = Talker(), []

    async def ask(transport, number):
        await get(transport)
        order.append(number)

    async def go():
        async with server.connected(pool_size=1) as transport:
            await asyncio.gather(*(ask(transport, number) for number in range(8)))

    run(go())
    assert order == list(range(8))
    assert len(server.connections) == 1


def test_place_that_nobody_wants_any_more_goes_to_the_next(run):
    """A waiting request is cancelled in the very moment in which its turn comes."""
    server = Talker()

    async def go():
        async with raw_server(server) as base:
            host, port = base.removeprefix("http://").split(":")
            pool = Pool(Endpoint(host, int(port)), 1, monotonic=lambda: NOW_S)
            held = await pool.take()
            second, third = asyncio.create_task(pool.take()), asyncio.create_task(pool.take())
            await asyncio.sleep(0)
            pool.put_back(held)
            second.cancel()
            async with asyncio.timeout(TIMEOUT_S):
                last = await third
            pool.put_back(last)
            pool.close()
            return second.cancelled(), last is held

    assert run(go()) == (True, True)


def test_half_closed_connection_still_gives_its_answer(run):
    """The server ends its side at once after the last byte, or to say where the answer ends."""

    async def go():
        answers = []
        for answer in (OK, b"HTTP/1.1 200 OK\r\n\r\nuntil the end"):
            async with Talker(answer, closes=True).connected() as transport:
                answers.append((await transport.request("GET", "/", timeout_s=TIMEOUT_S)).body)
        return answers

    assert run(go()) == [b"ok", b"until the end"]


def test_long_answer_comes_whole(run):
    body = bytes(range(256)) * 20_000
    server = Talker(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))

    async def go():
        async with server.connected() as transport:
            return (await transport.request("GET", "/", timeout_s=TIMEOUT_S)).body

    assert run(go()) == body


def test_stream_that_is_not_read_does_not_fill_the_memory(run):
    """The server is held up until we read on; nothing is lost."""
    chunk, count = b"x" * 65_536, 200
    written = []

    async def talk(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(count):
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            written.append(1)
        writer.write(b"0\r\n\r\n")

    async def go():
        async with (
            raw_server(talk) as base,
            connected_to(base) as transport,
            transport.stream("/", connect_timeout_s=TIMEOUT_S) as chunks,
        ):
            await asyncio.sleep(0.3)
            held_up, buffered = len(written) < count, chunks._body._num_bytes
            total = sum([len(piece) async for piece in chunks])
            return held_up, buffered < 3 << 20, total

    assert run(go()) == (True, True, len(chunk) * count)


def test_path_that_would_smuggle_a_header_is_not_sent(run):
    server = Talker()

    async def go():
        async with server.connected() as transport:
            with pytest.raises(TransportError, match="not a path") as caught:
                await transport.request("GET", "/\r\nX: y", timeout_s=TIMEOUT_S)
            return caught.value.sent

    assert not run(go())
    assert server.requests == []


def test_token_that_would_smuggle_a_header_is_not_sent(run):
    server = Talker()

    async def go():
        async with raw_server(server) as base, connected_to(base, "a\r\nX: y") as transport:
            with pytest.raises(CredentialsError, match="printable"):
                await get(transport)

    run(go())
    assert server.requests == []


@pytest.mark.parametrize(
    ("server", "line", "host"),
    [
        ("http://[::1]:1", "GET /api ", "[::1]:1"),
        ("http://127.0.0.1:1/base/", "GET /base/api ", "127.0.0.1:1"),
        ("http://user:secret@example.test", "GET /api ", "example.test"),
    ],
)
def test_request_goes_to_the_server_and_below_its_path(server, line, host):
    sent = HttpTransport(Identity(server))._request("GET", "/api", None, "").decode()
    assert sent.startswith(line)
    assert f"\r\nHost: {host}\r\n" in sent
    assert "secret" not in sent


@pytest.mark.parametrize(
    "server",
    [
        pytest.param("https://127.0.0.1:123456", id="a port that is none"),
        pytest.param("https://user:secret@exämple.test", id="a name that is not in ASCII"),
        pytest.param("https://example.test/pa th", id="a path that would end the request line"),
    ],
)
def test_address_that_cannot_be_asked_is_refused(server):
    """When the client is made, not by each request in its own way."""
    with pytest.raises(CredentialsError, match="address cannot be used") as refused:
        HttpTransport(Identity(server))
    assert "secret" not in str(refused.value)


class TestHandshake:
    """What happens before the first request cannot have carried it out."""

    @staticmethod
    async def failure_of(base, ca, **kwargs):
        tls = TlsMaterial(ca.cert_pem.bytes())
        transport = HttpTransport(Identity(base.replace("http:", "https:"), tls=tls), **kwargs)
        try:
            with pytest.raises(TransportError) as caught:
                await get(transport, 0.3)
        finally:
            await transport.close()
        return caught.value.sent, caught.value.refused

    def test_server_that_does_not_speak_tls(self, run):
        async def go():
            async with raw_server(Talker(closes=True)) as base:
                return await self.failure_of(base, trustme.CA())

        assert run(go()) == (False, False)

    def test_server_that_says_nothing(self, run):
        async def silent(reader, _):
            await reader.read()

        async def go():
            async with raw_server(silent) as base:
                return await self.failure_of(base, trustme.CA())

        assert run(go()) == (False, False)

    def test_certificate_for_another_name(self, run):
        ca = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("elsewhere.example").configure_cert(context)

        async def go():
            server = await asyncio.start_server(Talker(), "127.0.0.1", 0, ssl=context)
            async with server:
                return await self.failure_of(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", ca)

        assert run(go()) == (False, False)

    def test_encrypted_key_is_refused_without_a_question(self, run):
        """OpenSSL would ask for the password on the terminal."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        del run
        key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
        cert = trustme.CA().issue_cert("x.example").cert_chain_pems[0].bytes()
        with pytest.raises(CredentialsError, match="client certificate and key cannot be used"):
            HttpTransport(Identity("https://127.0.0.1:1", tls=TlsMaterial(client_pem=key + cert)))

    def test_ca_file_without_a_certificate_is_refused(self):
        with pytest.raises(CredentialsError, match="there is none in the CA file"):
            HttpTransport(Identity("https://127.0.0.1:1", tls=TlsMaterial(ca_pem=b"nothing")))


class Bystander:
    """A thread that opens and closes files all the time, and notices when somebody else has closed one of them."""

    def __init__(self):
        self.robbed = 0
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._is_stopping = True
        self._thread.join()

    def _run(self):
        mine = Path("/dev/zero").stat()
        while not self._is_stopping:
            descriptors = [os.open("/dev/zero", os.O_RDONLY) for _ in range(20)]
            time.sleep(0.0005)
            for descriptor in descriptors:
                try:
                    if os.path.samestat(os.fstat(descriptor), mine):
                        os.close(descriptor)
                        continue
                except OSError:
                    pass
                self.robbed += 1


@contextlib.contextmanager
def resetting_server():
    """Accept connections and reset them at once, as a server does that is killed; yields the port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(100)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    accepted, _ = listening.accept()
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    accepted.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_handshake_that_fails_closes_nothing_but_its_own_socket(new_loop):
    """A descriptor that is closed twice is somebody else's the second time."""

    async def fail(endpoint):
        for _ in range(60):
            with pytest.raises(OSError):
                await connect(endpoint)

    async def play(port):
        endpoint = Endpoint("127.0.0.1", port, ssl.create_default_context(), "server")
        await asyncio.gather(*(fail(endpoint) for _ in range(10)))

    with resetting_server() as port, Bystander() as bystander, asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play(port))
    assert bystander.robbed == 0


def test_a_client_key_without_a_descriptor_to_read_it_from_keeps_the_old_connections(monkeypatch):
    """OpenSSL takes keys from files; when the process has no descriptor left that is no error of its own kind."""

    def exhausted(*_arguments):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    leaf = trustme.CA().issue_cert("client")
    pem = leaf.private_key_pem.bytes() + leaf.cert_chain_pems[0].bytes()
    monkeypatch.setattr(os, "memfd_create", exhausted)
    with pytest.raises(CredentialsError, match="Too many open files"):
        client_context(TlsMaterial(client_pem=pem))
