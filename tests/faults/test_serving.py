"""Strangers at the HTTPS port: who has no right sees nothing, and a thousand who dawdle keep nobody out."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.chart.installed import make_account
from tests.controlplane.cluster import HOST
from tests.controlplane.pki import Authority, KeyPair, write_pair
from tests.faults.bench import FaultBench, fault
from tests.faults.results import at_least, at_most, exactly
from tests.integration.api import eventually
from tests.integration.daemon import SCRAPER_USER, Daemon

NAMESPACE = "default"
HEALTH = {"/healthz", "/livez", "/readyz"}
CLIENTS = 1_000
SLOW_S = 15.0
REFUSED = 0
"""Stands for no answer at all: the handshake was refused."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what the answers must be, for health and for everything else."""

    who: str
    health: int
    pages: int
    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: tuple[Path, Path] | None = None


def client_context(certificate: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the daemon made its certificate itself
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


def status_of(port: int, path: str, caller: Caller, method: str = "GET") -> int:
    """Ask as a caller; `REFUSED` if there is no answer."""
    connection = http.client.HTTPSConnection(HOST, port, timeout=30, context=client_context(caller.certificate))
    try:
        connection.request(method, path, headers=dict(caller.headers))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return REFUSED
    finally:
        connection.close()


def callers(bench: FaultBench, proxy_authority: Authority) -> Iterator[Caller]:
    """Yield all kinds of strangers, and two who may."""

    def files(name: str, pair: KeyPair) -> tuple[Path, Path]:
        return write_pair(pair, bench.directory, name)

    def bearer(token: str) -> dict[str, str]:
        bench.secrets.append(token)
        return {"Authorization": f"Bearer {token}"}

    plane, cluster_authority = bench.plane, bench.plane._authority
    forged = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    scraper = (plane.directory / f"{SCRAPER_USER}.crt", plane.directory / f"{SCRAPER_USER}.key")
    yield Caller("nobody", 200, 403)
    yield Caller("a wrong token", 401, 401, bearer("wrong-token-0123456789abcdef"))
    yield Caller("half a token", 401, 401, bearer(make_account(plane, NAMESPACE, "cut")[:-8]))
    yield Caller("an account without rights", 200, 403, bearer(make_account(plane, NAMESPACE, "stranger")))
    yield Caller("a token for another audience", 401, 401, bearer(token_for(bench, "somebody-else")))
    yield Caller("a user without rights", 200, 403, certificate=files("nobody", cluster_authority.client("nobody")))
    ended = cluster_authority.client("admin", ["system:masters"], ended=True)
    yield Caller("a certificate that has ended", REFUSED, REFUSED, certificate=files("ended", ended))
    unknown = Authority("unknown").client("admin", ["system:masters"])
    yield Caller("a certificate of nobody's", REFUSED, REFUSED, certificate=files("unknown", unknown))
    server = cluster_authority.server(["admin"])
    yield Caller("a server's certificate", REFUSED, REFUSED, certificate=files("server", server))
    yield Caller("forged headers", 200, 403, forged)
    plain = files("plain", cluster_authority.client("plain"))
    yield Caller("forged headers with a user's certificate", 200, 403, forged, plain)
    intruder = files("intruder", proxy_authority.client("intruder"))
    yield Caller("forged headers by a proxy that is not named", 401, 401, forged, intruder)
    yield Caller("a proxy that is not named", 401, 401, certificate=intruder)
    front_proxy = files("front-proxy", proxy_authority.client("front-proxy"))
    yield Caller("the front proxy for an administrator", 200, 200, forged, front_proxy)
    yield Caller("the front proxy for nobody in particular", 200, 403, {"X-Remote-User": "nobody"}, front_proxy)
    yield Caller("a scraper", 200, 200, certificate=scraper)


def token_for(bench: FaultBench, audience: str) -> str:
    """Return a token of an account that is meant for another server."""
    make_account(bench.plane, NAMESPACE, "elsewhere", "cluster-admin")
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/elsewhere/token"
    status, answer = bench.plane.request("POST", path, {"spec": {"audiences": [audience]}})
    assert status == 201, answer
    token: str = answer["status"]["token"]
    return token


def speaks(port: int, newest: ssl.TLSVersion) -> bool:
    """Tell whether a client that knows no newer version of TLS gets through."""
    context = client_context()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = newest
    context.set_ciphers("ALL:@SECLEVEL=0")
    try:
        with socket.create_connection((HOST, port), timeout=30) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False


class Dawdlers:
    """Clients that connect and take their time: silent ones, half handshakes, heads that do not end; they come again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(kind,)) for kind in (self._silent, self._half, self._dribble)
        ]
        self.opened = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, dawdle: Callable[[socket.socket], socket.socket]) -> None:
        held: list[socket.socket] = []
        try:
            while not self._is_stopping.is_set():
                if len(held) >= CLIENTS // len(self._threads):
                    held.pop(0).close()
                with contextlib.suppress(OSError):
                    held.append(dawdle(socket.create_connection((HOST, self._port), timeout=5)))
                    self.opened += 1
                self._is_stopping.wait(0.01)
        finally:
            for each in held:
                each.close()

    @staticmethod
    def _silent(connection: socket.socket) -> socket.socket:
        return connection

    @staticmethod
    def _half(connection: socket.socket) -> socket.socket:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        return connection

    @staticmethod
    def _dribble(connection: socket.socket) -> socket.socket:
        secured = client_context().wrap_socket(connection)
        secured.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: ")
        return secured


def probe(daemon: Daemon, for_s: float) -> tuple[int, int, float]:
    """Ask for health ten times a second as a kubelet does; returns how often, how often in vain, and the longest time."""
    asked = failed = 0
    longest_s = 0.0
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        begun_s = time.monotonic()
        asked += 1
        failed += daemon.health("/livez")[0] != 200
        longest_s = max(longest_s, time.monotonic() - begun_s)
        time.sleep(0.1)
    return asked, failed, longest_s


@fault(49, "strangers of 14 kinds at every page; 1,000 slow clients for 15 s (L1)")
def test_strangers_and_slow_clients(bench: FaultBench) -> None:
    """401, 403 or no handshake for who has no right; health stays reachable, and decisions do not notice."""
    proxy_authority = Authority("front-proxy-ca")
    ca_file = bench.directory / "front-proxy-ca.crt"
    ca_file.write_bytes(proxy_authority.certificate)
    flags = [f"--requestheader-client-ca-file={ca_file}", "--requestheader-allowed-names=front-proxy"]
    flags += ["--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group"]
    scheduler = bench.scheduler("a", elect=False, flags=flags)
    daemon = scheduler.daemon
    pages = [*json.loads(daemon.get("/statusz", headers={"Accept": "application/json"})[1])["paths"], "/nothing"]
    pages = [path for path in pages if path not in HEALTH and path != "/debug/flags/v"]
    wrong: list[str] = []
    asked = 0
    for caller in callers(bench, proxy_authority):
        for path in (*HEALTH, *pages):
            expected = caller.health if path in HEALTH else caller.pages
            if expected == 200 and (path == "/nothing" or path.count("/") == 2):
                continue  # a scraper's role names the pages; single checks are not among them
            seen = status_of(daemon.port, path, caller)
            asked += 1
            if seen != expected:
                wrong.append(f"{caller.who}: {path} was answered with {seen} instead of {expected}")
        for method, path in (("DELETE", "/metrics"), ("PUT", "/debug/flags/v"), ("POST", "/livez/ping")):
            asked += 1
            if (
                caller.who != "the front proxy for an administrator"
                and status_of(daemon.port, path, caller, method) == 200
            ):
                wrong.append(f"{caller.who}: {method} {path} was obeyed")
    print("\n".join(wrong))
    bench.figure("requests of all kinds", at_least(200), asked)
    bench.figure("answered wrongly", exactly(0), len(wrong))
    bench.figure("TLS 1.0 and 1.1 spoken", exactly(0),
                 sum(speaks(daemon.port, version) for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1)))  # fmt: skip
    assert speaks(daemon.port, ssl.TLSVersion.TLSv1_2)

    load = bench.load_l1(pods=3_000)
    load.wait_created(50)
    with Dawdlers(daemon.port) as dawdlers:
        eventually(lambda: dawdlers.opened >= CLIENTS, "a thousand slow clients", timeout_s=120.0)
        begun_s, created = time.time(), len(load.created)
        asked, failed, longest_s = probe(daemon, SLOW_S)
        end_s, created = time.time(), len(load.created) - created
        descriptors = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
    bench.figure("probes", at_least(10), asked)
    bench.figure("probes in vain", exactly(0), failed)
    bench.figure("slowest probe", at_most(1), longest_s, "s")
    bench.figure("descriptors of the process", at_most(200), descriptors)
    bench.settle()
    bound = sum(begun_s <= at_s < end_s for at_s in bench.bound_at().values())
    bench.figure("bound meanwhile, of those created", at_least(0.9), bound / max(created, 1))
    bench.verdict()
