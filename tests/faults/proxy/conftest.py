"""A small API server of our own with TLS, and a plain client, between which the proxy stands."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import queue
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.pki import Authority, write_pair
from tests.faults.proxy import FaultProxy

HOST = "127.0.0.1"
WAIT_S = 30.0


class Server:
    """Answers `GET` and `POST` with what the test put there, and watches with the lines that it pushes.

    Attributes:
        asked: method, path, body and user of each request that came.
        answers: body by path; anything else gets an empty list.
        watches: one queue of lines for each watch that was opened; None ends it.
    """

    def __init__(self, directory: Path) -> None:
        authority = Authority()
        self.directory = directory
        self.ca_file = directory / "ca.crt"
        self.ca_file.write_bytes(authority.certificate)
        write_pair(authority.server([HOST]), directory, "apiserver")
        self.asked: queue.Queue[tuple[str, str, bytes, str]] = queue.Queue()
        self.answers: dict[str, bytes] = {}
        self.watches: queue.Queue[queue.Queue[bytes | None]] = queue.Queue()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.ca_file))
        tls.load_cert_chain(directory / "apiserver.crt", directory / "apiserver.key")
        tls.verify_mode = ssl.CERT_REQUIRED
        self._http = _Listener((HOST, 0), _handler(self))
        self._http.tls = tls
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.identities = {user: self._identity(authority, user) for user in ("ann", "bob")}

    def ssl_context(self, kubeconfig: Path | None = None) -> ssl.SSLContext:
        path = kubeconfig or self.identities["ann"]
        user = yaml.safe_load(path.read_text())["users"][0]["user"]
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        return context

    def stop(self) -> None:
        """Listen no more; may be called again."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _identity(self, authority: Authority, user: str) -> Path:
        certificate, key = write_pair(authority.client(user), self.directory, user)
        document = {
            "clusters": [{"name": "test", "cluster": {"server": f"https://{HOST}:{self.port}"}}],
            "users": [{"name": user, "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
        }
        path = self.directory / f"{user}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    tls: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        with contextlib.suppress(OSError), self.tls.wrap_socket(request, server_side=True) as sock:
            super().finish_request(sock, client_address)  # the proxy closes connections as it likes

    def shutdown_request(self, request: Any) -> None:
        request.close()


def _handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._note()
            if "watch=1" in self.path:
                self._watch()
            else:
                self._answer(200, server.answers.get(self.path, b'{"items":[]}'))

        def do_POST(self) -> None:
            self._note()
            self._answer(201, b'{"kind":"Status","status":"Success"}')

        def _note(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            user = dict(pair[0] for pair in self.connection.getpeercert()["subject"])["commonName"]
            server.asked.put((self.command, self.path, body, user))

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _watch(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            lines: queue.Queue[bytes | None] = queue.Queue()
            server.watches.put(lines)
            while (line := lines.get()) is not None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line) + 1, line + b"\n"))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


class Client:
    """One keep-alive connection through the proxy."""

    def __init__(self, server: Server, port: int, user: str, timeout_s: float) -> None:
        tls = server.ssl_context(server.identities[user])
        self.connection = http.client.HTTPSConnection(HOST, port, timeout=timeout_s, context=tls)

    def get(self, path: str = "/api/v1/pods", **headers: str) -> http.client.HTTPResponse:
        """Send a GET and return the answer, its body not read yet."""
        self.connection.request("GET", path, headers=headers)
        return self.connection.getresponse()

    def bind(self, name: str = "p") -> http.client.HTTPResponse:
        """Send what the scheduler sends to bind a pod."""
        path = f"/api/v1/namespaces/default/pods/{name}/binding"
        self.connection.request("POST", path, body=b'{"kind":"Binding"}')
        return self.connection.getresponse()

    def close(self) -> None:
        self.connection.close()


def event(kind: str, name: str, uid: str = "1", version: int = 1) -> bytes:
    """Return a line of a watch of pods."""
    metadata = {"namespace": "default", "name": name, "uid": uid, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"kind": "Pod", "metadata": metadata}}).encode()


class Watch:
    """An open watch of pods: `push` is the server's side, `read` the client's."""

    def __init__(self, client: Client, server: Server) -> None:
        self.answer = client.get("/api/v1/pods?watch=1")
        self.client = client
        self._lines = server.watches.get(timeout=WAIT_S)

    def push(self, *lines: bytes) -> None:
        for line in lines:
            self._lines.put(line)

    def end(self) -> None:
        self._lines.put(None)

    def read(self, count: int = 1) -> list[str]:
        """Return the next lines as type and name."""
        return [_brief(self.answer.readline()) for _ in range(count)]


def _brief(line: bytes) -> str:
    decoded = json.loads(line)
    return f"{decoded['type']} {decoded['object'].get('metadata', {}).get('name', '')}".strip()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def proxy(server: Server, tmp_path: Path) -> Iterator[FaultProxy]:
    """A proxy in front of the server that knows both users."""
    with FaultProxy.start(server, seed=1, log_file=tmp_path / "proxy.jsonl") as started:
        for identity in server.identities.values():
            started.kubeconfig(identity)
        yield started
        assert started.record.errors == []


Connect = Callable[..., Client]


@pytest.fixture
def connect(server: Server, proxy: FaultProxy) -> Iterator[Connect]:
    """Make clients of the proxy; they are closed when the test ends."""
    made: list[Client] = []

    def make(user: str = "ann", *, timeout_s: float = WAIT_S) -> Client:
        made.append(Client(server, proxy.port, user, timeout_s))
        return made[-1]

    yield make
    for client in made:
        client.close()
