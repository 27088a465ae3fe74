"""Very many objects: a storm of names that come and go, and restarts among 100,000 pods.

They are written to etcd, from where the API server shows them to its clients as any other objects: a hundred thousand
requests would take this machine minutes, and the API server's part in them is not under test.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from statistics import mean

import pytest

from tests.benchmarks import objects
from tests.benchmarks.procfs import peak_rss_mb, rss_mb
from tests.faults.bench import FaultBench, fault
from tests.faults.etcd import Etcd
from tests.faults.neighbours import wait_done
from tests.faults.results import at_least, at_most, exactly, patience
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import eventually

SLOW_TEST_TIMEOUT_S = 2_400
BATCH = 200
ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "100000"}


def in_batches(objects_by_key: Iterator[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    while batch := dict(islice(objects_by_key, BATCH)):
        yield batch


def served_pod(name: str, namespace: str, scheduler: str, node_name: str, **labels: str) -> objects.Manifest:
    """Return a pod with everything that the API server and its admission add."""
    requests = {"cpu": "100m", "memory": "128Mi"}
    made = objects.pod(name, namespace, requests=requests, labels=labels, node_name=node_name)
    made["spec"]["schedulerName"] = scheduler
    return objects.as_served_pod(made, uid="@UID@", version="")


def node_batches(count: int, prefix: str, **capacity: str) -> Iterator[dict[str, bytes]]:
    """Yield nodes by their keys in etcd."""
    manifest = objects.as_served_node(objects.node("@NAME@", **capacity), uid="@UID@", version="")  # type: ignore[arg-type]
    template = objects.Template(manifest)
    names = (f"{prefix}-{number:05}" for number in range(count))
    yield from in_batches(
        (f"/registry/minions/{name}", template.fill(NAME=name, UID=str(uuid.uuid4()))) for name in names
    )


# --- the storm -------------------------------------------------------------------------------------------------------

STORM_PODS, STORM_NAMESPACES, STORM_S = 20_000, 5_000, 60.0
MORE_MB = 50
"""What the process may keep of its first storm: the allocator gives little back of what it once needed."""
ALIVE = 20
"""Batches of pods that exist at the same time."""


def storm(bench: FaultBench, etcd: Etcd, name: str) -> float:
    """Create and delete 20,000 pods, all with names of their own for everything, and 5,000 namespaces, within a minute.

    Every second pod is bound when it comes, by the scheduler that it names; returns the seconds that the storm took.
    """
    template = objects.Template(
        served_pod("p-@N@", "@NAMESPACE@", "scheduler-@N@", "@NODE@", **{"app": "app-@N@", "example.com/@N@": "@N@"})
    )

    def pods() -> Iterator[tuple[str, bytes]]:
        for number in range(STORM_PODS):
            n, namespace = f"{name}-{number}", f"{name}-{number % STORM_NAMESPACES}"
            node_name = "" if number % 2 else f"storm-{number % 10:05}"
            filled = template.fill(N=n, NAMESPACE=namespace, NODE=node_name, UID=str(uuid.uuid4()))
            yield f"/registry/pods/{namespace}/p-{n}", filled

    spaces = objects.Template(
        {"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"},
         "metadata": {"name": "@NAME@", "uid": "@UID@", "labels": {"@NAME@": "@NAME@"}}}
    )  # fmt: skip
    names = [f"{name}-{number}" for number in range(STORM_NAMESPACES)]
    begun_s = time.monotonic()
    etcd.put({f"/registry/namespaces/{n}": spaces.fill(NAME=n, UID=str(uuid.uuid4())) for n in names})
    alive: list[dict[str, bytes]] = []
    steps = STORM_PODS // BATCH + ALIVE
    for step, batch in enumerate(in_batches(pods())):
        time.sleep(max(0.0, begun_s + STORM_S * 0.9 * step / steps - time.monotonic()))
        etcd.put(batch)
        alive.append(batch)
        if len(alive) > ALIVE:
            etcd.delete(list(alive.pop(0)))
    for batch in alive:
        etcd.delete(list(batch))
    etcd.delete([f"/registry/namespaces/{n}" for n in names])
    took_s = time.monotonic() - begun_s
    bench.note(f"{name}: {took_s:.0f} s")
    return took_s


def rest_mb(bench: FaultBench, scheduler: SupervisedScheduler) -> float:
    """Return the memory once the scheduler has seen all that there was, and has nothing left to do."""
    pods = bench.cluster.client.ok("GET", "/api/v1/pods")["items"]
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    eventually(
        lambda: scheduler.daemon.metrics().total("scheduler_cache_size", type="pods") == bound,
        "the scheduler to have seen the end of the storm", timeout_s=60 * patience(), poll_s=0.5,
    )  # fmt: skip
    time.sleep(5.0)  # a collection of garbage may come in between, or not: both storms are measured alike
    return rss_mb(scheduler.daemon.process.pid)


@pytest.mark.timeout(SLOW_TEST_TIMEOUT_S)
@fault(41, "20,000 pods with as many schedulerNames and labels, and 5,000 namespaces, come and go in 60 s", fresh=True)
def test_storm_of_names(bench: FaultBench) -> None:
    """Nothing of them stays: no memory, no series; pods of ours are bound meanwhile."""
    etcd = Etcd(bench.plane)
    for batch in node_batches(10, "storm", **ROOMY):
        etcd.put(batch)
    scheduler = bench.scheduler(elect=False)
    events = scheduler.daemon.counting()
    wait_done(bench, bench.load_l1(pods=100))
    before_mb = rest_mb(bench, scheduler)
    storm(bench, etcd, "first")
    warm_mb = rest_mb(bench, scheduler)
    beside = bench.load(500, 10.0, prefix="beside")
    took_s = storm(bench, etcd, "second")
    wait_done(bench, beside)
    after_mb = rest_mb(bench, scheduler)
    bench.figure("seconds of the storm", at_most(STORM_S), took_s, "s")
    bench.figure("pods seen to come and go", at_least(4 * STORM_PODS), events("podium_watch_events_total", kind="Pod"))
    bench.figure("more memory than after the first storm, %", at_most(10), (after_mb / warm_mb - 1) * 100)
    bench.figure("more memory than before any storm, MiB", at_most(MORE_MB), after_mb - before_mb)
    metrics = scheduler.daemon.metrics()
    bench.figure("series", at_most(5_000), len(metrics.names))
    named = sum("second-" in line or "first-" in line for line in metrics.text.splitlines())
    bench.figure("series that name what came and went", exactly(0), named)
    bench.note(
        f"memory at rest: {before_mb:.0f} MiB before any storm, {warm_mb:.0f} MiB after the first,"
        f" {after_mb:.0f} MiB after the second, equal one: what the first one took is kept, for use by the next"
    )
    bench.note("the objects are written to etcd, from where the API server shows them")
    bench.settle()
    bench.verdict()


# --- restarts --------------------------------------------------------------------------------------------------------

PODS, NODES, RESTARTS, THIRD = 100_000, 5_000, 10, 3
APPS = 200


def watches(bench: FaultBench) -> int:
    """Return how many watches the API server serves."""
    _, text = bench.plane.request("GET", "/metrics", timeout_s=60)
    lines = [line for line in str(text).splitlines() if line.startswith("apiserver_longrunning_requests{")]
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if 'verb="WATCH"' in line))


def node_objects() -> Iterator[tuple[str, bytes]]:
    for batch in node_batches(NODES, "large", cpu="32", memory="128Gi"):
        yield from batch.items()


def bound_pods(namespace: str) -> Iterator[tuple[str, bytes]]:
    """Yield the pods by their keys in etcd, 20 for each node."""
    template = objects.Template(served_pod("@NAME@", namespace, "default-scheduler", "@NODE@", app="@APP@"))
    for number in range(PODS):
        name, app = f"large-{number:06}", f"app-{number % APPS}"
        filled = template.fill(NAME=name, NODE=f"large-{number % NODES:05}", APP=app, UID=str(uuid.uuid4()))
        yield f"/registry/pods/{namespace}/{name}", filled


@contextmanager
def crowded(bench: FaultBench) -> Iterator[None]:
    """Fill the cluster while the block runs.

    The observer does not look on: what it keeps of each object would take more than the scheduler under test. It looks
    at what has come of our own pods afterwards, when the crowd is gone and the nodes are still there.
    """
    etcd, namespace = Etcd(bench.plane), f"{bench.cluster.namespace}-crowd"  # lists of our own pods stay short
    with bench.new_epoch():
        bench.observer.stop()
        begun_s = time.monotonic()
        for made in (node_objects(), bound_pods(namespace)):
            for batch in in_batches(made):
                etcd.put(batch)
        last = (
            f"/api/v1/namespaces/{namespace}/pods/large-{PODS - 1:06}?resourceVersion=0"  # from the API server's memory
        )
        eventually(lambda: bench.cluster.client.call("GET", last)[0] == 200, "the last pod", timeout_s=60 * patience())
        bench.note("written to etcd, from where the API server shows them; the observer looks away meanwhile")
        bench.note(f"{PODS} pods were in etcd, and shown by the API server, after {time.monotonic() - begun_s:.0f} s")
        yield
        for batch in in_batches(bound_pods(namespace)):
            etcd.delete(list(batch))


@pytest.mark.timeout(SLOW_TEST_TIMEOUT_S)
@fault(43, "10 restarts among 100,000 bound pods on 5,000 nodes", fresh=True)
def test_restarts_in_a_large_cluster(bench: FaultBench) -> None:
    """Each time it is ready within a minute and binds at once, in bounded memory, and leaves nothing behind."""
    scheduler = bench.scheduler(elect=False)
    ready_s, bound_s, peaks_mb, num_watches = [], [], [], []
    with crowded(bench):
        for number in range(RESTARTS):
            scheduler.terminate(timeout_s=60)
            scheduler.start_again()
            scheduler.wait_ready(timeout_s=60 * patience())
            started_s = scheduler.daemon.started_s
            ready_s.append(time.monotonic() - started_s)
            assert scheduler.daemon.metrics().total("scheduler_cache_size", type="pods") == PODS + number
            bench.cluster.create(bench.cluster.pod(f"after-{number}"))
            bench.cluster.wait_bound(f"after-{number}")
            bound_s.append(time.monotonic() - started_s)
            peaks_mb.append(peak_rss_mb(scheduler.daemon.process.pid))
            num_watches.append(watches(bench))
    bench.figure("restarts", exactly(RESTARTS), scheduler.restarts)
    bench.figure("ready, slowest", at_most(60), max(ready_s), "s")
    bench.figure("first pod bound, slowest", at_most(60), max(bound_s), "s")
    bench.figure("RSS at its peak, GB", at_most(1.5), max(peaks_mb) * (1 << 20) / 1e9)
    growth = mean(peaks_mb[-THIRD:]) / mean(peaks_mb[:THIRD]) - 1
    bench.figure(f"growth of the peak, last {THIRD} over first {THIRD}, %", at_most(5), growth * 100)
    bench.figure("watches left at the API server by those that ended", at_most(0), num_watches[-1] - num_watches[0])
    bench.note(f"ready after {mean(ready_s):.1f} s and {mean(peaks_mb):.0f} MiB at the peak, on average")
    bench.settle()
    bench.verdict()
