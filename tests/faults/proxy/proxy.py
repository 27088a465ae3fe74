"""FaultProxy: stands between clients and the API server, in a thread of its own, and is told by tests what to spoil."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import threading
from collections import deque
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, Self

import yaml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.faults.proxy.connection import Connection, Upstream
from tests.faults.proxy.record import Decision, Record, Seen
from tests.faults.proxy.relay import Relay
from tests.faults.proxy.rules import Handle, Rule, RuleBook
from tests.faults.proxy.tcp_actions import Down

__all__ = ["FaultProxy", "Plane", "TcpProxy"]

HOST = "127.0.0.1"
_BACKLOG = 512
_START_S = 30.0


class Plane(Protocol):
    """What the proxy needs to know of a control plane (tests.controlplane has one)."""

    port: int
    directory: Path
    ca_file: Path

    def ssl_context(self, kubeconfig: Path | None = None) -> ssl.SSLContext:
        """Return the TLS context of a client, by its kubeconfig."""


class Proxy:
    """What both proxies have: a port, rules, a record, and a thread.

    Attributes:
        port: on the loopback.
        record: what was seen and done.
    """

    def __init__(self, *, seed: int, log_file: Path | None) -> None:
        self.record = Record(log_file)
        self._loop = asyncio.new_event_loop()
        self._book = RuleBook(seed, self.record, self._loop)
        self._listener = _listen(0)
        self.port: int = self._listener.getsockname()[1]
        self._serving: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"fault-proxy-{self.port}", daemon=True)
        self._main: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def decisions(self) -> deque[Decision]:
        """Return the actions that were carried out, oldest first."""
        return self.record.decisions

    @property
    def requests(self) -> deque[Seen]:
        """Return the requests that came, oldest first."""
        return self.record.requests

    def add(self, rule: Rule) -> Handle:
        """Put a rule in use; it is in force when this returns, also for what is under way."""
        handle = self._book.call(functools.partial(self._book.add, rule))
        assert isinstance(handle, Handle)
        return handle

    def clear(self) -> None:
        """Take all rules out of use; what they hold back goes on."""
        self._book.call(lambda: self._book.drop(*self._book.handles))

    def stop(self) -> None:
        """Close all connections and end the thread."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.record.close()

    def _begin(self) -> None:
        async def begin() -> None:
            self._main = asyncio.create_task(self._listen())

        self._thread.start()
        asyncio.run_coroutine_threadsafe(begin(), self._loop).result(_START_S)

    async def _end(self) -> None:
        tasks = [self._main, *self._serving] if self._main is not None else [*self._serving]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()
        await asyncio.sleep(0)  # for the callbacks of what has just been closed

    async def _listen(self) -> None:
        """Accept connections; while a rule says that nobody listens, nobody does."""
        accepting: asyncio.Task[None] | None = asyncio.create_task(self._accept())
        try:
            while True:
                is_down = any(isinstance(handle.action, Down) for handle in self._book.active())
                if is_down and accepting is not None:
                    await _cancelled(accepting)
                    accepting = None
                    self._listener.close()
                elif not is_down and accepting is None:
                    self._listener = _listen(self.port)
                    accepting = asyncio.create_task(self._accept())
                await self._book.until_change()
        finally:
            if accepting is not None:
                await _cancelled(accepting)

    async def _accept(self) -> None:
        while True:
            sock, _ = await self._loop.sock_accept(self._listener)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._loop.create_task(self._serve(sock))
            self._serving.add(task)
            task.add_done_callback(self._served)

    def _serve(self, sock: socket.socket) -> Coroutine[Any, Any, None]:
        raise NotImplementedError

    def _served(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.record.failed(repr(error))


class FaultProxy(Proxy):
    """Between clients and an API server: TLS on both sides, HTTP/1.1, watches line by line."""

    def __init__(self, plane: Plane, *, seed: int, log_file: Path | None) -> None:
        super().__init__(seed=seed, log_file=log_file)
        self._plane = plane
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(plane.ca_file))
        self._tls.load_cert_chain(plane.directory / "apiserver.crt", plane.directory / "apiserver.key")
        self._tls.verify_mode = ssl.CERT_OPTIONAL
        self._tls.set_alpn_protocols(["http/1.1"])
        anonymous = ssl.create_default_context(cafile=str(plane.ca_file))
        anonymous.set_alpn_protocols(["http/1.1"])
        self._identities: dict[bytes | None, tuple[str, ssl.SSLContext]] = {None: ("", anonymous)}

    @classmethod
    def start(cls, plane: Plane, *, seed: int = 0, log_file: Path | None = None) -> Self:
        """Start a proxy in front of the API server of ``plane``.

        Args:
            plane: its serving certificate is used, so that clients see no difference.
            seed: of every decision by chance.
            log_file: takes requests and decisions as JSON lines.
        """
        proxy = cls(plane, seed=seed, log_file=log_file)
        proxy._begin()
        return proxy

    def present(self, certificate: Path, key: Path) -> None:
        """Show clients another certificate, from the next handshake on."""
        self._tls.load_cert_chain(certificate, key)

    def kubeconfig(self, identity: Path) -> Path:
        """Return a kubeconfig that differs from ``identity`` in the server only; the API server sees the same user."""
        document = yaml.safe_load(identity.read_text())
        user = document["users"][0]["user"]
        if "client-certificate" in user:
            certificate = x509.load_pem_x509_certificate(Path(user["client-certificate"]).read_bytes())
            name = str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
            context = self._plane.ssl_context(identity)
            context.set_alpn_protocols(["http/1.1"])
            self._identities[certificate.public_bytes(Encoding.DER)] = (name, context)
        document["clusters"][0]["cluster"]["server"] = f"https://{HOST}:{self.port}"
        path = self._plane.directory / f"{identity.stem}-via-{self.port}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        return path

    def _serve(self, sock: socket.socket) -> Coroutine[Any, Any, None]:
        upstream = Upstream(HOST, self._plane.port, self._identify)
        return Connection(sock, self._book, upstream, self._tls).serve()

    def _identify(self, certificate: bytes | None) -> tuple[str, ssl.SSLContext]:
        try:
            return self._identities[certificate]
        except KeyError:
            raise LookupError("a client whose kubeconfig does not come from this proxy") from None


class TcpProxy(Proxy):
    """Between any client and server: bytes both ways, and TCP actions only (for API server and etcd)."""

    def __init__(self, host: str, port: int, *, seed: int, log_file: Path | None) -> None:
        super().__init__(seed=seed, log_file=log_file)
        self._target = (host, port)

    @classmethod
    def start(cls, port: int, *, host: str = HOST, seed: int = 0, log_file: Path | None = None) -> Self:
        """Start a proxy in front of a server's port."""
        proxy = cls(host, port, seed=seed, log_file=log_file)
        proxy._begin()
        return proxy

    def _serve(self, sock: socket.socket) -> Coroutine[Any, Any, None]:
        return Relay(sock, self._book, *self._target).serve()


def _listen(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((HOST, port))
    sock.listen(_BACKLOG)
    sock.setblocking(False)
    return sock


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
