"""The HTTP client against real sockets on loopback: what it says about requests that failed, and about time.

The one place where unit tests open sockets: which failures mean "not sent" is seen in earnest only there. Every test
runs on both loops, because they end connections in different ways.
"""

import asyncio
import contextlib
import gc
import ssl
from collections import Counter

import pytest
import trustme
from aiohttp import web

from scheduler.kube.credentials import FileContent, FileCredentials, TlsMaterial
from scheduler.kube.errors import ApiError, CredentialsError, TransportError
from scheduler.kube.http_transport import USER_AGENT, HttpTransport
from scheduler.kube.rate_limit import TokenBucket
from tests.unit.kube.http_servers import (
    TIMEOUT_S,
    Identity,
    connected_to,
    free_port,
    raw_server,
    serving,
)


def test_request_carries_what_was_asked(run):
    """Method, path, body, headers; nothing that we did not ask for."""
    seen, observed = [], []

    async def handler(request):
        seen.append((request.method, request.path_qs, await request.read(), request.headers))
        return web.json_response({"kind": "Status"}, status=201, headers={"X-Test": "1"})

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}", "tok") as transport:
            transport._observe = lambda *args, **more: observed.append((*args, more))
            return port, await transport.request(
                "PATCH", "/a/b?c=d%20e", body=b"{}", content_type="application/x", timeout_s=TIMEOUT_S
            )

    port, response = run(go())
    method, path, body, headers = seen[0]
    assert (method, path, body) == ("PATCH", "/a/b?c=d%20e", b"{}")
    assert headers["Authorization"] == "Bearer tok"
    assert headers["Content-Type"] == "application/x"
    assert headers["Accept"] == "application/json"
    assert headers["User-Agent"] == USER_AGENT
    assert "Accept-Encoding" not in headers
    assert response.status == 201
    assert response.headers["x-test"] == "1"
    assert response.body == b'{"kind": "Status"}'
    assert observed[0][:3] == ("PATCH", f"127.0.0.1:{port}", "201")
    assert 0.0 < observed[0][3] < TIMEOUT_S
    assert observed[0][4] == {"waited_s": 0.0, "sent_bytes": 2, "received_bytes": len(response.body)}


def test_request_says_what_it_accepts(run):
    """Once: the next request is an ordinary one again."""
    seen = []

    async def handler(request):
        seen.append(request.headers.getall("Accept"))
        return web.Response()

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}", "tok") as transport:
            await transport.request("GET", "/", accept="application/json;as=List, */*", timeout_s=TIMEOUT_S)
            await transport.request("GET", "/", timeout_s=TIMEOUT_S)

    run(go())
    assert seen == [["application/json;as=List, */*"], ["application/json"]]


def test_failures_and_redirects_are_answers(run):
    """A status is a value; nothing is followed, nothing is raised."""

    async def handler(request):
        raise web.HTTPFound("http://127.0.0.1:1/") if request.path == "/r" else web.HTTPConflict

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}") as transport:
            return [(await transport.request("GET", path, timeout_s=TIMEOUT_S)).status for path in ("/r", "/c")]

    assert run(go()) == [302, 409]


async def failure_of(base, timeout_s=0.3, **kwargs):
    observed = []
    async with connected_to(base, observe=lambda *args, **more: observed.append(args[2]), **kwargs) as transport:
        with pytest.raises(TransportError) as caught:
            await transport.request("POST", "/x", body=b"{}", timeout_s=timeout_s)
    assert observed == ["<error>"]
    return caught.value


def test_cancellation_is_never_lost(run):
    """Whenever it comes: also in the moment of the answer."""

    async def answer(request):
        return web.Response(text="ok")

    async def scenario():
        outcomes = []
        async with serving(answer) as port, connected_to(f"http://127.0.0.1:{port}") as transport:
            for i in range(200):
                task = asyncio.create_task(transport.request("GET", "/", timeout_s=TIMEOUT_S))
                await asyncio.sleep(i % 30 * 0.0001)
                is_too_late = not task.cancel()
                await asyncio.wait([task])
                outcomes.append(is_too_late or task.cancelled())
            await asyncio.sleep(0.2)  # the server notices connections that ended with their requests
        return outcomes

    outcomes = run(scenario())

    assert all(outcomes), f"{outcomes.count(False)} cancellations were lost"


def test_refused_connection_was_not_sent(run):
    """Nothing listens."""
    error = run(failure_of(f"http://127.0.0.1:{free_port()}"))
    assert (error.sent, error.refused) == (False, True)


def test_unknown_host_was_not_sent(run):
    """The name cannot be resolved."""
    error = run(failure_of("http://podium.invalid"))
    assert (error.sent, error.refused) == (False, False)


async def read_and(reader, writer, answer):
    await reader.readuntil(b"\r\n\r\n")
    if answer is not None:
        writer.write(answer)
        writer.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="silence until the time-out"),
        pytest.param(b"", id="closed without an answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", id="cut in the body"),
        pytest.param(b"nonsense\r\n\r\n", id="not HTTP"),
    ],
)
def test_request_without_an_answer_may_have_been_carried_out(answer, run):
    """Whatever the library calls the error."""

    async def go():
        async with raw_server(lambda reader, writer: read_and(reader, writer, answer)) as base:
            return await failure_of(base)

    error = run(go())
    assert (error.sent, error.refused) == (True, False)


def test_full_pool_was_not_sent(run):
    """A request that waited for a connection until its time was over never left."""

    async def go():
        async with (
            raw_server(lambda reader, writer: read_and(reader, writer, None)) as base,
            connected_to(base, pool_size=1) as transport,
        ):
            first = asyncio.create_task(transport.request("GET", "/1", timeout_s=0.5))
            await asyncio.sleep(0.05)
            with pytest.raises(TransportError) as waiting:
                await transport.request("GET", "/2", timeout_s=0.1)
            with pytest.raises(TransportError) as sent:
                await first
            return waiting.value.sent, sent.value.sent

    assert run(go()) == (False, True)


def test_connection_that_comes_too_late_is_kept_for_the_next_request(run):
    """A request whose time is over is not handed to it, or nobody could tell what became of it."""
    asked, now_s = [], [0.0]

    async def handler(request):
        asked.append(request.path)
        return web.Response()

    async def go():
        async with (
            serving(handler) as port,
            connected_to(f"http://127.0.0.1:{port}", monotonic=lambda: now_s[0]) as transport,
        ):
            take = transport._pool.take

            async def take_long():
                connection = await take()
                now_s[0] += TIMEOUT_S
                return connection

            transport._pool.take = take_long
            with pytest.raises(TransportError, match="no connection in time") as late:
                await transport.request("POST", "/late", timeout_s=TIMEOUT_S)
            await transport.request("POST", "/next", timeout_s=TIMEOUT_S)
            return late.value.sent

    assert run(go()) is False
    assert asked == ["/next"]


def test_lease_that_ends_while_a_change_waits_for_its_connection(run):
    """The change is not sent, and said not to have been; what only reads goes on."""
    asked, leads = [], [True]
    arrived, over = asyncio.Event(), asyncio.Event()

    async def handler(request):
        asked.append((request.method, request.path))
        arrived.set()
        await over.wait()
        return web.Response()

    async def go():
        async with (
            serving(handler) as port,
            connected_to(f"http://127.0.0.1:{port}", pool_size=1, may_change=lambda: leads[0]) as transport,
        ):
            first = asyncio.create_task(transport.request("POST", "/first", timeout_s=TIMEOUT_S))
            await arrived.wait()
            waiting = asyncio.create_task(transport.request("POST", "/waiting", timeout_s=TIMEOUT_S))
            await asyncio.sleep(0)  # it waits for the only place in the pool
            leads[0] = False
            over.set()
            await first
            with pytest.raises(TransportError, match="the lease ended while") as late:
                await waiting
            await transport.request("GET", "/reading", timeout_s=TIMEOUT_S)
            return late.value.sent

    assert run(go()) is False
    assert asked == [("POST", "/first"), ("GET", "/reading")]


def test_unauthorized_is_answered_with_a_new_token_once(run):
    """All requests that met the old token share one renewal."""

    async def handler(request):
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer new" else 401)

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}", "old", "new") as transport:
            answers = await asyncio.gather(*[transport.request("GET", "/", timeout_s=TIMEOUT_S) for _ in range(5)])
            return [answer.status for answer in answers], transport._credentials.renewed

    assert run(go()) == ([200] * 5, 1)


def test_unauthorized_without_a_new_token_is_the_answer(run):
    """No loop."""
    calls = []

    async def handler(_):
        calls.append(1)
        return web.Response(status=401)

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}", "only") as transport:
            return (await transport.request("GET", "/", timeout_s=TIMEOUT_S)).status

    assert run(go()) == 401
    assert len(calls) == 1


def test_second_try_after_unauthorized_has_what_is_left_of_the_time(run):
    """A lease stands behind the limit, so both tries together end with it."""
    now_s = [0.0]

    async def handler(request):
        if request.headers["Authorization"] == "Bearer new":
            await asyncio.sleep(TIMEOUT_S)
        now_s[0] += 999.9
        return web.Response(status=401)

    async def go():
        async with (
            serving(handler) as port,
            connected_to(f"http://127.0.0.1:{port}", "old", "new", monotonic=lambda: now_s[0]) as transport,
            asyncio.timeout(TIMEOUT_S),
        ):
            with pytest.raises(TransportError, match="no answer in time"):
                await transport.request("GET", "/", timeout_s=1000.0)

    run(go())


@pytest.mark.parametrize("is_late", [pytest.param(True, id="too late"), pytest.param(False, id="never")])
def test_identity_that_is_not_renewed_in_time_is_not_waited_for(run, is_late):
    """The 401 is the answer."""
    now_s, tokens = [0.0], []

    async def handler(request):
        tokens.append(request.headers["Authorization"])
        return web.Response(status=401)

    async def go():
        async with (
            serving(handler) as port,
            connected_to(f"http://127.0.0.1:{port}", "old", "new", monotonic=lambda: now_s[0]) as transport,
            asyncio.timeout(TIMEOUT_S),
        ):
            renew = transport._credentials.renew

            async def renew_slowly():
                now_s[0] += 1.0
                await (renew() if is_late else asyncio.Event().wait())

            transport._credentials.renew = renew_slowly
            return (await transport.request("GET", "/", timeout_s=0.5)).status

    assert run(go()) == 401
    assert tokens == ["Bearer old"]


def test_stream_whose_identity_cannot_be_renewed_leaves_no_connection(run):
    """The answer that was refused is closed, whatever becomes of the renewal."""

    async def go():
        gone = asyncio.Event()

        async def talk(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            await reader.read()
            gone.set()

        async def fail():
            raise CredentialsError("the program failed")

        async with raw_server(talk) as base, connected_to(base, "old") as transport:
            transport._credentials.renew = fail
            with pytest.raises(CredentialsError):
                async with transport.stream("/watch", connect_timeout_s=TIMEOUT_S):
                    pytest.fail("there is no stream")
            async with asyncio.timeout(TIMEOUT_S):
                await gone.wait()

    run(go())


def test_stream_hands_out_chunks_as_they_come(run):
    """A small chunk arrives while the stream stays open, and leaving closes the connection."""

    async def go():
        go_on, gone = asyncio.Event(), asyncio.Event()

        async def handler(request):
            response = web.StreamResponse()
            await response.prepare(request)
            try:
                await response.write(b"one\n")
                await go_on.wait()
                while True:
                    await response.write(b"two\n")
                    await asyncio.sleep(0.01)
            except (ConnectionError, asyncio.CancelledError):
                gone.set()
                raise

        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}") as transport:
            async with transport.stream("/watch", connect_timeout_s=TIMEOUT_S) as chunks:
                async with asyncio.timeout(TIMEOUT_S):
                    first = await anext(chunks)
                go_on.set()
                second = await anext(chunks)
            async with asyncio.timeout(TIMEOUT_S):
                await gone.wait()
            return type(first), first, second[:4]

    assert run(go()) == (bytes, b"one\n", b"two\n")


def test_stream_ends(run):
    """A whole body ends the iteration; a cut one raises."""

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"line\n")
        if request.path == "/cut":
            request.transport.abort()
        return response

    async def read(transport, path):
        async with transport.stream(path, connect_timeout_s=TIMEOUT_S) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}") as transport:
            assert await read(transport, "/whole") == b"line\n"
            with pytest.raises(TransportError) as caught:
                await read(transport, "/cut")
            assert caught.value.sent

    run(go())


def test_stream_that_is_refused(run):
    """The status and the Status reach the caller before any chunk."""

    async def handler(_):
        return web.json_response({"kind": "Status", "reason": "Expired", "message": "too old"}, status=410)

    async def go():
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}") as transport:
            with pytest.raises(ApiError) as caught:
                async with transport.stream("/watch", connect_timeout_s=TIMEOUT_S):
                    pytest.fail("there is no stream")
            return caught.value

    error = run(go())
    assert error.is_expired
    assert error.message == "too old"


def test_stream_without_an_answer_times_out(run):
    """The headers did not come in time."""

    async def go():
        async with (
            raw_server(lambda reader, writer: read_and(reader, writer, None)) as base,
            connected_to(base) as transport,
        ):
            with pytest.raises(TransportError, match=r"no answer within 0\.1 s"):
                async with transport.stream("/watch", connect_timeout_s=0.1):
                    pytest.fail("there is no stream")

    run(go())


def test_streams_do_not_take_places_in_the_pool(run):
    """More watches than connections for requests."""

    async def handler(request):
        response = web.StreamResponse()
        await response.prepare(request)
        if request.path == "/watch":
            await response.write(b"x")
            await asyncio.sleep(TIMEOUT_S)
        return response

    async def go():
        async with (
            serving(handler) as port,
            connected_to(f"http://127.0.0.1:{port}", pool_size=1) as transport,
            transport.stream("/watch", connect_timeout_s=TIMEOUT_S),
            transport.stream("/watch", connect_timeout_s=TIMEOUT_S),
        ):
            return (await transport.request("GET", "/", timeout_s=TIMEOUT_S)).status

    assert run(go()) == 200


def test_own_rate_limit_is_kept(run):
    """Each request takes a token."""

    async def handler(_):
        return web.Response()

    async def go():
        waits = []

        async def sleep(seconds):
            waits.append(seconds)

        limiter = TokenBucket(10.0, 1, monotonic=lambda: 0.0, sleep=sleep)
        async with serving(handler) as port, connected_to(f"http://127.0.0.1:{port}", limiter=limiter) as transport:
            for _ in range(3):
                await transport.request("GET", "/", timeout_s=TIMEOUT_S)
        return waits

    assert run(go()) == pytest.approx([0.1, 0.2])


def test_turn_that_would_come_too_late_was_not_sent(run):
    """The wait for a turn counts against the time limit: a write must not leave after the lease that allowed it."""

    async def go():
        limiter = TokenBucket(1.0, 1, monotonic=lambda: 0.0, sleep=asyncio.sleep)
        async with connected_to("http://127.0.0.1:9", limiter=limiter) as transport:
            limiter.reserve()
            with pytest.raises(TransportError) as caught:
                await transport.request("POST", "/", timeout_s=0.5)
        return caught.value

    error = run(go())
    assert not error.sent
    assert "rate limit" in str(error)


@pytest.fixture(scope="module")
def ca():
    return trustme.CA()


class TestTls:
    """Certificates: who is trusted, who we are, and what happens when they are replaced."""

    @staticmethod
    def context(ca, *names):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert(*names).configure_cert(context)
        context.verify_mode = ssl.CERT_REQUIRED
        ca.configure_trust(context)
        return context

    @staticmethod
    def client_pem(ca):
        cert = ca.issue_cert("podium.test")
        return cert.private_key_pem.bytes() + b"".join(blob.bytes() for blob in cert.cert_chain_pems)

    @staticmethod
    async def handler(request):
        subject = dict(pair[0] for pair in request.transport.get_extra_info("peercert")["subject"])
        return web.json_response(subject)

    def test_both_sides_prove_who_they_are(self, ca, run):
        """The server by its CA, we by our certificate."""

        async def go():
            tls = TlsMaterial(ca.cert_pem.bytes(), self.client_pem(ca))
            async with serving(self.handler, self.context(ca, "127.0.0.1")) as port:
                transport = HttpTransport(Identity(f"https://127.0.0.1:{port}", tls=tls))
                response = await transport.request("GET", "/", timeout_s=TIMEOUT_S)
                await transport.close()
                return response.status

        assert run(go()) == 200

    def test_other_name_in_the_certificate(self, ca, run):
        """``tls-server-name``: the connection goes to the address, the certificate is checked for the name."""

        async def go():
            tls = TlsMaterial(ca.cert_pem.bytes(), self.client_pem(ca), server_name="kubernetes.default")
            async with serving(self.handler, self.context(ca, "kubernetes.default")) as port:
                transport = HttpTransport(Identity(f"https://127.0.0.1:{port}", tls=tls))
                response = await transport.request("GET", "/", timeout_s=TIMEOUT_S)
                await transport.close()
                return response.status

        assert run(go()) == 200

    def test_unknown_server_is_not_spoken_to_until_the_ca_is_replaced(self, ca, run):
        """The request is not sent; the files are looked at again; the new CA makes a new client."""

        async def go():
            client = self.client_pem(ca)
            async with serving(self.handler, self.context(ca, "127.0.0.1")) as port:
                identity = Identity(f"https://127.0.0.1:{port}", tls=TlsMaterial(trustme.CA().cert_pem.bytes(), client))
                transport = HttpTransport(identity)
                with pytest.raises(TransportError) as caught:
                    await transport.request("GET", "/", timeout_s=TIMEOUT_S)
                identity.current_tls = TlsMaterial(ca.cert_pem.bytes(), client)
                response = await transport.request("GET", "/", timeout_s=TIMEOUT_S)
                await transport.close()
                return caught.value.sent, identity.rechecked, response.status

        assert run(go()) == (False, 1, 200)

    def test_half_replaced_certificates_keep_the_old_client(self, ca, run):
        """A key without its certificate is not used, and does not stop us."""

        async def go():
            good = TlsMaterial(ca.cert_pem.bytes(), self.client_pem(ca))
            async with serving(self.handler, self.context(ca, "127.0.0.1")) as port:
                identity = Identity(f"https://127.0.0.1:{port}", tls=good)
                transport = HttpTransport(identity)
                identity.current_tls = TlsMaterial(ca.cert_pem.bytes(), b"broken")
                response = await transport.request("GET", "/", timeout_s=TIMEOUT_S)
                await transport.close()
                return response.status

        assert run(go()) == 200

    def test_useless_certificates_are_refused_at_the_start(self):
        """Before anything is sent."""
        credentials = FileCredentials(
            "https://127.0.0.1:1",
            client_certificate=FileContent(None, b"nonsense"),
            client_key=FileContent(None, b"nonsense"),
        )
        with pytest.raises(CredentialsError, match="cannot be used"):
            HttpTransport(credentials)


@pytest.fixture
def garbage():
    """What only a collection finds, in the end of the test."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)

    def found():
        gc.collect()
        kinds = Counter(type(each).__name__ for each in gc.garbage)
        return {kind: number for kind, number in kinds.items() if kind in {"frame", "traceback"}}

    yield found
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("refused", id="nothing listens"),
        pytest.param(b"", id="closed without an answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", id="cut in the body"),
        pytest.param(b"nonsense\r\n\r\n", id="not HTTP"),
    ],
)
def test_failures_leave_nothing_for_a_collection(answer, run, garbage):
    """An outage is hundreds of them: tracebacks that hold their own errors would be kept until the next collection."""

    async def ask(base):
        async with connected_to(base) as transport:
            for _ in range(10):
                with contextlib.suppress(TransportError):
                    await transport.request("GET", "/a", timeout_s=TIMEOUT_S)
                with contextlib.suppress(TransportError):
                    async with transport.stream("/a", connect_timeout_s=TIMEOUT_S) as chunks:
                        async for _ in chunks:
                            pass

    async def go():
        if answer == "refused":
            await ask(f"http://127.0.0.1:{free_port()}")
            return
        async with raw_server(lambda reader, writer: read_and(reader, writer, answer)) as base:
            await ask(base)

    run(go())
    assert garbage() == {}
