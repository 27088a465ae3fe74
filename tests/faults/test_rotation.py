"""Tokens and certificates are replaced under load, in time, too late, and wrongly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cluster import ControlPlane, rbac_documents
from tests.controlplane.pki import Authority, write_pair
from tests.faults.bench import FaultBench, fault
from tests.faults.proxy import FaultProxy, Match, ResetPeer, Rule
from tests.faults.results import at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import eventually

NAMESPACE = "kube-system"
CACHED_S = 10.0
"""For so long the API server takes a token at its word."""

ACCOUNT = "podium-rotated"
REFUSED = "rest_client_requests_total"
EXPIRY = "podium_certificate_expiry_timestamp_seconds"


# --- tokens ----------------------------------------------------------------------------------------------------------


class TokenFile:
    """A ServiceAccount's token in a file, as the kubelet mounts it; each token ends with a Secret that it is bound to."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self._plane = plane
        self._file = directory / "token"
        self._bound_to: list[str] = []
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}
        plane.apply_object(account)
        for document in rbac_documents():
            if "subjects" in document:
                document["metadata"]["name"] += f"-{ACCOUNT}"
                document["subjects"] = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]
            plane.apply_object(document)
        self.tokens: list[str] = []
        self.replace()
        self.kubeconfig = directory / "rotated.kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(self._config()))

    @property
    def identity(self) -> tuple[str, Path]:
        return f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", self.kubeconfig

    def replace(self) -> None:
        """Put a new token in place of the old one, in one step."""
        name = f"{ACCOUNT}-{len(self.tokens)}"
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
        self._plane.apply_object(secret)
        self._bound_to.append(name)
        _, found = self._plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}")
        bound_to = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": found["metadata"]["uid"]}
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
        spec = {"expirationSeconds": 600, "boundObjectRef": bound_to}
        status, answer = self._plane.request("POST", path, {"spec": spec})
        assert status == 201, answer
        self.tokens.append(answer["status"]["token"])
        written = self._file.with_suffix(".new")
        written.write_text(self.tokens[-1])
        written.rename(self._file)

    def end(self, number: int) -> None:
        """Let a token end, as if its time were over; the API server notices within ten seconds."""
        path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{self._bound_to[number]}"
        assert self._plane.request("DELETE", path)[0] == 200

    def _config(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self._plane.url, "certificate-authority": str(self._plane.ca_file)},
                }
            ],
            "users": [{"name": "test", "user": {"tokenFile": str(self._file)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }


def refusals(scheduler: SupervisedScheduler) -> float:
    """Return how many requests were answered with 401."""
    return scheduler.daemon.metrics().total(REFUSED, code="401")


def unauthorized(bench: FaultBench) -> list[float]:
    """Return when the API server had each request that it answered with 401."""
    return [request.received_s for request in bench.audit.read() if request.code == 401]


@fault(46, "the token ends and is swapped: in time, then 5 s too late (L1)")
def test_token_rotation(bench: FaultBench) -> None:
    """Replaced in time, no pod notices; too late, binding is back within a second of the new token."""
    bench.note(
        "a token ends when the Secret is deleted that it is bound to, as tokens of less than 10 minutes do not exist"
    )
    file = TokenFile(bench.plane, bench.directory)
    bench.secrets += file.tokens
    scheduler = bench.scheduler("a", identity=file.identity)
    load = bench.load_l1(pods=5_400)
    load.wait_created(100)
    file.replace()
    time.sleep(CACHED_S + 2.0)  # the kubelet leaves minutes
    file.end(0)
    time.sleep(CACHED_S + 2.0)
    bench.figure("401 after a swap in time", at_most(1), len(unauthorized(bench)))
    file.end(1)
    eventually(lambda: refusals(scheduler) > 0, "the token to be refused", timeout_s=60.0)
    time.sleep(5.0)
    file.replace()
    bench.secrets += file.tokens
    swapped_s = time.time()
    load.end_after(200)
    bench.settle()
    late = unauthorized(bench)
    bench.figure("401 in the 5 s without a valid token", at_most(100), sum(at_s <= swapped_s for at_s in late))
    bench.figure("last 401 after the late swap", at_most(1), max(0.0, max(late) - swapped_s), "s")
    bench.figure("N after a late swap", at_most(1), bench.recovery_s(load, swapped_s), "s")
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.verdict()


# --- certificates ----------------------------------------------------------------------------------------------------


class Trust:
    """What a scheduler trusts: a CA file of its own, and the proxy's certificate."""

    def __init__(self, bench: FaultBench) -> None:
        self._bench = bench
        self.file = bench.directory / "trusted.crt"
        self.old = bench.plane.ca_file.read_bytes()
        self.new = Authority("podium-new-ca")
        self.file.write_bytes(self.old)
        user = "podium-certified"
        original = yaml.safe_load(bench.audited.identity(user).read_text())
        original["clusters"][0]["cluster"]["certificate-authority"] = str(self.file)
        kubeconfig = bench.directory / f"{user}.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(original))
        self.identity = (user, kubeconfig)

    def put(self, *authorities: bytes) -> None:
        """Trust these authorities, in one step."""
        written = self.file.with_suffix(".next")
        written.write_bytes(b"".join(authorities))
        written.rename(self.file)

    def serve_with(self) -> tuple[Path, Path]:
        """Write a new certificate, with its key, for the scheduler's own pages; it ends within the week, as all here."""
        return write_pair(self.new.server(["127.0.0.1", "localhost"]), self._bench.directory, "serving")

    def issue(self, proxy: FaultProxy) -> None:
        """Give the server a certificate of the new authority, and cut all connections."""
        pair = self.new.server(["127.0.0.1", "localhost"])
        proxy.present(*write_pair(pair, self._bench.directory, "renewed"))
        cut(proxy)


def cut(proxy: FaultProxy) -> None:
    """Cut all connections, and let new ones through."""
    handle = proxy.add(Rule(Match(), ResetPeer()))
    time.sleep(0.2)
    handle.remove()


def proxy_of(scheduler: SupervisedScheduler) -> FaultProxy:
    proxy = scheduler.proxy
    assert isinstance(proxy, FaultProxy)
    return proxy


def _renew_own(scheduler: SupervisedScheduler, trust: Trust) -> float:
    """Replace the certificate of the scheduler's own pages; returns the seconds until it says that it uses the new one."""
    before = scheduler.daemon.metrics().total(EXPIRY, certificate="serving")
    trust.serve_with()
    begun_s = time.monotonic()
    eventually(
        lambda: scheduler.daemon.metrics().total(EXPIRY, certificate="serving") > before,
        "the renewed certificate to be in use",
        timeout_s=60.0,
    )
    return time.monotonic() - begun_s


@fault(47, "certificate and CA of the API server rotated under L1; then a wrong CA for 30 s")
def test_certificate_rotation(bench: FaultBench) -> None:
    """A planned rotation costs seconds; under a wrong CA nothing is sent, and it connects when it is put right."""
    trust = Trust(bench)
    cert, key = trust.serve_with()
    flags = [f"--tls-cert-file={cert}", f"--tls-private-key-file={key}"]
    scheduler = bench.scheduler("a", proxied=True, identity=trust.identity, flags=flags)
    proxy = proxy_of(scheduler)
    load = bench.load_l1(pods=3_500)
    load.wait_created(100)
    bench.figure("its own renewed certificate is in use after", at_most(10), _renew_own(scheduler, trust), "s")
    trust.put(trust.old, trust.new.certificate)
    time.sleep(11.0)  # a changed file is noticed within ten
    trust.issue(proxy)
    rotated_s = time.time()
    trust.put(trust.new.certificate)
    time.sleep(11.0)
    bench.figure("restarts by a planned rotation", exactly(0), scheduler.restarts)

    trust.put(Authority("podium-wrong-ca").certificate)
    time.sleep(11.0)
    cut(proxy)
    seen = len(proxy.requests)
    time.sleep(30.0)
    bench.figure("requests under the wrong CA", exactly(0), len(proxy.requests) - seen)
    trust.put(trust.new.certificate)
    righted_s = time.time()
    eventually(lambda: len(proxy.requests) > seen, "a connection under the right CA", timeout_s=60.0)
    bench.figure("connected after the wrong CA", at_most(5), time.time() - righted_s, "s")
    load.wait_created()
    bench.settle()
    bench.figure("N after the planned rotation", at_most(5), bench.recovery_s(load, rotated_s), "s")
    # It lost its lease meanwhile and ended; its successor has to see that the old lease is over.
    bench.figure("N after the wrong CA, a lease of 15 s included", at_most(20), bench.recovery_s(load, righted_s), "s")
    bench.note("the scheduler meets the certificate at a proxy of its own, which shows what the API server would")
    bench.verdict()
