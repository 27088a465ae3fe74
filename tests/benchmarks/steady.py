"""Does memory grow while pods come and go? ``python -m tests.benchmarks.steady`` prints it; asserts nothing.

    python -m tests.benchmarks.steady                              the core alone: 200,000 pods at 5,000 nodes, minutes
    python -m tests.benchmarks.steady --api-server --pods 20000    ``podium run`` on a real API server

A window of pods is alive at any time; each is decided, bound, seen bound and deleted, and a new one comes. Resident
memory is read all along; "growth" is the slope of a straight line through what was read after the first tenth, over all
of the pods after it, in per cent of the mean.

In the core no two pods are alike (case C of ``core_only``), which is the hardest on everything that remembers classes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import uvloop

from scheduler.model.delta import Removed
from scheduler.model.pod import Pod
from tests.benchmarks import machine, procfs
from tests.benchmarks.api import Api, for_each, opened
from tests.benchmarks.bind_watch import BindWatch
from tests.benchmarks.contestants import Running, start_podium
from tests.benchmarks.core_cases import CASES
from tests.benchmarks.core_run import GC_THRESHOLDS, Bench, Timings, fill_cluster, new_core
from tests.benchmarks.documents import OUTPUT, STEADY, Document
from tests.benchmarks.one_run import fill_nodes
from tests.benchmarks.tables import markdown
from tests.benchmarks.workloads import BY_KEY
from tests.controlplane.cluster import ControlPlane

CORE_PODS, SERVER_PODS = 200_000, 20_000
WINDOW = 1_000
BATCH = 1_000
SAMPLES = 40
NAMESPACE = "steady"
SLOWEST_PODS_PER_S = 15

Samples = list[tuple[int, float]]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--api-server", action="store_true", help="the daemon on a real API server, not the core alone")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, help=f"default {CORE_PODS:,}; with --api-server {SERVER_PODS:,}")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(argv)
    name = "steady-api-server" if options.api_server else "steady-core"
    document = Document.new(STEADY, options.output / f"{name}.json")
    print(machine.sentence(document.facts), "\n", flush=True)
    begin_s = perf_counter()
    if options.api_server:
        num_pods = options.pods or SERVER_PODS
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            samples = runner.run(_against_server(options.nodes, num_pods))
    else:
        num_pods = options.pods or CORE_PODS
        samples = _in_core(options.nodes, num_pods)
    where = "podium run on an API server" if options.api_server else "the core alone"
    figures = {"where": where, "nodes": options.nodes, "pods": num_pods, "rss_mb": samples}
    document.add(figures | {"growth_per_cent": growth_per_cent(samples), "took_s": round(perf_counter() - begin_s, 1)})
    print(f"{report(document.results)}\n\nwritten to {document.path}")
    return 0


def growth_per_cent(samples: Samples) -> float | None:
    """Return by how many per cent of its mean the memory grows over the samples, the first tenth left out.

    Args:
        samples: (pods so far, MiB).
    """
    late = [s for s in samples if s[0] > samples[-1][0] / 10]
    if len(late) < 3:
        return None
    pods, mb = np.array(late, dtype=float).T
    slope = float(np.polyfit(pods, mb, 1)[0])
    return round(slope * float(pods[-1] - pods[0]) / float(mb.mean()) * 100, 2)


def report(results: Sequence[dict[str, Any]]) -> str:
    """Return the table."""
    header = "where|nodes|pods created and deleted|RSS MB after a tenth|at the end|growth %|took s"
    rows = [
        [r["where"], r["nodes"], r["pods"], r["rss_mb"][len(r["rss_mb"]) // 10][1], r["rss_mb"][-1][1],
         r["growth_per_cent"], r["took_s"]]
        for r in results
    ]  # fmt: skip
    return markdown(header.split("|"), rows)


# --- the core alone --------------------------------------------------------------------------------------------------


def _in_core(num_nodes: int, num_pods: int) -> Samples:
    gc.set_threshold(*GC_THRESHOLDS)
    case = next(case for case in CASES if case.letter == "C")
    core = new_core("real")
    nodes = fill_cluster(core, case, num_nodes)
    core.cache.update_snapshot(core.snapshot)
    gc.collect()
    gc.freeze()
    alive: deque[Pod] = deque()
    bench = Bench(core, case, nodes, on_bound=alive.append)
    samples: Samples = []
    for done in range(0, num_pods, BATCH):
        bench.timings = Timings()
        bench.go(done, min(done + BATCH, num_pods))
        while len(alive) > WINDOW:
            core.apply(Removed(alive.popleft()))
        core.drain_outbox()
        if done % max(num_pods // SAMPLES // BATCH * BATCH, BATCH) == 0:
            samples.append((done + BATCH, round(procfs.rss_mb(os.getpid()), 2)))
            print(f"  {done + BATCH:>7,} pods: {samples[-1][1]:,.1f} MB", flush=True)
    return samples


# --- on an API server ------------------------------------------------------------------------------------------------


async def _against_server(num_nodes: int, num_pods: int) -> Samples:
    load = BY_KEY["W1"].sized(num_nodes, 0, 1)
    plane = await asyncio.to_thread(ControlPlane.start)
    try:
        async with opened(plane.admin_kubeconfig) as api:
            await fill_nodes(api, load)
            await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            watch = BindWatch(plane.port, plane.ssl_context(), NAMESPACE, "m-", num_pods)
            await watch.start(await api.resource_version())
            running = start_podium(plane, plane.directory, "steady")
            try:
                async with asyncio.timeout(60 + num_pods / SLOWEST_PODS_PER_S):
                    return await _come_and_go(api, watch, running, num_pods)
            finally:
                await watch.stop()
                await asyncio.to_thread(running.process.stop)
    finally:
        await asyncio.to_thread(plane.stop)


async def _come_and_go(api: Api, watch: BindWatch, running: Running, num_pods: int) -> Samples:
    make, free = BY_KEY["W1"].measured, asyncio.Semaphore(WINDOW)
    samples: Samples = []

    async def create(index: int) -> None:
        await free.acquire()
        await api.create(make(index, NAMESPACE))

    async def delete(name: str) -> None:
        await api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
        free.release()

    async with asyncio.TaskGroup() as group:
        group.create_task(for_each(range(num_pods), create, 16))
        done = 0
        while done < num_pods:
            fresh = list(watch.bound_s)[done:]
            if not fresh:
                await asyncio.sleep(0.05)
                continue
            await for_each(fresh, delete, 16)
            before, done = done, done + len(fresh)
            step = max(num_pods // SAMPLES, 1)
            if before // step != done // step:
                samples.append((done, round(procfs.rss_mb(running.process.pid), 2)))
                print(f"  {done:>7,} pods: {samples[-1][1]:,.1f} MB", flush=True)
    return samples


if __name__ == "__main__":
    sys.exit(main())
