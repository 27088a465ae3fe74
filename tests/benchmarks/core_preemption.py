"""Preemption in the core alone: ``python -m tests.benchmarks.core_preemption``; prints a table, asserts no time.

A full cluster of 4-core nodes with four pods of 900m each (scheduler_perf's PreemptionBasic). Important pods of 3 cores
come one after the other; each is tried, evicts three pods of one node, is woken by their end, tried again and placed::

    arrive ─▶ attempt 1 (fits nowhere, about 100 dry runs, nominates) ─▶ victims go ─▶ attempt 2 (nominated node)

"preemptions/s" counts the first attempts alone, "placements/s" everything. ``hopeless`` is the verdict for a pod that
no eviction helps, with preemption on (no victims to be had) and off (preemptionPolicy Never).
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import random
from collections.abc import Sequence
from time import perf_counter, thread_time

import numpy as np

from scheduler.api import Eviction, Pod
from scheduler.app.core import Core, Surroundings
from scheduler.app.scheduling import _GC_THRESHOLDS as GC_THRESHOLDS
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
from tests.benchmarks import machine

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


def measure_placements(nodes: int, pods: int, *, profile: bool) -> str:
    """Return the table row of a full cluster."""
    world = World(nodes, low_priority=0)
    for i in range(5):
        world.place(world.important(-1 - i))
    profiler = cProfile.Profile() if profile else None
    if profiler:
        profiler.enable()
    times = [world.place(world.important(i)) for i in range(pods)]
    if profiler:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    first, whole = (np.array(column) for column in zip(*times, strict=True))
    p50, p99 = np.percentile(first, [50, 99]) * 1e3
    return f"{nodes:6d} nodes: {p50:6.2f} ms p50 {p99:6.2f} ms p99, {1 / first.mean():6.0f} preemptions/s, {1 / whole.mean():6.0f} placements/s"


def measure_hopeless(nodes: int, rounds: int, policy: str) -> str:
    """Return the table row of pods that fit nowhere and can evict nobody."""
    world = World(nodes, low_priority=HIGH)
    times = []
    for i in range(rounds):
        new = pod(f"big-{i}").requests(cpu="3").priority(HIGH).preemption_policy(policy).obj()
        world.core.apply(Added(new))
        times.append(world.attempt())
        world.core.drain_outbox()
        world.core.apply(Removed(new))
    p50, p99 = np.percentile(np.array(times), [50, 99]) * 1e3
    return f"{nodes:6d} nodes: hopeless, {policy:20s} {p50:6.2f} ms p50 {p99:6.2f} ms p99"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[1_000, 5_000])
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args(argv)
    print(machine.sentence(machine.facts()), "\n")
    for nodes in options.nodes:
        print(measure_placements(nodes, min(options.pods, nodes - 10), profile=options.profile))
        for policy in ("PreemptLowerPriority", "Never"):
            print(measure_hopeless(nodes, 50, policy))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
