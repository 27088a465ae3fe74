"""What a plain client sees of each TCP action, over TLS and over bare TCP."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.faults.proxy import (
    Bandwidth,
    Blackhole,
    Down,
    FaultProxy,
    Latency,
    LimitData,
    Match,
    ResetPeer,
    Rule,
    Slicer,
    SlowClose,
    TcpProxy,
)
from tests.faults.proxy.conftest import HOST, WAIT_S, Client, Connect, Server, Watch, event

PODS = "/api/v1/pods"
BODY = b'{"items":[]' + b" " * 5_000 + b"}"


def is_reset(client: Client) -> bool:
    """Tell whether the client's connection ends with a reset; below TLS, since Python's shows both ends alike."""
    with socket.socket(fileno=os.dup(client.connection.sock.fileno())) as raw:
        raw.settimeout(WAIT_S)
        try:
            while raw.recv(65536):
                pass
        except ConnectionResetError:
            return True
    return False


def seconds(call: Callable[[], object]) -> float:
    began_s = time.monotonic()
    call()
    return time.monotonic() - began_s


def test_latency_and_jitter(proxy: FaultProxy, connect: Connect) -> None:
    """A request and its answer are late once each."""
    client = connect()
    client.get().read()
    handle = proxy.add(Rule(Match(), Latency(0.3, jitter_s=0.1)))
    assert seconds(lambda: client.get().read()) >= 0.4
    assert handle.hits >= 1


def test_bandwidth_and_slices(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """5 kB take half a second at 10 kB/s; slices arrive whole."""
    server.answers[PODS] = BODY
    handle = proxy.add(Rule(Match(), Bandwidth(10_000)))
    client = connect()
    assert seconds(lambda: client.get().read()) >= 0.4
    handle.remove()
    proxy.add(Rule(Match(), Slicer(200, 100, pause_s=0.001)))
    assert client.get().read() == BODY


def test_black_hole_for_a_watch_alone(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The watch is silent while other requests pass; afterwards it goes on where it was."""
    watch = Watch(connect(), server)
    handle = proxy.add(Rule(Match(verb="watch"), Blackhole()))
    watch.push(event("ADDED", "a"))
    watch.client.connection.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        watch.client.connection.sock.recv(1)
    assert connect().get().status == 200
    assert handle.hits == 1
    handle.remove()


def test_black_hole_ends(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """What was on its way arrives then, as TCP sends it again."""
    watch = Watch(connect(), server)
    began_s = time.monotonic()
    proxy.add(Rule(Match(verb="watch", window_s=(0.0, 0.5)), Blackhole()))
    watch.push(event("ADDED", "a"))
    assert watch.read() == ["ADDED a"]
    assert time.monotonic() - began_s >= 0.5


def test_black_hole_for_all_lets_nothing_new_in(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """A request that is given up in a black hole never reaches the server; a handshake hangs."""
    client = connect(timeout_s=1.0)
    client.get().read()
    server.asked.get(timeout=WAIT_S)
    handle = proxy.add(Rule(Match(), Blackhole()))
    with pytest.raises(TimeoutError):
        client.bind()
    client.close()
    with pytest.raises(TimeoutError):
        connect(timeout_s=0.5).get()
    handle.remove()
    assert connect().get().status == 200
    assert server.asked.get(timeout=WAIT_S)[0] == "GET"


def test_black_hole_with_an_end(proxy: FaultProxy, connect: Connect) -> None:
    """The connection is reset after a while."""
    client = connect()
    client.get().read()
    proxy.add(Rule(Match(verb="list"), Blackhole(close_after_s=0.2)))
    client.connection.request("GET", PODS)
    assert is_reset(client)


def test_reset_in_the_middle_of_a_watch(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """A standing connection is reset as soon as the rule is there."""
    watch = Watch(connect(), server)
    handle = proxy.add(Rule(Match(verb="watch"), ResetPeer()))
    assert is_reset(watch.client)
    assert handle.hits == 1


def test_limited_data(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The connection is closed after so many bytes."""
    server.answers[PODS] = BODY
    proxy.add(Rule(Match(), LimitData(1_000)))
    answer = connect().get()
    with pytest.raises(http.client.IncompleteRead) as caught:
        answer.read()
    assert 0 < len(caught.value.partial) < 1_000


def test_slow_close(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The client hears of the end later."""
    handle = proxy.add(Rule(Match(), SlowClose(0.4)))
    client = connect()
    client.connection.connect()
    began_s = time.monotonic()
    client.connection.sock.sendall(b"GET /api/v1/pods HTTP/1.1\r\nConnection: close\r\n\r\n")
    while client.connection.sock.recv(65536):
        pass
    assert time.monotonic() - began_s >= 0.4
    assert handle.hits == 1


def test_down_and_up_again(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """Nobody listens, standing connections are reset, and afterwards the same port serves again."""
    watch = Watch(connect(), server)
    handle = proxy.add(Rule(Match(), Down()))
    assert is_reset(watch.client)

    def is_refused() -> bool:
        try:
            connect().get()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False

    wait_until(is_refused)
    handle.remove()

    def is_served() -> bool:
        try:
            return connect().get().status == 200
        except OSError:
            return False

    wait_until(is_served)


def test_server_that_is_down_looks_so(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The client's connection is reset before the TLS handshake."""
    server.stop()
    with pytest.raises(OSError):
        connect().get()
    assert [seen for seen in proxy.requests if seen.is_forwarded] == []


# --- bare TCP --------------------------------------------------------------------------------------------------------


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""
    listener = socket.create_server((HOST, 0))

    def serve(sock: socket.socket) -> None:
        with closing(sock):
            try:
                while data := sock.recv(65536):
                    sock.sendall(data)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_bytes_pass_both_ways_and_rules_hold(echo: int) -> None:
    """As between API server and etcd: a black hole, its end, and a reset."""
    with TcpProxy.start(echo, seed=1) as proxy, socket.create_connection((HOST, proxy.port), timeout=WAIT_S) as sock:
        sock.sendall(b"one")
        assert sock.recv(10) == b"one"
        hole = proxy.add(Rule(Match(), Blackhole()))
        sock.sendall(b"two")
        sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            sock.recv(10)
        hole.remove()
        sock.settimeout(WAIT_S)
        assert sock.recv(10) == b"two"
        proxy.add(Rule(Match(), Latency(0.2)))
        began_s = time.monotonic()
        sock.sendall(b"three")
        assert sock.recv(10) == b"three"
        assert time.monotonic() - began_s >= 0.4
        proxy.add(Rule(Match(), ResetPeer()))
        with pytest.raises(ConnectionResetError):
            sock.recv(10)
        assert proxy.record.errors == []


def wait_until(probe: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30.0
    while not probe():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
