"""The core alone, without API server: ``python -m tests.benchmarks.core_only``; prints tables, asserts no time.

Each case at each size runs in a process of its own, with the daemon's own metrics:

    python -m tests.benchmarks.core_only                              all cases, 100 … 65,000 nodes, a quarter of an hour
    python -m tests.benchmarks.core_only --quick                      1,000 and 5,000 nodes, fewer pods
    python -m tests.benchmarks.core_only --cases C --nodes 5000 --profile --metrics null

A cluster size that would not end in ``--minutes`` is left out, and said so. Case G (preemption) is measured by
``python -m tests.benchmarks.core_preemption``.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.benchmarks import machine
from tests.benchmarks.core_cases import CASES, SIZES, Case
from tests.benchmarks.core_run import InvalidRunError, measure
from tests.benchmarks.documents import CORE, OUTPUT, REPOSITORY, Document
from tests.benchmarks.tables import markdown

PODS = {100: 5_000, 1_000: 10_000}
MOST_PODS = 20_000
DEAR = frozenset("DSEF")  # cases of which 2,000 pods are enough at the largest size
QUICK_SIZES = (1_000, 5_000)
QUICK_PODS = 2_000
HEADER = (
    "case|nodes|metrics|decide p50 µs|p99 µs|decisions/s (a)|a CPU second|with events/s (b)|with decoding/s (c)"
    "|arrive µs|conclude µs|echo µs|decode µs|RSS MB"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; returns 1 if a run was invalid."""
    options = _parser().parse_args(argv)
    if options.one:
        return _measure_here(options)
    wanted = [case for case in CASES if case.letter in options.cases.upper()]
    document = Document.new(CORE, options.output / "core.json")
    print(machine.sentence(document.facts), "\n")
    document.notes += [f"case {case.letter} ({case.title}): {case.missing}" for case in wanted if case.missing]
    print("\n".join(document.notes))
    sizes = options.nodes or (QUICK_SIZES if options.quick else SIZES)
    deadline_s = perf_counter() + options.minutes * 60
    has_failed = False
    for size in sizes:  # all cases at one size first: if the time is too short, the largest clusters are left out
        for case in (case for case in wanted if not case.missing):
            for metrics in options.metrics.split(","):
                if perf_counter() > deadline_s:
                    document.notes.append(
                        f"case {case.letter} at {size:,} nodes left out: {options.minutes} minutes over"
                    )
                    continue
                figures = _measure_elsewhere(case, size, metrics, options)
                has_failed |= figures is None
                document.add(*([figures] if figures is not None else []))
    document.save()
    print("\n" + report(document.results) + "\n\n" + "\n".join(document.notes))
    print(f"\nwritten to {document.path}")
    return 1 if has_failed else 0


def growth_exponent(points: Sequence[tuple[int, float]]) -> float | None:
    """Return b of the fit cost = a · nodes^b over sizes from 1,000 on; None with fewer than two sizes."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points if size >= 1_000]
    if len(logs) < 2:
        return None
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="".join(case.letter for case in CASES), help="letters, e.g. AC")
    parser.add_argument("--nodes", type=int, nargs="*", help="cluster sizes")
    parser.add_argument("--minutes", type=float, default=15.0, help="start no measurement later than this")
    parser.add_argument("--pods", type=int, help="measured pods (default: by size)")
    parser.add_argument("--metrics", default="real", help="null, real or both")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true", help="print the 25 dearest functions (slows down)")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser


def _num_pods(case: Case, size: int, options: argparse.Namespace) -> int:
    if options.pods:
        return int(options.pods)
    if options.quick or (case.letter in DEAR and size == SIZES[-1]):
        return QUICK_PODS
    return PODS.get(size, MOST_PODS)


def _measure_here(options: argparse.Namespace) -> int:
    case = next(case for case in CASES if case.letter == options.cases)
    try:
        figures, profile = measure(case, options.nodes[0], options.pods, options.metrics, profile=options.profile)
    except InvalidRunError as error:
        print(f"invalid run: {error}", file=sys.stderr)
        return 1
    print(profile, file=sys.stderr)
    print(json.dumps(figures))
    return 0


def _measure_elsewhere(case: Case, size: int, metrics: str, options: argparse.Namespace) -> dict[str, Any] | None:
    arguments = [sys.executable, "-m", "tests.benchmarks.core_only", "--one", "--cases", case.letter]
    arguments += ["--nodes", str(size), "--pods", str(_num_pods(case, size, options)), "--metrics", metrics]
    arguments += ["--profile"] if options.profile else []
    answer = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        print(f"case {case.letter} at {size} nodes failed:\n{answer.stderr[-3000:]}")
        return None
    if options.profile:
        print(answer.stderr)
    figures: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])  # log lines may stand before
    print(
        f"case {case.letter} {size:>6} nodes, {metrics} metrics: {figures['decisions_per_s']:>7,} decisions/s, "
        f"p50 {figures['decide_us_p50']} µs, p99 {figures['decide_us_p99']} µs",
        flush=True,
    )
    return figures


def report(results: Sequence[dict[str, Any]]) -> str:
    """Return the tables: every case at every size, and how its cost grows."""
    order = [case.letter for case in CASES]
    ordered = sorted(results, key=lambda r: (order.index(r["case"]), r["metrics"], r["nodes"]))
    rows = [
        [
            f"{r['case']} {r['title']}", r["nodes"], r["metrics"],
            *(r[key] for key in ("decide_us_p50", "decide_us_p99", "decisions_per_s", "decisions_per_cpu_s")),
            *(r[key] for key in ("with_events_per_s", "with_decoding_per_s")),
            *(r["steps_us"][step] for step in ("arrive", "conclude", "echo", "decode")),
            r["rss_mb"],
        ]
        for r in ordered
    ]  # fmt: skip
    growth = [
        [f"{letter} {title}", metrics, exponent_of(results, letter, metrics)]
        for letter, title, metrics in dict.fromkeys((r["case"], r["title"], r["metrics"]) for r in ordered)
    ]
    text = markdown(HEADER.split("|"), rows)
    return f"{text}\n\n{markdown(['case', 'metrics', 'growth exponent from 1,000 nodes on'], growth)}" if rows else text


def exponent_of(results: Sequence[dict[str, Any]], letter: str, metrics: str) -> float | None:
    """Return the growth exponent of a case's CPU time a decision, rounded."""
    mine = [r for r in results if (r["case"], r["metrics"]) == (letter, metrics)]
    exponent = growth_exponent([(r["nodes"], r["decide_cpu_us_mean"]) for r in mine])
    return None if exponent is None else round(exponent, 2)


if __name__ == "__main__":
    sys.exit(main())
