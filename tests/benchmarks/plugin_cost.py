"""What a ten-line plugin costs: ``python -m tests.benchmarks.plugin_cost``; prints a table, asserts no time.

The plugin is the one of the README, once looking at one node at a time, once at all nodes as columns. With a per-node
plugin Podium looks at as many nodes as kube-scheduler does (upstream's adaptive number) unless the configuration says
``percentageOfNodesToScore: 100``.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scheduler.api import CycleState, FilterPlugin, NodesView, NodeView, Pod, Status, Verdicts
from tests.benchmarks import machine
from tests.benchmarks.core_cases import CASES
from tests.benchmarks.core_run import CONFIGURATION, measure
from tests.benchmarks.documents import OUTPUT, PLUGINS, Document
from tests.benchmarks.tables import markdown

SIZES = (1_000, 5_000)
PODS = 2_000
MOST_PODS = 100
TOO_MANY = Status.unschedulable("node(s) were not quiet")


class QuietNodes(FilterPlugin):
    """Ten lines: nodes with few pods only."""

    name = "QuietNodes"

    def __init__(self, args: Any, handle: Any) -> None:
        self.limit = (args or {}).get("pods", MOST_PODS)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        return None if node.num_pods < self.limit else TOO_MANY


class QuietNodesAtOnce(QuietNodes):
    """The same rule in the whole-cluster form."""

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        return Verdicts.all_equal(np.asarray(nodes.num_pods < self.limit), TOO_MANY)


PROFILE = CONFIGURATION.replace("}]", ", plugins: {multiPoint: {enabled: [{name: QuietNodes}]}}}]")
VARIANTS: dict[str, tuple[str, type[QuietNodes] | None]] = {
    "without the plugin": (CONFIGURATION, None),
    "one node at a time": (PROFILE, QuietNodes),
    "one node at a time, all nodes": (PROFILE + "percentageOfNodesToScore: 100\n", QuietNodes),
    "all nodes at once": (PROFILE, QuietNodesAtOnce),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(argv)
    document = Document.new(PLUGINS, options.output / "plugins.json")
    print(machine.sentence(document.facts), "\n", flush=True)
    for case in (case for case in CASES if case.letter in "AC"):
        for nodes in options.nodes:
            for variant, (configuration, plugin) in VARIANTS.items():
                more = {} if plugin is None else {QuietNodes.name: plugin}
                figures, _ = measure(case, nodes, options.pods, "real", configuration=configuration, plugins=more)
                gc.unfreeze()
                gc.collect()
                document.add(figures | {"variant": variant})
    print(f"{report(document.results)}\n\nwritten to {document.path}")
    return 0


def report(results: Sequence[dict[str, Any]]) -> str:
    """Return the table."""
    header = "pods|nodes|plugin|decide p50 µs|p99 µs|decisions/s|share of the rate without"
    rows = []
    for r in results:
        alone = next(o for o in results if (o["case"], o["nodes"]) == (r["case"], r["nodes"]))  # the first variant
        share = round(r["decisions_per_cpu_s"] / alone["decisions_per_cpu_s"], 2)
        rows.append([r["title"], r["nodes"], r["variant"], r["decide_us_p50"], r["decide_us_p99"],
                     r["decisions_per_cpu_s"], share])  # fmt: skip
    return markdown(header.split("|"), rows)


if __name__ == "__main__":
    sys.exit(main())
