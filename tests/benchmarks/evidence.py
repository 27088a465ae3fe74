"""The evidence for the table of targets, in a bounded time: ``python -m tests.benchmarks.evidence``, 35 minutes.

    python -m tests.benchmarks.evidence                       measures, then writes docs/performance.md
    python -m tests.benchmarks.evidence --resume              only what is not yet in build/benchmarks/evidence.json
    python -m tests.benchmarks.evidence --minutes 3 --scale 0.02 --docs build/try      does it work?

The steps below are taken in order, the most important first; each has an estimate of its minutes on a quiet machine with
2 cores, and one that would not end in time is left out with a note. Sizes are such that the slower side ends, too: where
the suite of kube-scheduler binds 10,000 pods, 3,000 do here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from tests.benchmarks import report, side_by_side, side_tables
from tests.benchmarks.contestants import KUBE, NULL, PODIUM
from tests.benchmarks.documents import OUTPUT, Document
from tests.benchmarks.workloads import BY_KEY, Workload

MINUTES = 35.0
EVERYBODY = (KUBE, PODIUM, NULL)


@dataclass(frozen=True, slots=True)
class Step:
    """One workload at one size: nodes, pods beforehand, measured pods, runs, and minutes it takes."""

    key: str
    nodes: int
    init: int
    pods: int
    runs: int
    minutes: float

    def workload(self, scale: float) -> Workload:
        """Return the workload at this size, scaled."""
        sized = BY_KEY[self.key].sized(self.nodes, self.init, self.pods)
        return sized if scale == 1 else sized.scaled(scale)


STEPS = (
    Step("W1", 1_000, 500, 3_000, 3, 3.4),
    Step("W2", 5_000, 1_000, 3_000, 3, 4.6),
    Step("W3", 1_000, 1_000, 1_500, 2, 1.7),
    Step("W6", 1_000, 1_000, 600, 2, 1.3),
    Step("W5", 1_000, 250, 600, 2, 1.3),
    Step("W8", 1_000, 1_000, 1_500, 2, 2.8),
    Step("W12r", 5_000, 30_000, 500, 2, 2.8),
    Step("W9", 500, 2_000, 300, 2, 1.5),
    Step("W8a", 1_000, 1_000, 1_200, 1, 1.6),
    Step("W8q", 1_000, 1_000, 1_200, 1, 1.2),
    Step("W4", 1_000, 1_000, 1_500, 2, 1.7),
    Step("W7", 1_000, 1_250, 1_500, 2, 1.6),
    Step("W10", 5_001, 0, 1_000, 1, 0.9),
    Step("W12", 50, 500, 500, 2, 1.2),
    Step("W3", 5_000, 1_000, 800, 1, 1.2),
    Step("W6", 5_000, 1_000, 500, 1, 1.2),
    Step("W9b", 1_000, 3_000, 600, 1, 1.0),
    Step("W5m", 1_000, 250, 600, 1, 0.7),
    Step("W1a", 1_000, 500, 1_500, 1, 0.6),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and write the page; returns 1 if a run was invalid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no step begins that would end later")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all sizes, and the estimates")
    parser.add_argument("--only", help="keys of workloads, comma separated")
    parser.add_argument("--resume", action="store_true", help="leave out what the result file has already")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--docs", type=Path, default=report.DOCS, help="where the page is written")
    options = parser.parse_args(argv)
    path = options.output / "evidence.json"
    document = side_by_side.new_document(path, resume=options.resume)
    _take(options, document)
    print(f"\n{side_tables.report(document.results)}\n\n" + "\n".join(document.notes))
    report.write_docs(options.docs, [document])
    return 1 if side_tables.invalid(document.results) else 0


def _take(options: argparse.Namespace, document: Document) -> None:
    begin_s = perf_counter()
    only = options.only.split(",") if options.only else list(BY_KEY)
    document.notes.clear()
    for step in (step for step in STEPS if step.key in only):
        workload = step.workload(options.scale)
        if side_by_side.is_measured(document, workload, step.runs):
            continue
        estimate = max(step.minutes * min(options.scale, 1), 0.3)
        minutes = (perf_counter() - begin_s) / 60
        if minutes + estimate > options.minutes:
            document.notes.append(f"{step.key} at {workload.nodes:,} nodes left out: it would not end in time")
            continue
        side_by_side.measure(workload, step.runs, EVERYBODY, document, is_limited_too=step.key == "W1")
        print(f"  {(perf_counter() - begin_s) / 60:.1f} of {options.minutes:g} minutes", flush=True)
    document.save()


if __name__ == "__main__":
    sys.exit(main())
