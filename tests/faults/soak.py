"""What a soak does at random: faults of processes, of the network, of objects, and pods that come and go meanwhile."""

from __future__ import annotations

import http.client
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence

from tests.faults.bench import FaultBench
from tests.faults.etcd import Etcd
from tests.faults.proxy import (
    CutMidLine,
    DropAnswer,
    DropLines,
    DropRequest,
    DuplicateLines,
    ErrorLine,
    Latency,
    Match,
    Reply,
    ResetPeer,
    Rule,
    SwapLines,
)
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import Client

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
KEPT_PODS = 300
"""So many pods exist at a time, about."""

Fault = Callable[[FaultBench, random.Random], None]


class Churn:
    """Pods that are created at an even pace and deleted some time after they were bound, for each of several schedulers."""

    def __init__(self, bench: FaultBench, schedulers: Sequence[str], rate: float) -> None:
        self._bench = bench
        self._schedulers = schedulers
        self._pause_s = 1.0 / rate
        self._may_run = threading.Event()
        self._is_idle = threading.Event()
        self._is_stopping = False
        self.created = 0
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)
        self._thread.start()

    def go_on(self) -> None:
        self._is_idle.clear()
        self._may_run.set()

    def pause(self) -> None:
        """Create and delete nothing until `go_on`; returns when the last call has ended."""
        self._may_run.clear()
        assert self._is_idle.wait(120), "the churn does not pause"

    def stop(self) -> None:
        self._is_stopping = True
        self._may_run.set()
        self._thread.join(120)

    def _run(self) -> None:
        client = Client(self._bench.plane)
        while not self._is_stopping:
            if not self._may_run.is_set():
                self._is_idle.set()
                self._may_run.wait()
                continue
            try:
                self._turn(client)
            except (OSError, http.client.HTTPException):
                client.close()
                time.sleep(0.2)  # the API server is away
            time.sleep(self._pause_s)
        self._is_idle.set()
        client.close()

    def _turn(self, client: Client) -> None:
        cluster = self._bench.cluster
        name = self._schedulers[self.created % len(self._schedulers)]
        pod = cluster.pod(f"churn-{self.created:06}").scheduler(name).requests(cpu="100m").create_manifest()
        status, _ = client.call("POST", f"/api/v1/namespaces/{cluster.namespace}/pods", pod)
        if status in (201, 409):
            self.created += 1
            oldest = self.created - KEPT_PODS
            if oldest >= 0:
                client.call("DELETE", cluster.pod_path(f"churn-{oldest:06}", "?gracePeriodSeconds=0"))


# --- processes -------------------------------------------------------------------------------------------------------


def api_server_crashes(bench: FaultBench, chance: random.Random) -> None:
    bench.plane.apiserver.kill()
    time.sleep(chance.uniform(0.0, 12.0))
    bench.plane.start_apiserver()


def etcd_hangs(bench: FaultBench, chance: random.Random) -> None:
    etcd = Etcd(bench.plane)
    etcd.freeze()
    time.sleep(chance.uniform(1.0, 12.0))
    etcd.thaw()
    bench.plane.wait_ready()


def _one_of_two(bench: FaultBench, chance: random.Random) -> SupervisedScheduler:
    return bench.schedulers[chance.choice("ab")]


def scheduler_crashes(bench: FaultBench, chance: random.Random) -> None:
    _one_of_two(bench, chance).kill()


def scheduler_is_replaced(bench: FaultBench, chance: random.Random) -> None:
    old = _one_of_two(bench, chance)
    code, _ = old.terminate()
    log = old.daemon.log()
    # One that has just lost its lease to another fault is ending already, with code 1; one that another fault has just
    # had started anew is still being imported, and knows no signal yet.
    is_expected = code == 0 or (code == 1 and "leader election lost" in log) or (code == -signal.SIGTERM and not log)
    assert is_expected, f"{old.name} ended with {code}:\n{log[-4000:]}"
    old.start_again()


def scheduler_freezes(bench: FaultBench, chance: random.Random) -> None:
    frozen = _one_of_two(bench, chance)
    frozen.freeze()
    time.sleep(chance.uniform(1.0, 25.0))
    frozen.thaw()


def lease_is_deleted(bench: FaultBench, chance: random.Random) -> None:
    del chance
    bench.cluster.client.call("DELETE", LEASE_PATH)


# --- objects ---------------------------------------------------------------------------------------------------------


def node_is_replaced(bench: FaultBench, chance: random.Random) -> None:
    """Delete a node with what runs on it, as its controllers would, and add one of the same name."""
    cluster = bench.cluster
    short = f"n{chance.randrange(20)}"
    cluster.delete_node(short)
    on_it = [
        p["metadata"]["name"] for p in cluster.pods() if p["spec"].get("nodeName") == f"{cluster.namespace}-{short}"
    ]
    for name in on_it:
        cluster.client.call("DELETE", cluster.pod_path(name, "?gracePeriodSeconds=0"))
    cluster.create(cluster.node(short, cpu="20", memory="64Gi", pods="110"))


def node_is_cordoned(bench: FaultBench, chance: random.Random) -> None:
    cluster = bench.cluster
    path = f"/api/v1/nodes/{cluster.namespace}-n{chance.randrange(20)}"
    cluster.patch(path, {"spec": {"unschedulable": True}})
    time.sleep(chance.uniform(1.0, 5.0))
    cluster.patch(path, {"spec": {"unschedulable": None}})


# --- network ---------------------------------------------------------------------------------------------------------


def _network(*rules: Rule) -> Fault:
    """Return the fault of these rules, for some seconds, between one of the two schedulers and the API server."""

    def spoil(bench: FaultBench, chance: random.Random) -> None:
        proxy = _one_of_two(bench, chance).proxy
        handles = [proxy.add(rule) for rule in rules]
        time.sleep(chance.uniform(3.0, 20.0))
        for handle in handles:
            handle.remove()

    return spoil


WATCHES = Match(verb="watch")


def _some_binds(probability: float) -> Match:
    return Match(verb="create", resource="pods/binding", probability=probability)


FAULTS: dict[str, Fault] = {
    "API server crashes": api_server_crashes,
    "etcd hangs": etcd_hangs,
    "a scheduler crashes": scheduler_crashes,
    "a scheduler is replaced": scheduler_is_replaced,
    "a scheduler freezes": scheduler_freezes,
    "the lease is deleted": lease_is_deleted,
    "a node is replaced": node_is_replaced,
    "a node is cordoned": node_is_cordoned,
    "watches are cut": _network(Rule(WATCHES, CutMidLine(after_s=1.0))),
    "watches expire": _network(Rule(WATCHES, ErrorLine(410, after_s=2.0))),
    "watch lines are lost": _network(Rule(Match(verb="watch", probability=0.05), DropLines())),
    "watch lines come twice, or swapped": _network(Rule(WATCHES, DuplicateLines()), Rule(WATCHES, SwapLines())),
    "everything is slow": _network(Rule(Match(), Latency(0.05, 0.05))),
    "connections are reset": _network(Rule(Match(probability=0.05), ResetPeer())),
    "binds are lost": _network(Rule(_some_binds(0.2), DropRequest())),
    "answers to binds are lost": _network(Rule(_some_binds(0.2), DropAnswer())),
    "binds fail after they were done": _network(
        Rule(_some_binds(0.3), Reply(504, is_forwarded=True)),
    ),
    "binds conflict after they were done": _network(
        Rule(_some_binds(0.3), Reply(409, is_forwarded=True)),
    ),
    "too many requests": _network(Rule(Match(verb="create", probability=0.3), Reply(429, retry_after_s=1))),
    "a silent network": _network(Rule(Match(probability=0.5), DropRequest(is_silent=True))),
}
