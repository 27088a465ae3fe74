"""Two schedulers, one lease: one decides at a time, the other takes over quickly, and a loser writes nothing more."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime

import pytest

from tests.integration.api import Cluster, Json, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon

HAND_OVER_S = 2.0
TAKE_OVER_S = 20.0
SLACK_S = 3.0
"""Two cores are shared with whatever else runs; the times themselves are printed, see `-rP`."""


class Pair:
    """Two daemons for one scheduler name; `leader` is the one that was first."""

    def __init__(self, cluster: Cluster, start: StartDaemon, lease: str) -> None:
        self._cluster = cluster
        self._lease = lease
        settings = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "kube-system"}
        configuration = {"leaderElection": settings}
        self.leader: Daemon = start(cluster.scheduler, configuration=configuration)
        eventually(lambda: "acquired leader lease" in self.leader.log(), "the first to lead")
        self.standby: Daemon = start(cluster.scheduler, configuration=configuration)
        self.leader.wait_ready()
        self.standby.wait_ready()
        eventually(lambda: "new leader elected" in self.standby.log(), "the second to see the first")

    def lease(self) -> Json:
        spec: Json = self._cluster.client.ok("GET", self._lease)["spec"]
        return spec

    def leads(self, daemon: Daemon) -> bool:
        return daemon.metrics().total("leader_election_master_status") == 1


@pytest.fixture
def pair(cluster: Cluster, start_daemon: StartDaemon, lease: str) -> Pair:
    cluster.create(cluster.node(cpu="100"))
    return Pair(cluster, start_daemon, lease)


def test_one_decides_and_hands_over_when_told_to_stop(cluster: Cluster, pair: Pair) -> None:
    """SIGTERM: exit 0, the lease is released, the standby binds within 2 s."""
    cluster.create(*(cluster.pod(f"p{i}") for i in range(20)))
    cluster.wait_bound()
    assert pair.leads(pair.leader)
    assert not pair.leads(pair.standby)
    assert pair.standby.metrics().total("scheduler_schedule_attempts_total") == 0
    sizes = {daemon.metrics().total("scheduler_cache_size", type="pods") for daemon in (pair.leader, pair.standby)}
    assert len(sizes) == 1, "a standby is warm"
    transitions = pair.lease()["leaseTransitions"]

    pair.leader.process.send_signal(signal.SIGTERM)
    cluster.create(*(cluster.pod(f"q{i}") for i in range(20)))
    code = pair.leader.wait_exit()
    released_s = time.monotonic()
    cluster.wait_bound()
    handed_over_s = time.monotonic() - released_s
    print(f"bound {handed_over_s:.2f} s after the leader had ended")
    assert code == 0
    assert handed_over_s < HAND_OVER_S + SLACK_S
    assert "released leader lease" in pair.leader.log()
    assert pair.leads(pair.standby)
    assert pair.lease()["leaseTransitions"] == transitions + 1
    eventually(lambda: len(_told_about_the_lease(cluster)) >= 2, "each of the two has said that it leads")
    assert all(note.endswith(" became leader") for note in _told_about_the_lease(cluster))


def _told_about_the_lease(cluster: Cluster) -> set[str]:
    events = cluster.client.ok("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events")["items"]
    return {event["note"] for event in events if event["reason"] == "LeaderElection"}


def test_standby_takes_over_from_a_dead_leader(cluster: Cluster, pair: Pair) -> None:
    """kill -9: the lease runs out, the standby binds within 20 s; nothing is lost or bound twice."""
    cluster.create(*(cluster.pod(f"p{i}") for i in range(50)))
    eventually(lambda: len(cluster.bound()) > 5, "the first binds", poll_s=0.005)
    pair.leader.process.kill()
    died_s = time.monotonic()
    cluster.create(cluster.pod("after"))
    cluster.wait_bound(timeout_s=TAKE_OVER_S + SLACK_S)
    print(f"all bound {time.monotonic() - died_s:.2f} s after the leader was killed")
    assert pair.leads(pair.standby)


def test_leader_without_its_lease_exits(cluster: Cluster, pair: Pair) -> None:
    """Somebody takes the lease away by hand: exit 1 at once, and what is pending stays for the next leader."""
    document = cluster.client.ok("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    document["spec"] |= {"holderIdentity": "somebody-else", "renewTime": now, "leaseDurationSeconds": 3}
    cluster.client.ok("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium", document)
    assert pair.leader.wait_exit(timeout_s=15) == 1
    assert "leader election lost" in pair.leader.log()
    cluster.create(cluster.pod())
    cluster.wait_bound(timeout_s=TAKE_OVER_S + SLACK_S)
    assert pair.leads(pair.standby)


def test_standby_that_never_led_stops_at_once(cluster: Cluster, start_daemon: StartDaemon, lease: str) -> None:
    """With delayCacheUntilActive a standby has not even begun to watch; SIGTERM ends it with 0 all the same."""
    leader = start_daemon(cluster.scheduler, elect=True)
    leader.wait_ready()
    standby = start_daemon(cluster.scheduler, elect=True, configuration={"delayCacheUntilActive": True})
    eventually(lambda: "new leader elected" in standby.log(), "the standby to see the leader")
    assert "watch Node" not in standby.health("/readyz?verbose")[1]
    code, seconds = standby.terminate()
    assert code == 0
    assert seconds < 10
    del lease
