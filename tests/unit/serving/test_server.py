"""The server on a real loopback socket: TLS, who may see what, every path, the limits."""

import asyncio
import contextlib
import json
import socket
import ssl
from datetime import UTC, datetime

import pytest
from cryptography import x509

from scheduler.kube.transport import Response
from scheduler.serving.build import Serving
from scheduler.serving.connections import Limits
from scheduler.serving.endpoints import Endpoints
from scheduler.serving.health import HealthChecks
from scheduler.serving.options import ServingError, ServingOptions
from scheduler.serving.server import HttpsServer, Route, text_answer
from scheduler.serving.zpages import Component
from scheduler.telemetry import logging as telemetry
from scheduler.telemetry.metrics import Metrics

RESOURCES = {"kube_pod_resource_request": ("[STABLE] Requests.", [({"pod": "a"}, 1.0)])}


class Api:
    """The cluster's side: who may do what, and its client CA."""

    def __init__(self, client_ca=""):
        self.client_ca = client_ca
        self.is_down = False
        self.reviewed = []

    async def request(self, method, path, *, body=None, content_type="application/json", timeout_s):
        if self.is_down:
            return Response(503, {}, b"")
        if method == "GET":
            return Response(200, {}, json.dumps({"data": {"client-ca-file": self.client_ca}}).encode())
        spec = json.loads(body)["spec"]
        if "token" in spec:
            user = {"username": spec["token"], "groups": []}
            return Response(
                201, {}, json.dumps({"status": {"authenticated": spec["token"] != "bad", "user": user}}).encode()
            )
        self.reviewed.append(spec)
        return Response(201, {}, json.dumps({"status": {"allowed": spec["user"] in {"prometheus", "alice"}}}).encode())

    async def close(self):
        """Nothing to close."""


async def close(writer):
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def until(condition, timeout_s=30):
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.01)


class Site:
    """A running server and a client for it."""

    def __init__(self, options=None, *, api=None, lead=True, limits=None):
        self.leads = lead
        self.shutting_down = None
        self.writers = []
        self.metrics = Metrics(version="1.0", with_process=False)
        checks = {kind: HealthChecks(kind, self.observe) for kind in ("healthz", "livez", "readyz")}
        checks["readyz"].add("shutdown", lambda: self.shutting_down)
        self.api = api if api is not None else Api()
        self.serving = Serving(
            options or ServingOptions(),
            Endpoints(
                component=Component(
                    "podium", "1.0", "1.36", datetime(2026, 1, 1, tzinfo=UTC), lambda: datetime(2026, 1, 2, tzinfo=UTC)
                ),
                healthz=checks["healthz"],
                livez=checks["livez"],
                readyz=checks["readyz"],
                metrics=self.metrics.registry,
                slis=self.metrics.slis,
                resources=self.resources,
                is_leader=lambda: self.leads,
                configz=lambda: b'{"componentconfig":{}}',
                flags=lambda: {"v": "0", "config": "/etc/x"},
            ),
            self.api,
            limits=limits or Limits(),
        )

    def observe(self, name, kind, is_healthy):
        self.metrics.healthcheck(name, kind, is_healthy=is_healthy)

    async def resources(self):
        return RESOURCES

    async def __aenter__(self):
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        await self.serving.start(sock)
        self.port = self.serving.server.port
        return self

    async def __aexit__(self, *_error):
        await self.serving.stop()
        for writer in self.writers:
            await close(writer)
        await asyncio.sleep(0)

    async def open(self, leaf=None, **settings):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        for key, value in settings.items():
            setattr(context, key, value)
        if leaf is not None:
            leaf.configure_cert(context)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        self.writers.append(writer)
        return reader, writer

    async def ask(self, path, *, method="GET", token=None, leaf=None, body=b"", headers=()):
        reader, writer = await self.open(leaf)
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}", *headers]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        answer = await reader.read()
        await close(writer)
        head, _, text = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), text.decode(), head.decode()


def play(script, **settings):
    async def run():
        async with Site(**settings) as site:
            return await script(site)

    return asyncio.run(run())


ANSWERS = [
    pytest.param("/healthz", None, 200, "ok", id="health needs no identity"),
    pytest.param("/livez?verbose", None, 200, "[+]ping ok\nlivez check passed\n", id="verbose"),
    pytest.param(
        "/readyz?verbose&exclude=shutdown",
        None,
        200,
        "[+]shutdown excluded: ok\nreadyz check passed\n",
        id="verbose and excluded",
    ),
    pytest.param("/readyz/shutdown", "prometheus", 200, "ok", id="single check"),
    pytest.param("/metrics", "prometheus", 200, "# TYPE scheduler_preemption_attempts_total counter", id="metrics"),
    pytest.param("/metrics/resources", "prometheus", 200, 'kube_pod_resource_request{pod="a"} 1.0', id="resources"),
    pytest.param("/metrics/slis", "prometheus", 200, "", id="slis"),
    pytest.param("/configz", "prometheus", 200, '{"componentconfig":{}}', id="configz"),
    pytest.param("/flagz", "prometheus", 200, "config=/etc/x\nv=0\n", id="flagz"),
    pytest.param("/statusz", "prometheus", 200, "Up: 24 hr 00 min 00 sec", id="statusz"),
    pytest.param("/nothing", "prometheus", 404, "404 page not found\n", id="unknown path"),
    pytest.param("/nothing", None, 403, "", id="unknown path is forbidden before it is unknown"),
    pytest.param(
        "/metrics", None, 403, 'forbidden: User \\"system:anonymous\\" cannot get path \\"/metrics\\"', id="anonymous"
    ),
    pytest.param("/metrics", "stranger", 403, 'User \\"stranger\\"', id="not allowed"),
    pytest.param("/healthz", "bad", 401, '"message":"Unauthorized"', id="bad token is refused even where nobody is"),
    pytest.param("/healthz/ping", None, 403, "", id="single checks are not public"),
]


@pytest.mark.parametrize(("path", "token", "status", "text"), ANSWERS)
def test_path_answers(path, token, status, text):
    async def script(site):
        return await site.ask(path, token=token)

    got, body, head = play(script)
    assert got == status
    assert text in body
    assert "Cache-Control: no-cache, private" in head
    assert "aiohttp" not in head


def test_metrics_has_the_classic_content_type():
    async def script(site):
        return await site.ask("/metrics", token="prometheus", headers=["Accept: application/openmetrics-text"])

    assert "Content-Type: text/plain; version=0.0.4" in play(script)[2]


def test_metrics_are_reset_by_delete():
    async def script(site):
        site.metrics.attempt("scheduled", "p", 1)
        assert (await site.ask("/metrics", method="DELETE", token="prometheus"))[:2] == (200, "metrics reset\n")
        assert site.api.reviewed[-1]["nonResourceAttributes"] == {"path": "/metrics", "verb": "delete"}
        return site.metrics.families.schedule_attempts.labels("scheduled", "p").value

    assert play(script) == 0


def test_standby_shows_no_resources():
    async def script(site):
        return await site.ask("/metrics/resources", token="prometheus")

    assert play(script, lead=False)[:2] == (200, "")


def test_failing_readiness_is_500_and_counted():
    async def script(site):
        site.shutting_down = "process is shutting down"
        answer = await site.ask("/readyz")
        return answer, (await site.ask("/metrics/slis", token="prometheus"))[1]

    (status, text, _), slis = play(script)
    assert (status, text) == (500, "[-]shutdown failed: reason withheld\nreadyz check failed\n")
    assert 'kubernetes_healthcheck{name="shutdown",type="readyz"} 0.0' in slis


def test_zpages_speak_json_when_asked():
    async def script(site):
        accept = ["Accept: application/json;g=config.k8s.io;v=v1beta1;as=Statusz"]
        return await site.ask("/statusz", token="prometheus", headers=accept)

    body = json.loads(play(script)[1])
    assert (body["kind"], body["apiVersion"], body["uptimeSeconds"]) == ("Statusz", "config.k8s.io/v1beta1", 86_400)
    assert "/metrics" in body["paths"]


@pytest.mark.parametrize(
    ("body", "status", "text", "level"),
    [
        (b"4", 200, "successfully set klog.logging.verbosity to 4\n", 4),
        (b"many", 400, "failed set klog.logging.verbosity many: not a number from 0 to 10\n", 0),
        (b"99", 400, "failed set klog.logging.verbosity 99: not a number from 0 to 10\n", 0),
    ],
)
def test_verbosity_changes_at_run_time(body, status, text, level):
    async def script(site):
        return await site.ask("/debug/flags/v", method="PUT", body=body, token="prometheus")

    try:
        assert play(script)[:2] == (status, text)
        assert telemetry.verbosity() == level
    finally:
        telemetry.set_verbosity(0)


def test_other_methods_are_refused():
    async def script(site):
        return await site.ask("/configz", method="POST", token="prometheus")

    assert play(script)[0] == 405


def test_unavailable_review_denies():
    async def script(site):
        site.api.is_down = True
        return [
            (await site.ask(path, token=token))[0]
            for path, token in [("/metrics", None), ("/metrics", "t"), ("/livez", None)]
        ]

    assert play(script) == [500, 401, 200]


def test_client_certificate_of_the_clusters_authority_is_believed(client_authority):
    async def script(site):
        allowed = await site.ask("/metrics", leaf=client_authority.issue("alice", "dev"))
        master = await site.ask("/metrics", leaf=client_authority.issue("root", "system:masters"))
        stranger = await site.ask("/metrics", leaf=client_authority.issue("mallory"))
        return allowed[0], master[0], stranger[0], site.api.reviewed[0]["groups"]

    assert play(script, api=Api(client_authority.pem)) == (200, 200, 403, ["dev", "system:authenticated"])


def test_certificate_of_an_unknown_authority_ends_the_handshake(client_authority, proxy_authority):
    async def script(site):
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await site.ask("/livez", leaf=proxy_authority.issue("mallory", "system:masters"))

    play(script, api=Api(client_authority.pem))


def test_new_client_authority_counts_for_the_next_connection(client_authority, proxy_authority):
    """The old authority is gone, too: contexts are replaced, not added to."""

    async def script(site):
        site.api.client_ca = proxy_authority.pem
        await site.serving._trust.load()
        assert (await site.ask("/metrics", leaf=proxy_authority.issue("alice")))[0] == 200
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await site.ask("/metrics", leaf=client_authority.issue("alice"))

    play(script, api=Api(client_authority.pem))


def test_a_refused_client_shakes_hands_again(client_authority):
    """Who connected before the authority was known was not asked for a certificate; the next connection asks."""

    async def script(site):
        reader, writer = await site.open(client_authority.issue("alice"))
        site.api.client_ca = client_authority.pem
        await site.serving._trust.load()
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answers = (await asyncio.wait_for(reader.read(), 30)).decode()  # to the end of the connection
        again = await site.ask("/metrics", leaf=client_authority.issue("alice"))
        return answers.count("200 OK"), answers.count("403 Forbidden"), answers.count("Connection: close"), again[0]

    assert play(script) == (1, 1, 1, 200)


def test_tls_below_1_2_is_refused_and_the_fallback_names_localhost():
    async def script(site):
        with pytest.raises((ssl.SSLError, ConnectionError, ValueError)):
            await site.open(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
        _, writer = await site.open()
        return writer.get_extra_info("ssl_object").version()

    with pytest.warns(DeprecationWarning, match="TLSv1"):
        assert play(script) == "TLSv1.3"


def write_pair(directory, leaf):
    (directory / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
    (directory / "tls.key").write_bytes(leaf.private_key_pem.bytes())


async def served_certificate(site):
    _, writer = await site.open()
    return writer.get_extra_info("ssl_object").getpeercert(binary_form=True)


def test_certificate_files_are_reloaded_and_a_broken_pair_keeps_the_old(tmp_path, client_authority):
    write_pair(tmp_path, client_authority.ca.issue_cert("localhost"))

    async def script(site):
        first = await served_certificate(site)
        write_pair(tmp_path, client_authority.ca.issue_cert("localhost", "podium.example"))
        site.serving.tls.reload()
        second = await served_certificate(site)
        (tmp_path / "tls.key").write_text("rubbish")
        site.serving.tls.reload()
        return first, second, await served_certificate(site), site.serving.tls.expires_s

    first, second, third, expires_s = play(
        script, options=ServingOptions(cert_file=tmp_path / "tls.crt", key_file=tmp_path / "tls.key")
    )
    assert first != second
    assert second == third
    assert expires_s == x509.load_der_x509_certificate(third).not_valid_after_utc.timestamp()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"cert_file": "missing.crt", "key_file": "missing.key"}, "missing.crt"),
        ({"cert_file": "missing.crt"}, "given together"),
    ],
)
def test_unusable_certificate_is_an_error_at_the_start(tmp_path, options, match):
    with pytest.raises(ServingError, match=match):
        Site(ServingOptions(**{key: tmp_path / name for key, name in options.items()}))


def test_taken_address_is_an_error():
    async def script(site):
        other = Site(ServingOptions(bind_address="127.0.0.1", port=site.port))
        with pytest.raises(ServingError, match=f"cannot listen on 127.0.0.1:{site.port}"):
            await other.serving.start()

    play(script)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(["X-A: " + "x" * 20_000], id="one large header"),
        pytest.param([f"X-{i}: {'x' * 1_000}" for i in range(20)], id="many headers"),
        pytest.param([f"X-{i}: x" for i in range(300)], id="very many small headers"),
    ],
)
def test_large_headers_are_refused(headers):
    async def script(site):
        return await site.ask("/livez", headers=headers)

    assert play(script)[0] in {400, 431}


def test_large_body_is_refused():
    async def script(site):
        return await site.ask("/debug/flags/v", method="PUT", token="prometheus", body=b"4" * (1024 * 1024 + 1))

    assert play(script)[0] == 413


def test_the_connection_that_has_asked_nothing_for_longest_gives_way():
    async def script(site):
        first, second, _ = [(await site.open())[0] for _ in range(3)]
        status = (await site.ask("/livez"))[0]
        async with asyncio.timeout(30):
            assert await first.read() == b""
        assert not second.at_eof()
        return status

    assert play(script, limits=Limits(connections=3)) == 200


def test_handshakes_that_do_not_begin_keep_nobody_out():
    async def script(site):
        silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(50)]
        site.writers += [writer for _, writer in silent]
        status = (await site.ask("/livez"))[0]
        async with asyncio.timeout(30):  # all but the last two or three are closed at once, long before their time
            await asyncio.gather(*(reader.read() for reader, _ in silent[:40]))
        return status

    assert play(script, limits=Limits(connections=3, read_s=600)) == 200


def test_a_connection_that_is_being_answered_is_not_closed_for_another():
    async def script(site):
        asked, may_end = asyncio.Semaphore(0), asyncio.Event()

        async def wait(_request):
            asked.release()
            await may_end.wait()
            return text_answer("at last")

        site.serving.server.add("/wait", Route(wait))
        answers = [asyncio.create_task(site.ask("/wait", token="prometheus")) for _ in range(3)]
        async with asyncio.timeout(30):
            for _ in answers:
                await asked.acquire()
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await site.ask("/livez")
        may_end.set()
        return [answer[:2] for answer in await asyncio.gather(*answers)]

    assert play(script, limits=Limits(connections=3)) == [(200, "at last")] * 3


def test_who_asks_and_does_not_read_is_cut_off():
    """Answers that nobody takes must not fill the memory, nor hold a connection for ever."""

    async def script(site):
        site.serving.server.add("/large", Route(large))
        _, writer = await site.open()
        writer.transport.pause_reading()
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer prometheus\r\n\r\n" * 8)
        await until(lambda: site.api.reviewed)
        await until(lambda: not site.serving.server._connections._open)
        writer.transport.abort()

    async def large(_request):
        return text_answer(b"x" * 8_000_000)

    play(script, limits=Limits(read_s=0.3))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x1b[31mred\r\n\r\n", id="no HTTP at all"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", id="a NUL in a header"),
        pytest.param(b"GET /livez HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(b"GET /livez HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(
            b"GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n",
            id="chunks that are none",
        ),
        pytest.param(
            b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\nrubbish",
            id="gzip that is none",
        ),
    ],
)
def test_what_is_no_request_is_refused_without_a_word_of_it(sent, capsys):
    """Neither in the answer nor, at the usual verbosity, in the log; and nobody is told what the server is made of."""

    async def script(site):
        reader, writer = await site.open()
        writer.write(sent)
        async with asyncio.timeout(30):
            answer = await reader.read(10_000)
            assert (await site.ask("/livez"))[0] == 200
        return answer.decode()

    answer = play(script)
    log = capsys.readouterr().err
    assert answer.split()[1] == "400", answer
    assert not {"red", "rubbish", "aiohttp", "Python"} & set(answer.replace("/", " ").split())
    assert "Traceback" not in log
    assert "rubbish" not in log


def test_a_caller_that_goes_away_in_the_middle_of_its_body_is_no_error(capsys):
    async def script(site):
        _, writer = await site.open()
        writer.write(
            b"PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer prometheus\r\nContent-Length: 9\r\n\r\n4"
        )
        await until(lambda: site.api.reviewed)
        writer.transport.abort()
        await until(lambda: not site.serving.server._connections._open)
        return (await site.ask("/livez"))[0]

    assert play(script) == 200
    assert "Traceback" not in capsys.readouterr().err


def test_an_endless_head_is_cut_off():
    """Each header is short enough, all together are not: they are not collected until they end."""

    async def script(site):
        reader, writer = await site.open()
        writer.write(
            b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1_000) for n in range(60))
        )
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(30):
                while not reader.at_eof():
                    writer.write(b"x")
                    await asyncio.sleep(0.01)

    play(script, limits=Limits(read_s=600))


def test_silent_and_dribbling_connections_are_closed():
    """Neither saying nothing nor an endless header keeps a connection for longer than the limit."""

    async def script(site):
        silent, _ = await site.open()
        dribbling, writer = await site.open()
        writer.write(b"GET /livez HTTP/1.1\r\nX-A: ")
        async with asyncio.timeout(5):
            while not dribbling.at_eof():
                writer.write(b"x")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(dribbling.read(100), 0.05)
            assert await silent.read() == b""

    play(script, limits=Limits(read_s=0.2))


def test_slow_answer_is_cut():
    async def script(site):
        async def sleep(_request):
            await asyncio.sleep(60)
            return text_answer("late")

        site.serving.server.add("/slow", Route(sleep))
        return await site.ask("/slow", token="prometheus")

    assert play(script, limits=Limits(answer_s=0.1))[0] == 504


def test_stop_closes_idle_connections():
    async def script(site):
        reader, _ = await site.open()
        await site.serving.stop()
        async with asyncio.timeout(5):
            assert await reader.read() == b""

    play(script)


def test_paths_are_unique():
    async def script(site):
        server: HttpsServer = site.serving.server
        assert "/metrics" in server.paths
        with pytest.raises(ValueError, match="/metrics is served already"):
            server.add("/metrics", Route(lambda _request: None))

    play(script)
