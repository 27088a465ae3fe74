"""The real kube-scheduler beside us, on the same nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.faults.bench import FaultBench, fault
from tests.faults.history.placements import STALENESS_S
from tests.faults.history.record import Json
from tests.faults.kubelet import Kubelets
from tests.faults.loads import L2_PODS, l2_nodes
from tests.faults.results import at_least, exactly
from tests.integration.api import Cluster, eventually

STEADY_S = 30.0
TURNOVER_S = 0.2


class ReplicaSets:
    """Two owners of 200 pods each, one for each scheduler; what was refused is created anew."""

    def __init__(self, cluster: Cluster, schedulers: tuple[str, str]) -> None:
        self._cluster = cluster
        self._schedulers = schedulers
        self._made = 0

    def create(self, scheduler: str) -> None:
        self._made += 1
        pod = self._cluster.pod(f"p{self._made:05}").scheduler(scheduler).requests(cpu="1")
        self._cluster.create(pod)

    def fill(self) -> None:
        for number in range(L2_PODS):
            self.create(self._schedulers[number % 2])

    def replace(self, pod: Json) -> None:
        self._cluster.delete(pod["metadata"]["name"])
        self.create(pod["spec"]["schedulerName"])


@pytest.fixture
def kubelets(bench: FaultBench) -> Iterator[Kubelets]:
    made = Kubelets(bench.cluster, bench.observer)
    yield made
    made.stop()


@fault(51, "kube-scheduler beside us on nodes that are exactly full, 400 pods turned over")
def test_two_schedulers_on_full_nodes(bench: FaultBench, kubelets: Kubelets) -> None:
    """While both rush for the same places, some pods collide; who looks sees the other's pods, so then nobody collides."""
    bench.note(f"a thread refuses pods as kubelets do; a collision: the other's bind was not {STALENESS_S:g} s old")
    bench.scheduler("a")
    theirs = f"{bench.cluster.scheduler}-theirs"
    profile = {"profiles": [{"schedulerName": theirs}]}
    rival = bench.plane.start_kube_scheduler(profile)
    ours = bench.cluster.scheduler
    owners = ReplicaSets(bench.cluster, (ours, theirs))
    bench.cluster.create(*l2_nodes(bench.cluster))
    owners.fill()
    _until_full(bench, owners)
    collided = len(kubelets.refused)
    print(f"{collided} pods collided while the nodes were filled")
    turned_over = _turn_over(bench, owners)
    _until_full(bench, owners)
    late = [pod for _, pod in kubelets.refused[collided:] if pod["spec"]["schedulerName"] == ours]
    bench.settle()
    bound = [pod["spec"]["schedulerName"] for pod in bench.cluster.pods() if pod["spec"].get("nodeName")]
    bench.note(f"{collided} collisions while the nodes were filled, each resolved")
    bench.figure("pods turned over", at_least(50), turned_over)
    bench.figure("our pods refused in the steady state", exactly(0), len(late))
    bench.figure("pods bound at the end", exactly(L2_PODS), len(bound))
    bench.figure("of these ours", exactly(L2_PODS / 2), bound.count(ours))
    bench.verdict()
    rival.stop()


def _until_full(bench: FaultBench, owners: ReplicaSets) -> None:
    """Create anew what was refused until every pod runs."""

    def probe() -> bool:
        pods = bench.cluster.pods()
        for pod in pods:
            if pod["status"].get("phase") == "Failed":
                owners.replace(pod)
        running = [p for p in pods if p["spec"].get("nodeName") and p["status"].get("phase") != "Failed"]
        return len(running) == L2_PODS == len(pods)

    eventually(probe, "every pod to run", timeout_s=120.0, poll_s=0.2)


def _turn_over(bench: FaultBench, owners: ReplicaSets) -> int:
    """End a pod and create its successor, one after the other, of either owner; returns how many."""
    count = 0
    end_s = time.monotonic() + STEADY_S
    while time.monotonic() < end_s:
        running = [p for p in bench.cluster.pods() if p["spec"].get("nodeName")]
        owners.replace(bench.random.choice(running))
        count += 1
        eventually(lambda: all(p["spec"].get("nodeName") for p in bench.cluster.pods()), "its successor to be bound")
        time.sleep(TURNOVER_S)
    return count
