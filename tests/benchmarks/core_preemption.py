"""Preemption in the core alone: ``python -m tests.benchmarks.core_preemption``; prints a table, asserts no time.

A full cluster of 4-core nodes with four pods of 900m each (scheduler_perf's PreemptionBasic). Important pods of 3 cores
come one after the other; each is tried, evicts three pods of one node, is woken by their end, tried again and placed::

    arrive ─▶ attempt 1 (fits nowhere, about 100 dry runs, nominates) ─▶ victims go ─▶ attempt 2 (nominated node)

"attempts/s" counts the first attempts alone, "placements/s" everything. ``hopeless`` is the verdict for a pod that
no eviction helps, with preemption on (no victims to be had) and off (preemptionPolicy Never).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import gc
import os
import pstats
import random
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from scheduler.api import Eviction, Pod
from scheduler.app.core import Core, Surroundings
from scheduler.app.outside import GC_THRESHOLDS
from scheduler.binding.evictor import Evictor
from scheduler.config.load import load
from scheduler.config.options import SchedulerOptions
from scheduler.framework.registry import Registry
from scheduler.model.delta import Added, Changed, Removed
from scheduler.plugins import IN_TREE
from scheduler.state.outbox import StartBinding
from scheduler.testing.builders import node, pod
from scheduler.testing.clock import FakeClock
from scheduler.testing.harness import NullCoreMetrics
from tests.benchmarks import machine, procfs
from tests.benchmarks.documents import OUTPUT, PREEMPTION, Document
from tests.benchmarks.tables import markdown

CONFIGURATION = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
LOW_PODS = 4
HIGH = 1_000


class World:
    """A core with a full cluster; victims go at once."""

    def __init__(self, nodes: int, low_priority: int) -> None:
        self.clock = FakeClock()
        self._loop = asyncio.new_event_loop()
        metrics = NullCoreMetrics()
        self.core = Core(
            load(CONFIGURATION),
            SchedulerOptions(),
            Registry(IN_TREE, ()),
            Surroundings(clock=self.clock, random=random.Random(1), perf_counter=perf_counter, metrics=metrics),
        )
        self.evictor = Evictor(
            self.core,
            remove=self._remove,
            cancel_binding=lambda uid, message: False,
            metrics=metrics,
            perf_counter=perf_counter,
            on_idle=lambda: None,
        )
        self._fill(nodes, low_priority)
        gc.set_threshold(*GC_THRESHOLDS)
        gc.collect()
        gc.freeze()

    def close(self) -> None:
        """Close the loop on which evictions run."""
        self._loop.close()

    def _fill(self, nodes: int, low_priority: int) -> None:
        for i in range(nodes):
            name = f"node-{i}"
            made = node(name).capacity(cpu="4", memory="32Gi", pods="110").zone(f"zone-{i % 3}").label("pool", "a")
            self.core.apply(Added(made.obj()))
            for k in range(LOW_PODS):
                low = pod(f"low-{i}-{k}").requests(cpu="900m", memory="500Mi").label("app", "low").on(name)
                started = f"2026-01-01T00:{i // 60 % 60:02d}:{i % 60:02d}Z"
                self.core.apply(Added(low.priority(low_priority).started(started).obj()))

    async def _remove(self, victim: Pod, preemptor: Pod) -> bool:
        del preemptor
        self.core.apply(Removed(victim))
        return False

    def important(self, i: int) -> Pod:
        """Return the i-th important pod."""
        return pod(f"high-{i}").requests(cpu="3", memory="500Mi").label("app", "high").priority(HIGH).obj()

    def attempt(self) -> float:
        """Try the next pod; returns the CPU seconds."""
        begin_s = thread_time()
        assert self.core.schedule_one()
        return thread_time() - begin_s

    def place(self, new: Pod) -> tuple[float, float]:
        """Take an important pod from arrival to its place; returns the CPU seconds of attempt 1 and of everything."""
        begin_s = thread_time()
        self.core.apply(Added(new))
        first_s = self.attempt()
        evicted = [order for order in self.core.drain_outbox() if isinstance(order, Eviction)]
        assert len(evicted) == 1, "the attempt evicts"
        self._loop.run_until_complete(self.evictor.run(evicted[0]))
        self.clock.advance(2.0)
        self.core.run_timers(self.clock.now())
        self.attempt()
        jobs = [order for order in self.core.drain_outbox() if isinstance(order, StartBinding)]
        assert len(jobs) == 1, "the pod is placed"
        self.core.permit_passed(jobs[0])
        self.core.binding_succeeded(jobs[0])
        self.core.apply(Changed(new, new.on_node(jobs[0].node_name)))
        self.core.drain_outbox()
        return first_s, thread_time() - begin_s


def measure_placements(nodes: int, pods: int, *, profile: bool) -> dict[str, Any]:
    """Return the figures of a full cluster."""
    with contextlib.closing(World(nodes, low_priority=0)) as world:
        return _placements(world, nodes, pods, profile=profile)


def _placements(world: World, nodes: int, pods: int, *, profile: bool) -> dict[str, Any]:
    for i in range(min(5, nodes // 2)):
        world.place(world.important(-1 - i))
    profiler = cProfile.Profile() if profile else None
    if profiler:
        profiler.enable()
    times = [world.place(world.important(i)) for i in range(pods)]
    if profiler:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    first, whole = (np.array(column) for column in zip(*times, strict=True))
    rates = {"per_s": round(1 / first.mean(), 1), "placements_per_s": round(1 / whole.mean(), 1)}
    return _row("preempts", nodes, pods, first) | rates


def measure_hopeless(nodes: int, rounds: int, policy: str) -> dict[str, Any]:
    """Return the figures of pods that fit nowhere and can evict nobody."""
    times = []
    with contextlib.closing(World(nodes, low_priority=HIGH)) as world:
        for i in range(rounds):
            new = pod(f"big-{i}").requests(cpu="3").priority(HIGH).preemption_policy(policy).obj()
            world.core.apply(Added(new))
            times.append(world.attempt())
            world.core.drain_outbox()
            world.core.apply(Removed(new))
    seconds = np.array(times)
    rates = {"per_s": round(1 / seconds.mean(), 1), "placements_per_s": None}
    return _row(f"hopeless, {policy}", nodes, rounds, seconds) | rates


def report(results: Sequence[dict[str, Any]]) -> str:
    """Return the table."""
    header = "case|nodes|pods|attempt p50 ms|p99 ms|attempts/s|placements/s|RSS MB"
    names = ("case", "nodes", "pods", "attempt_ms_p50", "attempt_ms_p99", "per_s", "placements_per_s", "rss_mb")
    ordered = sorted(results, key=lambda r: (r["case"] != "preempts", r["case"], r["nodes"]))
    return markdown(header.split("|"), [[r[name] for name in names] for r in ordered])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1_000, 5_000])
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(argv)
    document = Document.new(PREEMPTION, options.output / "preemption.json")
    print(machine.sentence(document.facts), "\n")
    for nodes in options.nodes:
        document.add(measure_placements(nodes, min(options.pods, nodes // 2), profile=options.profile))
        for policy in ("PreemptLowerPriority", "Never"):
            document.add(measure_hopeless(nodes, min(options.pods, 50), policy))
    print(f"{report(document.results)}\n\nwritten to {document.path}")
    return 0


def _row(case: str, nodes: int, pods: int, seconds: Any) -> dict[str, Any]:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
    figures = {"attempt_ms_p50": round(float(p50), 2), "attempt_ms_p99": round(float(p99), 2)}
    return {"case": case, "nodes": nodes, "pods": pods, **figures, "rss_mb": round(procfs.rss_mb(os.getpid()), 1)}


if __name__ == "__main__":
    raise SystemExit(main())
