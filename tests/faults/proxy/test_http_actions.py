"""What a plain client sees of each HTTP action, and what the server does not see."""

from __future__ import annotations

import gzip
import http.client
import json
import queue
import time

import pytest

from tests.faults.proxy import (
    DelayBody,
    DelayRequest,
    DropAnswer,
    DropRequest,
    FaultProxy,
    GzipBomb,
    Match,
    Oversize,
    Reply,
    Rewrite,
    RewriteText,
    Rule,
    Truncate,
    WrongContentType,
)
from tests.faults.proxy.conftest import WAIT_S, Connect, Server

BINDS = Match(verb="create", resource="pods/binding")
LIST = b'{"kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}'
PODS = "/api/v1/pods"


def was_asked(server: Server) -> bool:
    """Tell whether the server got the one request that was sent."""
    try:
        server.asked.get_nowait()
    except queue.Empty:
        return False
    return True


def test_without_rules_everything_passes(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """Bodies in both directions, and the connection is used again."""
    server.answers[PODS] = LIST
    client = connect()
    assert client.get().read() == LIST
    sock = client.connection.sock
    assert client.bind("x").read() == b'{"kind":"Status","status":"Success"}'
    assert client.connection.sock is sock
    assert server.asked.get(timeout=WAIT_S)[:3] == ("GET", PODS, b"")
    assert server.asked.get(timeout=WAIT_S)[:3] == (
        "POST",
        "/api/v1/namespaces/default/pods/x/binding",
        b'{"kind":"Binding"}',
    )
    assert proxy.decisions == type(proxy.decisions)()


def test_reply_instead_of_the_server(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The server is not asked."""
    proxy.add(Rule(BINDS, Reply(409, reason="Conflict", message="already bound")))
    answer = connect().bind()
    assert answer.status == 409
    assert json.loads(answer.read()) | {"metadata": {}} == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "already bound",
        "reason": "Conflict",
        "code": 409,
    }
    assert not was_asked(server)


def test_reply_after_the_server_did_it(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The server has carried it out, the client hears something else."""
    proxy.add(Rule(BINDS, Reply(504, is_forwarded=True)))
    answer = connect().bind()
    assert (answer.status, len(answer.read()) > 0) == (504, True)
    assert was_asked(server)
    assert [(seen.server_status, seen.status) for seen in proxy.requests] == [(201, 504)]


def test_dropped_before_and_after_the_server(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The client sees the same: a closed connection. The server has got the second request only."""
    proxy.add(Rule(Match(nth=1), DropRequest()))
    proxy.add(Rule(Match(nth=2), DropAnswer()))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        connect().bind("first")
    assert not was_asked(server)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        connect().bind("second")
    assert was_asked(server)
    assert connect().bind("third").status == 201


@pytest.mark.parametrize(
    ("action", "is_forwarded"), [(DropRequest(is_silent=True), False), (DropAnswer(is_silent=True), True)]
)
def test_silence(
    action: DropRequest | DropAnswer, is_forwarded: bool, server: Server, proxy: FaultProxy, connect: Connect
) -> None:
    """The connection stays, and no answer comes."""
    proxy.add(Rule(BINDS, action))
    client = connect()
    client.get("/readyz").read()
    server.asked.get(timeout=WAIT_S)
    client.connection.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        client.bind()
    if is_forwarded:
        assert server.asked.get(timeout=WAIT_S)[0] == "POST"
    else:
        assert not was_asked(server)


def test_truncated_body(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The length promises more than comes."""
    server.answers[PODS] = LIST
    proxy.add(Rule(Match(verb="list"), Truncate(10)))
    answer = connect().get()
    assert answer.headers["Content-Length"] == str(len(LIST))
    with pytest.raises(http.client.IncompleteRead) as caught:
        answer.read()
    assert caught.value.partial == LIST[:10]


def test_delays(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The head comes at once and the body later; or the server gets the request later."""
    proxy.add(Rule(Match(nth=1), DelayBody(0.5)))
    proxy.add(Rule(Match(nth=2), DelayRequest(0.5)))
    client = connect()
    for _ in range(2):
        began_s = time.monotonic()
        client.get().read()
        assert time.monotonic() - began_s >= 0.5


def test_wrong_content_type(proxy: FaultProxy, connect: Connect) -> None:
    """HTML instead of JSON, as from a login page in between."""
    proxy.add(Rule(Match(), WrongContentType("text/html", b"<html>")))
    answer = connect().get()
    assert (answer.headers["Content-Type"], answer.read()) == ("text/html", b"<html>")


def test_gzip_bomb(proxy: FaultProxy, connect: Connect) -> None:
    """A small body becomes a large one."""
    proxy.add(Rule(Match(), GzipBomb(1_000_000)))
    answer = connect().get()
    packed = answer.read()
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(packed) < 10_000
    assert len(gzip.decompress(packed)) == 1_000_000


def test_oversize(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The body is followed by white space, without a length."""
    server.answers[PODS] = LIST
    proxy.add(Rule(Match(), Oversize(300_000)))
    answer = connect().get()
    body = answer.read()
    assert answer.headers["Content-Length"] is None
    assert (body[: len(LIST)], len(body)) == (LIST, len(LIST) + 300_000)


def test_rewritten_objects(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """Each item of a list, a single object, and bytes that are no JSON."""
    server.answers[PODS] = LIST
    one = "/api/v1/namespaces/d/pods/a"
    server.answers[one] = b'{"kind":"Pod","metadata":{"name":"a"}}'
    rename = proxy.add(Rule(Match(resource="pods"), Rewrite(lambda pod: {**pod, "spec": None})))
    client = connect()
    assert [pod["spec"] for pod in json.loads(client.get().read())["items"]] == [None, None]
    assert json.loads(client.get(one).read())["spec"] is None
    rename.remove()
    proxy.add(Rule(Match(resource="pods"), RewriteText(b'"name":"a"', b'"name":1e999')))
    assert b'{"name":1e999}},{"metadata":{"name":"b"}}' in client.get().read()
