"""etcd hangs, is full, or goes back in time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.bench import FaultBench, fault
from tests.faults.etcd import Etcd
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import eventually

CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
FILLER_BYTES = 900_000


@fault(4, "etcd frozen (SIGSTOP) for 8 s under L1")
def test_etcd_hangs_for_8_seconds(bench: FaultBench) -> None:
    """Binds have no answer after 4 s: each is read back until it is known what became of it, and the leader stays."""
    scheduler = bench.scheduler("a")
    load = bench.load_l1(closed=True)
    load.wait_created(500)
    bench.open_nodes(load)
    etcd = Etcd(bench.plane)
    etcd.freeze()
    frozen_s = time.monotonic()
    before = bench.num_bound()
    unknown = 0.0
    while time.monotonic() < frozen_s + 8.0:
        unknown = max(unknown, _unknown(scheduler))
        time.sleep(0.2)
    etcd.thaw()
    thawed_s = time.time()
    bench.plane.wait_ready()
    bench.settle()
    bench.figure("bound before", at_most(999), before)
    bench.figure("N", at_most(3), bench.recovery_s(load, thawed_s), "s")
    bench.figure("binds unknown meanwhile", at_least(1), unknown)
    bench.figure("binds still unknown", exactly(0), _unknown(scheduler))
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.verdict()


@fault(5, "etcd frozen for 30 s under L2, API server's time limit 5 s", flags=("--request-timeout=5s",))
def test_etcd_hangs_for_30_seconds(bench: FaultBench) -> None:
    """Nobody knows what became of the binds under way; their places are not given to others until it is known."""
    bench.note("without election: a leader ends when it cannot renew for 10 s, and takes what it did not know with it")
    scheduler = bench.scheduler("a", elect=False)
    load = bench.load_l2(closed=True).wait_created()
    bench.open_nodes(load)
    etcd = Etcd(bench.plane)
    etcd.freeze()
    frozen_s = time.time()
    samples: list[tuple[float, float]] = []
    while time.time() < frozen_s + 30.0:
        time.sleep(0.5)
        if time.time() > frozen_s + 4.0:  # answers that were on their way have come
            samples.append(_places(scheduler))
    etcd.thaw()
    thawed_s = time.time()
    bench.plane.wait_ready()
    bench.settle()
    tried = Counter(r.key for r in bench.history().binds() if frozen_s < r.received_s < thawed_s)
    bench.figure("places taken meanwhile", at_least(1), max(taken for taken, _ in samples))
    bench.figure("places given up while unknown", at_most(0), _given_up(samples))
    bench.figure("most binds sent for one pod meanwhile", exactly(1), max(tried.values()))
    bench.figure("N", at_most(10), bench.recovery_s(load, thawed_s), "s")
    bench.figure("binds still unknown", exactly(0), _assumed(scheduler))
    bench.verdict()


@fault(
    5, "etcd frozen for 30 s under L1, leader and standby, API server's time limit 5 s", flags=("--request-timeout=5s",)
)
def test_etcd_hangs_beyond_the_lease(bench: FaultBench) -> None:
    """The leader cannot renew and ends with binds under way; whoever leads next lists what became of them."""
    leader = bench.scheduler("a")
    assert bench.leader is leader
    standby = bench.scheduler("b")
    load = bench.load_l1(closed=True)
    load.wait_created(500)
    bench.open_nodes(load)
    changes = bench.changes_of_leader()
    etcd = Etcd(bench.plane)
    etcd.freeze()
    frozen_s = time.time()
    ended_s = leader.wait_exit(1)
    time.sleep(max(0.0, frozen_s + 30.0 - time.time()))
    etcd.thaw()
    thawed_s = time.time()
    bench.plane.wait_ready()
    bench.settle()
    bench.figure("leader has ended after", at_most(20), ended_s - frozen_s, "s")
    bench.figure("N", at_most(10), bench.recovery_s(load, thawed_s), "s")
    bench.figure("changes of leader", exactly(1), bench.changes_of_leader() - changes)
    bench.figure("restarts", exactly(1), leader.restarts + standby.restarts)
    bench.verdict()


def _unknown(scheduler: SupervisedScheduler) -> float:
    return scheduler.daemon.metrics().total("podium_binds_unknown")


def _assumed(scheduler: SupervisedScheduler) -> float:
    return scheduler.daemon.metrics().total("scheduler_cache_size", type="assumed_pods")


def _places(scheduler: SupervisedScheduler) -> tuple[float, float]:
    """Return the places that binds hold whose end is not known, and how many binds have had a known end so far."""
    total = scheduler.daemon.metrics().total
    known = sum(total("podium_bind_outcomes_total", outcome=end) for end in ("bound", "unknown_bound", "unreachable"))
    return total("scheduler_cache_size", type="assumed_pods"), known


def _given_up(samples: Sequence[tuple[float, float]]) -> float:
    """Return how many places became free at most from one sample to the next that no known end accounts for.

    The end is counted just before the place is free, thus perhaps in the sample before.
    """
    steps = zip(samples, samples[1:], samples[2:], strict=False)
    return max(before - after - (known - known_before) for (_, known_before), (before, _), (after, known) in steps)


@fault(6, "etcd full (quota) for 8 s under L1, then freed", etcd_flags=("--quota-backend-bytes=33554432",))
def test_etcd_is_full(bench: FaultBench) -> None:
    """Every write is refused, the lease's too; when there is room again, it goes on."""
    bench.note("the quota of etcd stands for the full disk: on a full tmpfs etcd itself would end")
    scheduler = bench.scheduler("a")
    load = bench.load_l1()
    load.wait_created(150)
    etcd = Etcd(bench.plane)
    path = CONFIG_MAPS.format(bench.cluster.namespace)
    fillers = _fill(bench, path)
    assert etcd.alarms() == ["NOSPACE"]
    time.sleep(8.0)
    bound = len(bench.cluster.bound())
    assert bound < load.pods
    for name in fillers:
        bench.cluster.client.ok("DELETE", f"{path}/{name}")
    etcd.free()
    freed_s = time.time()
    bench.settle()
    bench.figure("N", at_most(10), bench.recovery_s(load, freed_s), "s")
    bench.figure("restarts", at_most(1), scheduler.restarts)
    bench.verdict()


def _fill(bench: FaultBench, path: str) -> list[str]:
    """Create objects until there is no room; returns their names."""
    names: list[str] = []
    while True:
        name = f"filler-{len(names)}"
        manifest = {"metadata": {"name": name}, "data": {"filler": "x" * FILLER_BYTES}}
        status, answer = bench.cluster.client.call("POST", path, manifest)
        if status >= 500:
            assert "database space exceeded" in str(answer)
            return names
        assert status == 201, answer
        names.append(name)


@fault(7, "etcd restored from an older copy: versions go back, bound pods are unbound again", fresh=True)
def test_etcd_goes_back_in_time(bench: FaultBench, tmp_path: Path) -> None:
    """300 pods have never been, 100 are pending again on nodes that are empty; the scheduler believes none of its past."""
    load = bench.load_l2(pods=100).wait_created()
    bench.audited.identity("podium-a")  # its rights were granted before the copy
    etcd = Etcd(bench.plane)
    etcd.copy(tmp_path / "copy")
    bench.scheduler("a")
    lost = bench.load(300, 100.0, cpu="1", prefix="lost").wait_created()
    eventually(lambda: len(bench.cluster.bound()) == 400, "all pods to be bound", timeout_s=60.0)
    bench.plane.apiserver.kill()
    with bench.new_epoch():
        etcd.restore(tmp_path / "copy")
        restored_s = time.time()
        bench.plane.start_apiserver()
    bench.forget(lost)
    bench.load(300, 100.0, cpu="1", prefix="anew").wait_created()
    bench.settle()
    bench.figure("N, the API server's start included", at_most(15), bench.recovery_s(load, restored_s), "s")
    bench.figure("bound at the end", exactly(400), len(bench.cluster.bound()))
    bench.verdict()
