"""What the API server's own audit log says about a leader that was frozen: nothing is written by a loser."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controlplane.cluster import UNTHROTTLED, ControlPlane
from tests.integration.api import Cluster, eventually
from tests.integration.audit import Audit, audit_flags
from tests.integration.conftest import StartDaemon, make_scraper
from tests.integration.daemon import LEASE, SCHEDULER_USER

RIVAL_USER = "podium-rival"
SHORT_LEASE = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Audit]]:
    """A control plane of its own that writes an audit log."""
    directory = tmp_path_factory.mktemp("audit")
    flags = audit_flags(directory, [SCHEDULER_USER, RIVAL_USER])
    with ControlPlane.start(extra_flags=(*UNTHROTTLED, *flags)) as plane:
        make_scraper(plane)
        yield plane, Audit(directory)


@pytest.fixture
def audited_cluster(audited: tuple[ControlPlane, Audit]) -> Iterator[Cluster]:
    made = Cluster(audited[0], "audited")
    try:
        yield made
    finally:
        made.close()


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
    cluster.create(*(cluster.node(name, cpu="1000", pods="200").taint("closed") for name in ("first", "second")))
    cluster.create(*(cluster.pod(f"p{i}") for i in range(300)))
    cluster.wait_unschedulable("p299")
    _open(cluster, "first")
    cluster.wait_begun("p5")
    frozen.process.send_signal(signal.SIGSTOP)
    frozen_s = time.monotonic()
    before = cluster.bound()
    try:
        eventually(lambda: "acquired leader lease" in standby.log(), "the standby to lead")
        print(f"standby led {time.monotonic() - frozen_s:.1f} s after the freeze, with a lease of 6 s")
        _open(cluster, "second")
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
    assert "late0" in {e["objectRef"]["name"] for e in audit.writes(RIVAL_USER) if "name" in e["objectRef"]}
    assert "Traceback" not in frozen.log()


def _open(cluster: Cluster, node: str) -> None:
    cluster.patch(f"/api/v1/nodes/{cluster.namespace}-{node}", {"spec": {"taints": None}})
