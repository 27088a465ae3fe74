"""What hostile input costs others: ``python -m tests.benchmarks.core_hostile``; prints a table, asserts no time.

Two cores with the same nodes, one of them with hostile pods, take the same ordinary pods in turns, so the machine's
noise falls on both. For each pod the CPU time is taken of everything it costs on the scheduling thread::

    place:  arrive ─▶ decide ─▶ bound ─▶ echo of the watch       leave:  removed       node:  a node's label changes

The ratios compare medians. ``own`` is the longest single attempt of a hostile pod, which others wait for once.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter, thread_time

import msgspec

from scheduler.app.core import Core, Surroundings
from scheduler.app.outside import GC_THRESHOLDS
from scheduler.config.load import default_configuration
from scheduler.config.options import SchedulerOptions
from scheduler.framework.registry import Registry
from scheduler.model.delta import Added, Changed, Delta, Removed, Synced
from scheduler.model.meta import Condition, KubeObject
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.plugins import IN_TREE
from scheduler.state.outbox import PatchPodStatus, StartBinding
from scheduler.testing.builders import node, pod
from scheduler.testing.clock import FakeClock
from scheduler.testing.harness import NullCoreMetrics
from tests.benchmarks import machine
from tests.benchmarks.hostile_cases import KINDS, Kind
from tests.benchmarks.tables import markdown

STEPS = ("place", "leave", "node")


class Faults(NullCoreMetrics):
    """Measures nothing but the plugins' faults: exceptions, nonsense, overrun budgets."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def plugin_fault(self, plugin: str, point: str, kind: str) -> None:
        """Note the fault."""
        self.seen.append((plugin, point, kind))


class World:
    """A core with empty nodes, and what it costs to let things happen in it.

    Attributes:
        conditions: the newest condition that each pod was given, by pod name.
        faults: what plugins did that they should not.
    """

    def __init__(self, num_nodes: int) -> None:
        self.conditions: dict[str, Condition] = {}
        self.faults = Faults()
        self.core = Core(
            default_configuration(),
            SchedulerOptions(),
            Registry(IN_TREE, ()),
            Surroundings(clock=FakeClock(), random=random.Random(1), perf_counter=perf_counter, metrics=self.faults),
        )
        self.nodes = [
            node(f"node-{i:05d}").capacity(cpu="32", memory="128Gi", pods="110").zone("abc"[i % 3]).hostname().obj()
            for i in range(num_nodes)
        ]
        self.put(*self.nodes)
        for kind in self.core.kinds:
            self.core.apply(Synced(kind))

    def put(self, *objects: KubeObject) -> None:
        """Create objects, as far as their kinds are watched."""
        for made in objects:
            if type(made) in self.core.kinds:
                self.core.apply(Added(made))

    def try_all(self) -> float:
        """Try the pods that wait, each once; returns the seconds of the longest attempt."""
        longest_s = 0.0
        while self.core.queue.sizes().active:
            begin_s = thread_time()
            self.core.schedule_one()
            longest_s = max(longest_s, thread_time() - begin_s)
            self._conclude()
        return longest_s

    def place(self, new: Pod) -> float:
        """Take an ordinary pod from arrival to its node; returns the CPU seconds."""
        begin_s = thread_time()
        self.core.apply(Added(new))
        self.core.schedule_one()
        self._conclude()
        return thread_time() - begin_s

    def apply(self, delta: Delta) -> float:
        """Let something happen; returns the CPU seconds."""
        begin_s = thread_time()
        self.core.apply(delta)
        return thread_time() - begin_s

    def _conclude(self) -> None:
        core = self.core
        for order in core.drain_outbox():
            if isinstance(order, StartBinding):
                core.permit_passed(order)
                core.binding_succeeded(order)
                core.binding_ended(order)
                core.apply(Changed(order.info.pod, order.assumed))
            elif isinstance(order, PatchPodStatus) and order.condition is not None:
                self.conditions[order.pod.name] = order.condition
        core.drain_outbox()


def ordinary(index: int) -> Pod:
    """Return one of many pods that differ in what they ask for and in one label."""
    labels = {"app": f"app-{index % 20}", "statefulset.kubernetes.io/pod-name": f"pod-{index}"}
    return pod(f"pod-{index}").requests(cpu=f"{10 + index % 300}m", memory=f"{64 + index}Mi").labels(labels).obj()


def relabelled(known: Node, index: int) -> Node:
    """Return the node with another value of a label that some care for."""
    labels = {**known.metadata.labels, "rack": f"rack-{index}"}
    metadata = msgspec.structs.replace(known.metadata, labels=labels, resource_version=str(index + 2))
    return msgspec.structs.replace(known, metadata=metadata)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage as rarely as the daemon does, and look at nothing that was there before."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


Times = dict[str, tuple[list[float], list[float]]]
"""CPU seconds by step, for each pod in order: in the quiet world and in the hostile one."""


def interleaved(kind: Kind | None, num_nodes: int, num_pods: int) -> tuple[Times, float]:
    """Take the same pods through a quiet and a hostile world in turns.

    The same numbers make the same things happen, step by step: of several runs the quickest of each step may be taken.

    Returns:
        the CPU seconds of every step, and the longest attempt of a hostile pod.
    """
    quiet, hostile = World(num_nodes), World(num_nodes)
    if kind is not None:
        hostile.put(*kind.make())
        quiet.put(*kind.beside() if kind.beside is not None else ())
    own_s = hostile.try_all()
    stay = min(100, num_pods // 2)
    times: Times = {step: ([], []) for step in STEPS}
    with rare_collections():
        for i in range(num_pods):
            new = ordinary(i)
            for side, world in enumerate((quiet, hostile) if i % 2 else (hostile, quiet)):
                column = side if i % 2 else 1 - side
                times["place"][column].append(world.place(new))
                known = world.nodes[i * 31 % num_nodes]
                changed = relabelled(known, i)
                times["node"][column].append(world.apply(Changed(known, changed)))
                world.nodes[i * 31 % num_nodes] = changed
                if i >= stay:
                    gone = world.core.cache.get_pod(ordinary(i - stay).uid)
                    assert gone is not None, f"pod {i - stay} was placed"
                    times["leave"][column].append(world.apply(Removed(gone)))
    return times, own_s


def measure(kind: Kind | None, num_nodes: int, num_pods: int) -> tuple[dict[str, tuple[float, float]], float]:
    """Return the median CPU seconds by step, quiet and hostile, and the longest attempt of a hostile pod."""
    times, own_s = interleaved(kind, num_nodes, num_pods)
    return {step: (median(a), median(b)) for step, (a, b) in times.items()}, own_s


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=400, help="ordinary pods measured for each kind")
    parser.add_argument("--only", default="", help="kinds whose title has this in it")
    options = parser.parse_args(argv)
    print(machine.sentence(machine.facts()), "\n")
    rows: list[list[object]] = []
    for kind in (None, *KINDS):
        title = "nothing" if kind is None else kind.title
        if options.only in title:
            medians, own_s = measure(kind, options.nodes, options.pods)
            row: list[object] = [title]
            for quiet_s, hostile_s in medians.values():
                row += [round(hostile_s * 1e6, 1), round(hostile_s / quiet_s, 2)]
            rows.append([*row, round(own_s * 1e3, 1)])
            print("; ".join(map(str, rows[-1])), file=sys.stderr, flush=True)
    header = ["hostile input", *(f"{step} {what}" for step in STEPS for what in ("µs", "ratio")), "own ms"]
    print(markdown(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
