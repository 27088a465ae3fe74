"""What the API server's own audit log says about us: nothing refused, nothing idle, nothing written by a loser."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import UNTHROTTLED, ControlPlane, rbac_documents
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon, make_scraper
from tests.integration.daemon import LEASE, SCHEDULER_USER

RIVAL_USER = "podium-rival"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [SCHEDULER_USER, RIVAL_USER]}, {"level": "None"}],
}
EVER = datetime.min.replace(tzinfo=UTC)
SHORT_LEASE = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}

REASONS = {
    "get pods": "a pod is read back when its binding had no answer",
    "pods delete": "preemption: nobody had to make room in this run",
    "patch persistentvolumes": "volume binding: no claim was bound in this run",
    "patch persistentvolumeclaims": "volume binding: no claim was bound in this run",
    "patch events": "a series is patched when the same event comes again six minutes later",
}
"""Why a right is granted that this run does not use."""


@dataclass(frozen=True, slots=True)
class Right:
    verb: str
    group: str
    resource: str

    def reason(self) -> str:
        keys = [f"{self.resource} {self.verb}", f"{self.verb} {self.resource}"]
        return next((REASONS[key] for key in keys if key in REASONS), "")


class Audit:
    """The audit log of one control plane."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def requests(self, user: str) -> list[dict[str, Any]]:
        """Return what a user has asked, one entry a finished request or opened watch."""
        events = map(json.loads, self._path.read_text().splitlines())
        return [e for e in events if e["user"]["username"] == user and e["stage"] != "Panic"]

    def writes(self, user: str, *, after: datetime = EVER) -> list[dict[str, Any]]:
        """Return the changes that a user has asked for and the server has received after a moment."""
        return [
            e
            for e in self.requests(user)
            if e["verb"] in ("create", "patch", "update", "delete")
            and datetime.fromisoformat(e["requestReceivedTimestamp"]) > after
        ]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Audit]]:
    """A control plane of its own that writes an audit log."""
    directory = tmp_path_factory.mktemp("audit")
    (directory / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    log = directory / "audit.log"
    flags = [f"--audit-policy-file={directory}/policy.yaml", f"--audit-log-path={log}"]
    with ControlPlane.start(extra_flags=(*UNTHROTTLED, *flags)) as plane:
        make_scraper(plane)
        yield plane, Audit(log)


@pytest.fixture
def audited_cluster(audited: tuple[ControlPlane, Audit]) -> Iterator[Cluster]:
    made = Cluster(audited[0], "audited")
    try:
        yield made
    finally:
        made.close()


def test_exactly_the_documented_rights_are_used(
    audited: tuple[ControlPlane, Audit], audited_cluster: Cluster, start_daemon: StartDaemon
) -> None:
    """A run with election, binds, failures and scrapes: no answer is 403, and every right not used has its reason."""
    plane, audit = audited
    cluster = audited_cluster
    daemon = start_daemon(
        cluster.scheduler, plane=plane, kubeconfig=plane.scheduler_identity(SCHEDULER_USER), elect=True
    )
    daemon.wait_ready()
    cluster.create(*(cluster.node(f"n{i}") for i in range(3)))
    cluster.create(*(cluster.pod(f"p{i}").requests(cpu="1") for i in range(10)))
    cluster.create(cluster.pod("big").requests(cpu="64"))
    cluster.wait_bound(*(f"p{i}" for i in range(10)))
    cluster.wait_unschedulable("big")
    eventually(lambda: cluster.events("p0", "Scheduled"), "an event")
    daemon.metrics()
    token = _service_account_token(cluster)
    assert daemon.get("/metrics", anonymous=True, headers={"Authorization": f"Bearer {token}"})[0] == 403
    assert daemon.terminate()[0] == 0

    requests = audit.requests(SCHEDULER_USER)
    refused = [(e["verb"], e["requestURI"]) for e in requests if e["responseStatus"]["code"] in (401, 403)]
    assert refused == [], "rights that are missing in deploy/base/rbac.yaml"
    idle = _granted() - {right for e in requests if (right := _used(e)) is not None}
    unexplained = {right for right in idle if not right.reason()}
    for right in sorted(idle, key=lambda r: (r.group, r.resource, r.verb)):
        print(f"not used: {right.verb} {right.resource}.{right.group}: {right.reason() or '???'}")
    assert unexplained == set(), "rights in deploy/base/rbac.yaml that nothing uses"
    paths = {e["requestURI"].partition("?")[0] for e in requests if "objectRef" not in e}
    assert paths <= {"/readyz", "/apis/events.k8s.io/v1"}, "requests beyond resources"


def test_frozen_leader_changes_nothing_when_it_thaws(
    audited: tuple[ControlPlane, Audit], audited_cluster: Cluster, start_daemon: StartDaemon
) -> None:
    """SIGSTOP beyond the lease, SIGCONT: the old leader decides nothing more and exits with 1; the other has taken over.

    Requests that were in the HTTP client's hands at the freeze may still leave it at the thaw; the gate is before that.
    They must not change anything any more.
    """
    plane, audit = audited
    cluster = audited_cluster
    settings = {"leaderElect": True, "resourceName": LEASE, "resourceNamespace": "kube-system", **SHORT_LEASE}
    options: dict[str, Any] = {"plane": plane, "configuration": {"leaderElection": settings}}
    frozen = start_daemon(cluster.scheduler, kubeconfig=plane.scheduler_identity(SCHEDULER_USER), **options)
    eventually(lambda: "acquired leader lease" in frozen.log(), "the first to lead")
    standby = start_daemon(cluster.scheduler, kubeconfig=plane.scheduler_identity(RIVAL_USER), **options)
    frozen.wait_ready()
    standby.wait_ready()
    cluster.create(cluster.node(cpu="1000", pods="1000").taint("closed"))
    cluster.create(*(cluster.pod(f"p{i}") for i in range(300)))
    cluster.wait_unschedulable("p299")
    cluster.patch(f"/api/v1/nodes/{cluster.namespace}-n", {"spec": {"taints": None}})
    cluster.wait_begun("p5")
    frozen.process.send_signal(signal.SIGSTOP)
    frozen_s = time.monotonic()
    before = cluster.bound()
    try:
        eventually(lambda: "acquired leader lease" in standby.log(), "the standby to lead")
        print(f"standby led {time.monotonic() - frozen_s:.1f} s after the freeze, with a lease of 6 s")
        cluster.create(*(cluster.pod(f"late{i}") for i in range(10)))
        bound = cluster.wait_bound()
    finally:
        thawed_at = datetime.now(UTC)
        frozen.process.send_signal(signal.SIGCONT)
    assert frozen.wait_exit() == 1
    late = [e for e in audit.writes(SCHEDULER_USER, after=thawed_at) if e["objectRef"]["resource"] != "leases"]
    print(f"{len(late)} requests left the frozen process at the thaw")
    assert {e["objectRef"].get("subresource") for e in late} <= {"binding"}, "nothing was begun after the thaw"
    assert [e["requestURI"] for e in late if e["responseStatus"]["code"] < 300] == []
    assert bound == cluster.bound()
    assert before.items() <= bound.items()
    assert len(before) < 300, "everything was bound before the freeze: nothing was tested"
    assert "late0" in {e["objectRef"]["name"] for e in audit.writes(RIVAL_USER) if "name" in e["objectRef"]}
    assert "Traceback" not in frozen.log()


def _granted() -> set[Right]:
    """Return every right of the deployed roles."""
    documents = [d for d in rbac_documents() if d["kind"] in ("ClusterRole", "Role")]
    return {
        Right(verb, group, resource)
        for document in documents
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _used(event: dict[str, Any]) -> Right | None:
    target = event.get("objectRef")
    if target is None:
        return None
    resource = target["resource"] + (f"/{target['subresource']}" if "subresource" in target else "")
    return Right(event["verb"], target.get("apiGroup", ""), resource)


def _service_account_token(cluster: Cluster) -> str:
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts"
    cluster.client.ok("POST", path, {"metadata": {"name": "curious"}})
    answer = cluster.client.ok("POST", f"{path}/curious/token", {"spec": {"expirationSeconds": 600}})
    token: str = answer["status"]["token"]
    return token
