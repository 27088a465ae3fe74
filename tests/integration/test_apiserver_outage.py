"""The API server dies and comes back: scheduling goes on by itself, without a lost or doubly bound pod."""

from __future__ import annotations

import signal
import time

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, Json, eventually
from tests.integration.checker import violations
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import LEASE

RESUME_S = 3.0
SLACK_S = 4.0
"""Two cores are shared with whatever else runs; the promise itself is printed, see `-rP`."""

SHORT_ELECTION = {
    "leaderElect": True,
    "resourceName": LEASE,
    "resourceNamespace": "kube-system",
    "leaseDuration": "6s",
    "renewDeadline": "4s",
    "retryPeriod": "1s",
}

PODS = 800
NODES = 10
A_NODE = str(PODS // NODES)
OPEN = {"open": "yes"}


@pytest.mark.parametrize("elect", [False, True], ids=["without election", "as leader"])
def test_binding_goes_on_after_a_crash(
    elect: bool, control_plane: ControlPlane, cluster: Cluster, start_daemon: StartDaemon, lease: str
) -> None:
    """kill -9 in the middle of 800 binds, back on the same etcd: the rest follows within 3 s, each pod once."""
    cluster.create(*(cluster.node(f"n{i}", cpu=A_NODE, pods=A_NODE) for i in range(NODES)))  # exactly full at the end
    daemon = start_daemon(cluster.scheduler, elect=elect)
    daemon.wait_ready()
    created = _fill(cluster)
    control_plane.apiserver.kill()
    time.sleep(1.0)  # an outage, not a blink
    control_plane.start_apiserver()
    ready_s = time.monotonic()
    before = len(cluster.bound())
    _open_last(cluster)
    eventually(lambda: len(cluster.bound()) > before, "the first bind after the crash", poll_s=0.01)
    resumed_s = time.monotonic() - ready_s
    assert len(cluster.wait_bound()) == PODS
    done_s = time.monotonic() - ready_s
    print(f"bound before the crash: {before}; first bind {resumed_s:.2f} s after ready, all after {done_s:.2f} s")
    assert resumed_s < RESUME_S + SLACK_S
    pods = cluster.pods()
    assert violations(cluster.nodes(), pods, [cluster.scheduler]) == []
    assert {p["metadata"]["uid"] for p in pods} == {p["metadata"]["uid"] for p in created}
    eventually(lambda: daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 0, "no assumed pod left")
    assert daemon.process.is_running
    del lease


def test_binding_goes_on_after_etcd_was_frozen(
    control_plane: ControlPlane, cluster: Cluster, start_daemon: StartDaemon
) -> None:
    """etcd hangs for 6 s while binds are under way: they time out or answer 5xx, and what became of them is read back."""
    cluster.create(*(cluster.node(f"n{i}", cpu=A_NODE, pods=A_NODE) for i in range(NODES)))
    daemon = start_daemon(cluster.scheduler)
    daemon.wait_ready()
    _fill(cluster)
    control_plane.etcd.send_signal(signal.SIGSTOP)
    try:
        time.sleep(6.0)  # longer than any write may take
        assert daemon.health("/livez")[0] == 200
    finally:
        control_plane.etcd.send_signal(signal.SIGCONT)
    thawed_s = time.monotonic()
    control_plane.wait_ready()
    before = len(cluster.bound())
    _open_last(cluster)
    assert len(cluster.wait_bound()) == PODS
    print(f"bound before and in the freeze: {before}; all {time.monotonic() - thawed_s:.2f} s after its end")
    assert violations(cluster.nodes(), cluster.pods(), [cluster.scheduler]) == []
    eventually(lambda: daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 0, "no assumed pod left")


def test_leader_that_cannot_renew_exits(
    control_plane: ControlPlane, cluster: Cluster, start_daemon: StartDaemon, lease: str
) -> None:
    """An outage longer than the lease: exit 1, so that a supervisor starts it anew."""
    del lease
    daemon = start_daemon(cluster.scheduler, configuration={"leaderElection": SHORT_ELECTION})
    daemon.wait_ready()
    control_plane.apiserver.kill()
    killed_s = time.monotonic()
    try:
        code = daemon.wait_exit()
    finally:
        control_plane.start_apiserver()
    print(f"exit {code} after {time.monotonic() - killed_s:.1f} s")
    assert code == 1
    assert "lost leader lease" in daemon.log()
    assert "Traceback" not in daemon.log()


def test_daemon_waits_for_an_absent_apiserver(
    control_plane: ControlPlane, cluster: Cluster, start_daemon: StartDaemon
) -> None:
    """Started too early: it says so, is alive but not ready, and begins as soon as there is a server."""
    cluster.create(cluster.node())
    cluster.create(cluster.pod())
    control_plane.apiserver.kill()
    try:
        daemon = start_daemon(cluster.scheduler)
        eventually(lambda: daemon.health("/livez")[0] == 200, "the daemon to be alive")
        eventually(lambda: "lost the api server" in daemon.log(), "a word about the absent server")
        status, text = daemon.health("/readyz?verbose")
        assert status == 500
        assert "[-]sched-handler-sync failed: reason withheld" in text
        assert "watch Node: not synced" in text
        assert "Traceback" not in daemon.log()
    finally:
        control_plane.start_apiserver()
    ready_s = time.monotonic()
    cluster.wait_bound()
    print(f"first bind {time.monotonic() - ready_s:.2f} s after the server was ready")
    daemon.wait_ready()
    assert "reached the api server again" in daemon.log()


def _fill(cluster: Cluster) -> list[Json]:
    """Have pods wait for a label, set it on all nodes but the last, and come back while the others may be bound.

    The last node is opened by `_open_last`: however fast the scheduler and slow the machine, something is left to bind.
    """
    created = cluster.create(*(cluster.pod(f"p{i}").requests(cpu="1").node_selector(OPEN) for i in range(PODS)))
    cluster.wait_unschedulable(f"p{PODS - 1}")
    first, *others, _ = cluster.nodes()
    _label(cluster, first)
    cluster.wait_begun("p20")
    for node in others:  # last of all, so that a fast scheduler is not done before the crash
        _label(cluster, node)
    return created


def _open_last(cluster: Cluster) -> None:
    _label(cluster, cluster.nodes()[-1])


def _label(cluster: Cluster, node: Json) -> None:
    cluster.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": OPEN}})
