"""What disruption budgets cost preemption: ``python -m tests.benchmarks.core_budgets``; prints a table, asserts no time.

Full clusters that differ in nothing but their budgets take the same important pods in turns, so the machine's noise
falls on all. A budget that allows no disruption makes every node a violation, and then more nodes are tried (parity:
the search ends once it has enough candidates and one of them violates nothing); so the many budgets are compared with
one that allows as little.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from statistics import median

from scheduler.model.delta import Added
from scheduler.model.policy import PodDisruptionBudget
from scheduler.testing.builders import obj
from tests.benchmarks import machine
from tests.benchmarks.core_preemption import LOW_PODS, World
from tests.benchmarks.hostile_cases import MANY, budgets_over_all
from tests.benchmarks.tables import markdown


def budget(num_pods: int, *, allowed: int, booked: int = 0) -> PodDisruptionBudget:
    """Return a budget over all pods of the cluster."""
    disrupted = {f"gone-{i}": "2026-01-01T00:00:00Z" for i in range(booked)}
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": num_pods,
        "expectedPods": num_pods,
        "disruptedPods": disrupted,
    }
    metadata = {"name": "all", "namespace": "default"}
    return obj(
        PodDisruptionBudget,
        {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "low"}}}, "status": status},
    )


def cases(num_pods: int) -> dict[str, list[PodDisruptionBudget]]:
    """Return the budgets of each cluster."""
    return {
        "no budget": [],
        f"one of {num_pods:,} pods, allows them all": [budget(num_pods, allowed=num_pods)],
        f"one of {num_pods:,} pods, allows none": [budget(num_pods, allowed=0)],
        f"one of {num_pods:,} pods, allows none, {num_pods:,} booked": [budget(num_pods, allowed=0, booked=num_pods)],
        f"{MANY:,}, each of {num_pods:,} pods, allow none": [
            made for made in budgets_over_all() if isinstance(made, PodDisruptionBudget)
        ],
    }


def measure(num_nodes: int, num_pods: int) -> list[list[object]]:
    """Return the rows: median CPU milliseconds of an attempt that preempts, against none and against one budget."""
    made = cases(num_nodes * LOW_PODS)
    with contextlib.ExitStack() as stack:
        worlds = [stack.enter_context(contextlib.closing(World(num_nodes, low_priority=0))) for _ in made]
        for world, budgets in zip(worlds, made.values(), strict=True):
            for each in budgets:
                world.core.apply(Added(each))
        times: list[list[float]] = [[] for _ in worlds]
        for i in range(num_pods):
            order = range(len(worlds)) if i % 2 else reversed(range(len(worlds)))
            for k in order:
                times[k].append(worlds[k].place(worlds[k].important(i))[0] * 1e3)
    ms = [median(column) for column in times]
    return [
        [title, round(each, 2), round(each / ms[0], 2), round(each / ms[2], 2)]
        for title, each in zip(made, ms, strict=True)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_500, help=f"nodes, each with {LOW_PODS} pods")
    parser.add_argument("--pods", type=int, default=20, help="important pods")
    options = parser.parse_args(argv)
    print(machine.sentence(machine.facts()), "\n")
    header = ["budgets", "attempt ms", "against none", "against one that allows none"]
    print(markdown(header, measure(options.nodes, options.pods)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
