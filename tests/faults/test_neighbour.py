"""The real kube-scheduler beside us, on the same nodes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tests.faults.bench import FaultBench, fault
from tests.faults.history.placements import STALENESS_S
from tests.faults.history.record import Json
from tests.faults.kubelet import Kubelets
from tests.faults.loads import L2_NODES, L2_PODS, l2_nodes
from tests.faults.results import at_least, exactly
from tests.integration.api import Cluster, eventually

ROUNDS, OPEN = 20, 20
"""400 pods are turned over: so many rounds of so many pods for which places are opened together."""
STEADY_S = 15.0
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

    def rush(self, pods: Sequence[Json]) -> None:
        """Create the successors of these pods while there is no room, then end the pods: both rush for each place."""
        for pod in pods:
            self.create(pod["spec"]["schedulerName"])
        for number in range(len(pods)):
            self._cluster.wait_unschedulable(f"p{self._made - number:05}", timeout_s=60.0)
        self._cluster.delete(*(pod["metadata"]["name"] for pod in pods))


@pytest.fixture
def kubelets(bench: FaultBench) -> Iterator[Kubelets]:
    made = Kubelets(bench.cluster, bench.observer)
    yield made
    made.stop()


@fault(51, "kube-scheduler beside us on full nodes, 400 pods turned over, 20 at a time; then for 15 s one at a time")
def test_two_schedulers_on_full_nodes(bench: FaultBench, kubelets: Kubelets) -> None:
    """Where both rush for a place pods collide, and each is replaced; who looks sees the other's pods and collides no more."""
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
    before = len(kubelets.refused)
    for _ in range(ROUNDS):
        running = bench.cluster.pods()
        owners.rush([pod for name in (ours, theirs) for pod in _some(bench, running, name)])
        _until_full(bench, owners)
    collided = len(kubelets.refused)
    turned_over = _turn_over(bench, owners)
    _until_full(bench, owners)
    late = [pod for _, pod in kubelets.refused[collided:] if pod["spec"]["schedulerName"] == ours]
    bench.settle()
    bound = [pod["spec"]["schedulerName"] for pod in bench.cluster.pods() if pod["spec"].get("nodeName")]
    bench.figure("pods turned over in a rush", exactly(L2_PODS), ROUNDS * OPEN)
    in_rush = [pod["spec"]["schedulerName"] for _, pod in kubelets.refused[before:collided]]
    bench.figure("pods that collided in it", at_least(1), len(in_rush))
    bench.note(f"{in_rush.count(ours)} of the collisions cost us a pod, {in_rush.count(theirs)} kube-scheduler")
    bench.figure("pods turned over in the steady state", at_least(20), turned_over)
    bench.figure("our pods refused in the steady state", exactly(0), len(late))
    bench.figure("pods bound at the end", exactly(L2_PODS), len(bound))
    bench.figure("of these ours", exactly(L2_PODS / 2), bound.count(ours))
    bench.verdict()
    rival.stop()


def _some(bench: FaultBench, pods: Sequence[Json], scheduler: str) -> Sequence[Json]:
    """Return half of the pods of a round, of one owner."""
    return bench.random.sample([pod for pod in pods if pod["spec"]["schedulerName"] == scheduler], OPEN // 2)


def _until_full(bench: FaultBench, owners: ReplicaSets) -> None:
    """Create anew what was refused until every pod runs, with none too many on any node: kubelets need a moment."""
    nodes = [node["metadata"]["name"] for node in bench.cluster.nodes()]

    def probe() -> bool:
        pods = bench.cluster.pods()
        for pod in pods:
            if pod["status"].get("phase") == "Failed":
                owners.replace(pod)
        running = Counter(p["spec"].get("nodeName") for p in pods if p["status"].get("phase") != "Failed")
        return len(pods) == L2_PODS and running == dict.fromkeys(nodes, L2_PODS // L2_NODES)

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
