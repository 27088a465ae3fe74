"""What pod affinity costs a cycle: ``python -m tests.benchmarks.core_affinity [NODES]``; prints, asserts nothing.

First the decisions a second of whole cycles (cases E and F of ``core_only``), then the plugin alone, step by step, on a
cluster with 5,000 distinct terms: medians in microseconds, after one pod has come since the last question.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

from scheduler.api import Code, CycleState, Pod
from scheduler.config.args import InterPodAffinityArgs
from scheduler.model.meta import Namespace
from scheduler.plugins.inter_pod_affinity import InterPodAffinity, new
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.store import Stores
from scheduler.testing.builders import PodBuilder, node, not_in, obj, pod, selector
from tests.benchmarks.core_cases import CASES
from tests.benchmarks.core_run import measure
from tests.benchmarks.objects import HOSTNAME, ZONE

DISTINCT_TERMS = 5_000
SERVICES = 20
ROUNDS = 300
WEB = {"svc": "svc-0"}
WAITING: dict[str, PodBuilder] = {
    "a plain pod that nobody selects": pod("p").labels(app="plain"),
    "a plain pod, many terms ask for its label": pod("p").labels(tier="front"),
    "anti-affinity by hostname, also by others": pod("p").labels(WEB).pod_anti_affinity(HOSTNAME, WEB),
    "affinity by zone": pod("p").labels(WEB).pod_affinity(ZONE, WEB),
    "both, in namespaces by label": pod("p")
    .labels(WEB)
    .pod_affinity(ZONE, WEB, namespaceSelector=selector({"team": "red"}))
    .pod_anti_affinity(HOSTNAME, [not_in("svc", "svc-0")], namespaceSelector=selector({"team": "red"})),
    "preferences by zone and hostname": pod("p")
    .labels(WEB)
    .pod_affinity(ZONE, WEB, weight=10)
    .pod_anti_affinity(HOSTNAME, WEB, weight=5),
}


class Handle:
    """A cluster as the plugin reaches it."""

    def __init__(self) -> None:
        self.cache, self.snapshot, self.stores = Cache(), Snapshot(), Stores()
        self.num_pods = 0
        for i in range(1_000):
            labels = {"team": "red" if i % 2 else "blue"}
            manifest = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": f"ns-{i}", "labels": labels}}
            self.stores.of(Namespace).put(obj(Namespace, manifest))

    def nodes(self) -> Snapshot:
        return self.snapshot

    def lister(self, kind: type) -> object:
        return self.stores.of(kind)

    def add(self, made: PodBuilder, row: int) -> None:
        """Let a pod come to a node."""
        self.num_pods += 1
        name = f"r{self.num_pods}"
        self.cache.add_pod(made.set("metadata.name", name).uid(name).on(f"node-{row:05d}").obj())


def cluster(size: int) -> Handle:
    """Return nodes in three zones with 5,000 distinct terms of as many workloads, and services that repel themselves."""
    handle = Handle()
    for i in range(size):
        handle.cache.add_node(node(f"node-{i:05d}").labels({HOSTNAME: f"node-{i:05d}", ZONE: f"zone-{i % 3}"}).obj())
    for i in range(DISTINCT_TERMS):
        labels = {"app": f"app-{i}", "tier": "front"}
        handle.add(pod().labels(labels).pod_anti_affinity(HOSTNAME, labels), i % size)
    for i in range(size):
        labels = {"svc": f"svc-{i % SERVICES}"}
        handle.add(pod().labels(labels).pod_anti_affinity(HOSTNAME, labels).pod_affinity(ZONE, labels, weight=1), i)
    handle.cache.update_snapshot(handle.snapshot)
    return handle


def steps(plugin: InterPodAffinity, waiting: Pod, snapshot: Snapshot) -> dict[str, float]:
    """Return the seconds of each step of one cycle; steps that answer Skip end their half."""
    state, taken = CycleState(), {}

    def timed(name: str, step: Callable[[], object]) -> object:
        start_s = perf_counter()
        answer = step()
        taken[name] = perf_counter() - start_s
        return answer

    _, status = timed("PreFilter", lambda: plugin.pre_filter(state, waiting, snapshot))  # type: ignore[misc]
    if status is None:
        timed("Filter", lambda: plugin.filter_all(state, waiting, snapshot))
    status = timed("PreScore", lambda: plugin.pre_score(state, waiting, snapshot))
    if status is None or status.code is not Code.SKIP:  # type: ignore[attr-defined]
        scores = timed("Score", lambda: plugin.score_all(state, waiting, snapshot))
        timed("Normalize", lambda: plugin.normalize(state, waiting, snapshot, scores))  # type: ignore[arg-type]
    return taken


def main(size: int) -> None:
    """Print everything."""
    for letter in "EF":
        case = next(case for case in CASES if case.letter == letter)
        figures, _ = measure(case, size, 4_000, "null")
        print(f"{size} nodes, {case.title:28s} {figures['decisions_per_s']:6,} decisions/s")
        gc.unfreeze()
    handle = cluster(size)
    plugin = new(InterPodAffinityArgs(), handle)  # type: ignore[arg-type]
    print(f"\nthe plugin alone, {size} nodes, {handle.num_pods:,} pods, {DISTINCT_TERMS:,} distinct terms (us):")
    for title, made in WAITING.items():
        taken: dict[str, list[float]] = {}
        coming = pod().labels(WEB).pod_anti_affinity(HOSTNAME, WEB)
        for i in range(ROUNDS):
            handle.add(coming, i * 31 % size)
            handle.cache.update_snapshot(handle.snapshot)
            for name, seconds in steps(plugin, made.obj(), handle.snapshot).items():
                taken.setdefault(name, []).append(seconds)
        text = "  ".join(f"{name} {median(values) * 1e6:.1f}" for name, values in taken.items())
        total = sum(median(values) for values in taken.values()) * 1e6
        print(f"  {title:44s} {total:7.1f}   ({text})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
