"""etcd hangs, is full, or goes back in time."""

from __future__ import annotations

import time
from itertools import pairwise
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
    """Writes time out, some after they were done: each is read back, and the leader stays."""
    scheduler = bench.scheduler("a")
    load = bench.load_l1(closed=True)
    load.wait_created(500)
    bench.open_nodes(load)
    etcd = Etcd(bench.plane)
    etcd.freeze()
    before = bench.num_bound()
    time.sleep(8.0)
    etcd.thaw()
    thawed_s = time.time()
    bench.plane.wait_ready()
    bench.settle()
    bench.figure("bound before", at_most(999), before)
    bench.figure("N", at_most(3), bench.recovery_s(load, thawed_s), "s")
    bench.figure("binds still unknown", exactly(0), _assumed(scheduler))
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.verdict()


@fault(5, "etcd frozen for 30 s under L2, API server's time limit 5 s", flags=("--request-timeout=5s",))
def test_etcd_hangs_for_30_seconds(bench: FaultBench) -> None:
    """Nobody knows what became of the binds under way; their places are not given to others until it is known."""
    scheduler = bench.scheduler("a", elect=False)
    load = bench.load_l2(closed=True).wait_created()
    bench.open_nodes(load)
    etcd = Etcd(bench.plane)
    etcd.freeze()
    frozen_s = time.monotonic()
    samples: list[float] = []
    while time.monotonic() < frozen_s + 30.0:
        time.sleep(0.5)
        if time.monotonic() > frozen_s + 4.0:  # answers that were on their way have come
            samples.append(_assumed(scheduler))
    etcd.thaw()
    thawed_s = time.time()
    bench.plane.wait_ready()
    bench.settle()
    given_up = max(before - after for before, after in pairwise(samples))
    bench.figure("binds unknown meanwhile", at_least(1), max(samples))
    bench.figure("places given up while unknown", at_most(0), given_up)
    bench.figure("N", at_most(10), bench.recovery_s(load, thawed_s), "s")
    bench.figure("binds still unknown", exactly(0), _assumed(scheduler))
    bench.verdict()


def _assumed(scheduler: SupervisedScheduler) -> float:
    return scheduler.daemon.metrics().total("scheduler_cache_size", type="assumed_pods")


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
        bench.plane.start_apiserver()
        ready_s = time.time()
    bench.forget(lost)
    bench.load(300, 100.0, cpu="1", prefix="anew").wait_created()
    bench.settle()
    bench.figure("N", at_most(15), bench.recovery_s(load, ready_s), "s")
    bench.figure("bound at the end", exactly(400), len(bench.cluster.bound()))
    bench.verdict()
