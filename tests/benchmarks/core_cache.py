"""What the cache and its snapshot cost: ``python tests/benchmarks/core_cache.py [NODES]``; prints, asserts nothing."""

import sys
from time import perf_counter

import numpy as np

from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node, pod

BASE_NODE = node().capacity(cpu="32", memory="128Gi", pods="110", ephemeral_storage="100Gi")
BASE_POD = pod().requests(cpu="100m", memory="500Mi")


def make_node(i):
    made = BASE_NODE.set("metadata.name", f"node-{i:05d}").hostname().zone(f"z{i % 3}").label("pool", f"p{i % 7}").obj()
    return made if made.allocatable and made.zone_key else None


def make_pod(i, node_name):
    made = BASE_POD.set("metadata.name", f"pod-{i}").uid(f"uid-{i}").on(node_name).obj()
    # Derived facts are computed before a decision; they are not the cache's cost.
    return made if made.accounted_requests and made.accounted_non_zero_requests and not made.host_ports else None


def ask_for_columns(snapshot):
    for resource in ("cpu", "memory", "pods", "ephemeral-storage"):
        snapshot.allocatable(resource), snapshot.requested(resource), snapshot.non_zero_requested(resource)
    for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "pool"):
        snapshot.label(key)


def show(what, values_s):
    ordered = sorted(values_s)
    print(
        f"{what:32s} {ordered[len(ordered) // 2] * 1e6:9.1f} us median {ordered[-len(ordered) // 100] * 1e6:9.1f} us p99"
    )


def timed(step, items):
    values_s = []
    for item in items:
        start = perf_counter()
        step(item)
        values_s.append(perf_counter() - start)
    return values_s


def main(size):
    nodes = [make_node(i) for i in range(size + 20)]
    pods = [make_pod(i, f"node-{i % size:05d}") for i in range(2 * size)]
    new = [make_pod(2 * size + i, f"node-{i * 7919 % size:05d}") for i in range(size)]
    cache, snapshot = Cache(), Snapshot()

    start = perf_counter()
    timed(cache.add_node, nodes[:size]), timed(cache.add_pod, pods)
    print(f"{size} nodes and {len(pods)} pods: cache {(perf_counter() - start) * 1e3:.1f} ms")
    start = perf_counter()
    cache.update_snapshot(snapshot)
    print(f"first snapshot {(perf_counter() - start) * 1e3:.1f} ms")
    ask_for_columns(snapshot)

    def then_update(change):
        return lambda item: (change(item), cache.update_snapshot(snapshot))

    show("assume + update_snapshot", timed(then_update(cache.assume_pod), new))
    show("confirm + update_snapshot", timed(then_update(cache.add_pod), new))
    show("add node + update_snapshot", timed(then_update(cache.add_node), nodes[size:]))
    show("update node + update_snapshot", timed(then_update(cache.update_node), nodes[size:]))
    show("remove node + update_snapshot", timed(then_update(cache.remove_node), [made.name for made in nodes[size:]]))
    show("update_snapshot without changes", timed(cache.update_snapshot, [snapshot] * 1000))
    show("clone", timed(lambda info: info.clone(), snapshot.infos))
    rows = np.arange(0, size, 2, dtype=np.intp)
    show("take half, gather one column", timed(lambda _: snapshot.take(rows).requested("cpu"), range(1000)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
