"""Whoever can put a text before the scheduler cannot write its log: no line of their own, no terminal escape, no secret.

The texts come from where strangers have a say: the path, headers and token of a request to the HTTPS port, what is no
request at all, an extender's answers, the note of an event, names of schedulers. `tests.leaks` says what a line must be.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from tests.contract.extender.server import ExtenderServer
from tests.controlplane.cluster import HOST
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon
from tests.leaks import broken_lines, leaks

FORGED = {
    "newline": '\n2026-01-31T08:15:00.123Z ERROR   forged  [scheduler]\n{"ts":"","level":"error","msg":"forged","logger":""}\n',
    "carriage return": "\rforged",
    "terminal": "\x1b[2J\x1b[31mforged\x1b]0;forged\x07",
    "C1 control": "\x9b31mforged",
    "separators": "forged\u2028forged\u2029forged\x85forged\x0bforged",
    "direction": "\u202edegrof",
    "NUL and DEL": "forged\x00forged\x7f",
    "quotes": 'forged" level="error" msg="forged\\',
    "long": "forged " * 2_000,
}
TOKEN = "a-test-token-that-no-log-may-hold-5f2c81"


@pytest.fixture(params=["text", "json"])
def daemon(
    request: pytest.FixtureRequest, cluster: Cluster, start_daemon: StartDaemon, extender: ExtenderServer
) -> Daemon:
    """A daemon that logs all it can, with an extender that says what the test wants."""
    extenders = [{"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}]
    flags = [f"--logging-format={request.param}"]
    started = start_daemon(cluster.scheduler, configuration={"extenders": extenders}, flags=flags, verbosity=10)
    started.wait_ready()
    return started


@pytest.fixture
def extender() -> Iterator[ExtenderServer]:
    server = ExtenderServer()
    try:
        yield server
    finally:
        server.close()


def say(text: str, *, as_error: bool) -> Any:
    """Return an extender that refuses every node with this text."""

    async def answer(_request: web.Request, question: Any) -> web.Response:
        failed = {} if as_error else dict.fromkeys(question["NodeNames"], text)
        return web.json_response({"NodeNames": [], "FailedNodes": failed, "Error": text if as_error else ""})

    return answer


def knock(port: int, sent: bytes) -> None:
    """Send bytes over TLS and wait for the server's last word."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((HOST, port), timeout=30) as connection,
        context.wrap_socket(connection) as secured,
    ):
        secured.sendall(sent)
        secured.settimeout(30)
        while secured.recv(65_536):
            pass


def offer_a_token(daemon: Daemon) -> None:
    """Send a token wherever one may stand; no answer repeats it."""
    attempts = [
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN} {TOKEN}"},
        {"X-Remote-User": TOKEN},
        {"Cookie": f"token={TOKEN}"},
    ]
    for headers in attempts:
        for path in ("/metrics", "/livez", "/nothing"):
            assert TOKEN not in daemon.get(path, anonymous=True, headers=headers)[1]


def test_no_text_of_a_stranger_becomes_a_line_of_the_log(
    daemon: Daemon, cluster: Cluster, extender: ExtenderServer
) -> None:
    cluster.create(cluster.node())
    for number, (what, text) in enumerate(FORGED.items()):
        extender.behaviour = say(text, as_error=number % 2 == 0)
        cluster.create(cluster.pod(f"p{number}"))
        cluster.wait_unschedulable(f"p{number}")
        path = f"/{quote(text[:2_000])}"
        assert daemon.get(path, anonymous=True)[0] == 403, what
        assert daemon.get(path, anonymous=True, headers={"Authorization": f"Bearer {TOKEN}"})[0] == 401, what
        clean = "".join(char for char in text if char.isprintable() and char.isascii())[:500]
        assert daemon.get(path, anonymous=True, headers={"User-Agent": clean, "X-Remote-User": clean})[0] == 403, what
        knock(daemon.port, text.encode() + b"\r\n\r\n")
        knock(
            daemon.port, b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-A: " + text.encode() + b"\r\n\r\n"
        )
    offer_a_token(daemon)
    eventually(lambda: "forged" in daemon.log(), "something of it to be logged")
    log = daemon.log()
    assert not list(broken_lines(log))
    assert not list(leaks(log, [TOKEN])), "a wrong token is a secret too: it may be good elsewhere"
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert not [line for line in lines if line["msg"] == "forged"]
    assert not [line for line in log.splitlines() if " ERROR   forged" in line[:60]]
    assert not [line for line in log.splitlines() if len(line) > 40_000]
