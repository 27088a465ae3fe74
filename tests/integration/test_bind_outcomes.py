"""What can happen to a pod or its node between the decision and the binding; a pod is bound once and never lost.

A third-party plugin holds pods labelled `hold` in PreBind, so each test acts at exactly that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.testing.pod_builder import PodBuilder
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon
from tests.integration.third_party.install import install, profile_with


class Held:
    """A daemon that holds pods in PreBind, and the files through which the test speaks with it."""

    def __init__(self, cluster: Cluster, start: StartDaemon, directory: Path) -> None:
        environment = install(directory / "site")
        self._directory = directory / "signals"
        self._directory.mkdir()
        self._cluster = cluster
        profile = profile_with(cluster.scheduler, "HoldPreBind", {"directory": str(self._directory)})
        self.daemon: Daemon = start(profile, environment=environment)
        self.daemon.wait_ready()

    def release_all(self) -> None:
        """Let everything go, so that the daemon can end at once."""
        for path in self._directory.glob("*.held"):
            path.with_suffix(".go").touch()

    def pod(self, name: str = "p") -> PodBuilder:
        return self._cluster.pod(name).label("hold", "yes")

    def wait(self, name: str = "p") -> str:
        """Wait until the pod is held, and return the node that was chosen."""
        return eventually(lambda: self._read(f"{name}.held"), f"{name} to be held in PreBind")

    def release(self, name: str = "p") -> None:
        (self._directory / f"{name}.held").unlink()
        (self._directory / f"{name}.go").touch()

    def forbid(self, name: str = "p") -> None:
        """Hold the pod of this name again the next time."""
        (self._directory / f"{name}.go").unlink()

    def was_undone(self, name: str = "p") -> bool:
        return (self._directory / f"{name}.undone").exists()

    def outcome(self, name: str) -> float:
        return self.daemon.metrics().total("podium_bind_outcomes_total", outcome=name)

    def assumed(self) -> float:
        return self.daemon.metrics().total("scheduler_cache_size", type="assumed_pods")

    def _read(self, name: str) -> str:
        path = self._directory / name
        return path.read_text() if path.exists() else ""


@pytest.fixture
def held(cluster: Cluster, start_daemon: StartDaemon, tmp_path: Path) -> Iterator[Held]:
    made = Held(cluster, start_daemon, tmp_path)
    yield made
    made.release_all()


def test_held_pod_is_bound_once_it_may_go(cluster: Cluster, held: Held) -> None:
    """The ordinary way: decided, nominated while PreBind takes its time, bound, one event."""
    cluster.create(cluster.node())
    cluster.create(held.pod())
    node_name = held.wait()
    eventually(lambda: cluster.get()["status"].get("nominatedNodeName") == node_name, "the nomination to be written")
    assert cluster.bound() == {}
    held.release()
    assert cluster.wait_bound() == {"p": node_name}
    assert "nominatedNodeName" not in cluster.get()["status"]
    eventually(lambda: len(cluster.events("p", "Scheduled")) == 1, "the Scheduled event")
    eventually(lambda: held.assumed() == 0, "no pod to be assumed any more")
    assert held.outcome("bound") == 1


def test_pod_deleted_in_flight_gives_its_place_back(cluster: Cluster, held: Held) -> None:
    """The place is free again while the binding of the deleted pod still hangs."""
    cluster.create(cluster.node(cpu="1"))
    cluster.create(held.pod().requests(cpu="1"))
    held.wait()
    cluster.create(cluster.pod("next").requests(cpu="1"))
    cluster.wait_unschedulable("next")
    cluster.delete("p")
    assert cluster.wait_bound("next")
    held.release()
    eventually(lambda: held.outcome("gone") == 1, "the outcome gone")
    assert held.was_undone()
    assert held.assumed() == 0


def test_pod_recreated_under_its_name_is_a_new_pod(cluster: Cluster, held: Held) -> None:
    """The binding of the old pod never touches the new one; that one is scheduled by itself."""
    cluster.create(cluster.node())
    (old,) = cluster.create(held.pod())
    held.wait()
    cluster.delete("p")
    (new,) = cluster.create(cluster.pod().set("spec.nodeSelector", {"nowhere": "yes"}))
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    cluster.wait_unschedulable()
    held.release()
    eventually(lambda: held.outcome("gone") == 1, "the outcome gone")
    assert cluster.bound() == {}, "the old decision must not bind the new pod"
    cluster.create(cluster.node("right").label("nowhere", "yes"))
    assert cluster.wait_bound() == {"p": f"{cluster.namespace}-right"}
    assert held.outcome("bound") == 1


def test_node_deleted_before_the_bind_is_not_used(cluster: Cluster, held: Held) -> None:
    """The API server would bind a pod to a node that does not exist; the pod goes to another one instead."""
    cluster.create(cluster.node("first"))
    cluster.create(held.pod())
    assert held.wait().endswith("first")
    cluster.create(cluster.node("second"))
    cluster.delete_node("first")
    cluster.create(cluster.pod("probe").node_selector({"kubernetes.io/hostname": f"{cluster.namespace}-first"}))
    eventually(
        lambda: cluster.wait_unschedulable("probe")["message"].startswith("0/1 nodes"), "the deletion to be known"
    )
    held.release()
    assert cluster.wait_bound("p") == {"p": f"{cluster.namespace}-second"}
    assert held.was_undone()


def test_pod_bound_by_somebody_else_is_lost_without_a_word(cluster: Cluster, held: Held) -> None:
    """Somebody was faster: our place is given back, nobody claims that scheduling failed."""
    cluster.create(cluster.node("ours", cpu="1"))
    cluster.create(held.pod().requests(cpu="1"))
    held.wait()
    cluster.create(cluster.node("theirs", cpu="1").taint("reserved"))
    assert cluster.bind("p", f"{cluster.namespace}-theirs")[0] == 201
    held.release()
    eventually(lambda: held.outcome("lost") == 1, "the outcome lost")
    cluster.create(cluster.pod("next").requests(cpu="1"))
    assert cluster.wait_bound("next")["next"].endswith("ours")
    assert cluster.bound()["p"].endswith("theirs")
    assert cluster.events("p", "FailedScheduling") == []


def test_pod_being_deleted_is_not_bound(cluster: Cluster, held: Held) -> None:
    """The server refuses to bind (409) a pod that is being deleted; it is gone, not retried for ever."""
    cluster.create(cluster.node())
    cluster.create(held.pod().set("metadata.finalizers", ["example.com/keep"]))
    held.wait()
    cluster.client.ok("DELETE", cluster.pod_path("p"))
    held.release()
    eventually(lambda: held.assumed() == 0, "the place to be given back")
    assert cluster.bound() == {}
    cluster.patch(cluster.pod_path("p"), {"metadata": {"finalizers": None}})


def test_no_pod_is_bound_twice(cluster: Cluster, start_daemon: StartDaemon) -> None:
    """A rival binds half of the pods while we bind all: each pod is bound once, and none is left over."""
    cluster.create(*(cluster.node(f"n{i}", cpu="100") for i in range(3)))
    cluster.create(cluster.node("rival", cpu="100").taint("reserved"))
    daemon = start_daemon(cluster.scheduler)
    daemon.wait_ready()
    names = [f"p{i}" for i in range(120)]
    rivals = 0
    for index, name in enumerate(names):
        cluster.create(cluster.pod(name).requests(cpu="10m"))
        if index % 2:
            rivals += cluster.bind(name, f"{cluster.namespace}-rival")[0] == 201
    bound = cluster.wait_bound()
    assert len(bound) == len(names)
    assert sum(1 for node_name in bound.values() if node_name.endswith("rival")) == rivals

    def settled() -> bool:
        metrics = daemon.metrics()
        ours = metrics.total("podium_bind_outcomes_total", outcome="bound")
        assumed = metrics.total("scheduler_cache_size", type="assumed_pods")
        return ours + rivals == len(names) and assumed == 0

    eventually(settled, "our binds and the rival's to add up to the number of pods")
    assert "WARNING" not in daemon.log(), "losing a race is an ordinary thing"
