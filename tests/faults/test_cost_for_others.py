"""What hostile objects cost others, as a share of what a decision costs without them.

A load at an even rate does not tell: a scheduler ten times as slow would keep pace with it. So the core itself takes the
same ordinary pods in turns beside hostile objects and without them, with the time of the CPU as its clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.benchmarks.core_hostile import STEPS, interleaved
from tests.benchmarks.hostile_cases import KINDS, Kind
from tests.faults.bench import FaultBench, fault
from tests.faults.results import at_most

NODES, PODS, RUNS = 100, 150, 3
FIRST = 20
"""Decisions after which whatever is kept about running pods has been worked out, for every label that ordinary pods have."""
DEAREST = 5
"""So many kinds are named with their ratios."""
BY_NODE = {"3 running pods, 2,000 claims of nothing"}
"""Each pod that comes to their node meets all claims there: dearer for those, which are many on few nodes."""


def costs(kind: Kind) -> Mapping[str, float]:
    """Return what each step costs beside the hostile objects over what it costs without, and what the first one costs.

    Every run takes the same steps; the quickest of each counts, as what else the machine did only adds to it. Then they
    are summed, so that a dear one now and then shows as well.

    Returns:
        ratios by step, and CPU seconds of the very first decision as ``first``.
    """
    runs = [interleaved(kind, NODES, PODS)[0] for _ in range(RUNS)]
    quickest = {
        step: [list(map(min, zip(*(run[step][side] for run in runs), strict=True))) for side in (0, 1)]
        for step in STEPS
    }
    ratios = {step: sum(hostile[FIRST:]) / sum(quiet[FIRST:]) for step, (quiet, hostile) in quickest.items()}
    return {**ratios, "first": quickest["place"][1][0]}


def dearest(found: Mapping[str, Mapping[str, float]], step: str) -> str:
    rows = sorted(((shares[step], title) for title, shares in found.items()), reverse=True)
    return "; ".join(f"{share:.2f} {title}" for share, title in rows[:DEAREST])


@fault(38, "hostile objects of every kind beside ordinary pods, in the core by itself")
def test_cost_for_others(bench: FaultBench) -> None:
    """Decisions for others take at most a tenth longer.

    Two prices are named apart. Beside the first pod with a rule that all who come must be held against, or on a full
    node, each decision is dearer, whoever wrote that one rule; thousands of rules add no more to it. And the first
    decision after thousands of rules came pays for understanding them, once.
    """
    found = {kind.title: costs(kind) for kind in KINDS}
    named = {kind.title for kind in KINDS if kind.is_honest} | BY_NODE
    assert named <= found.keys()
    hostile = {title: shares for title, shares in found.items() if title not in named}
    honest = {title: shares for title, shares in found.items() if title in named}
    words = "a decision from arrival to the bind, beside over without"
    bench.figure(f"{words}, worst of {len(hostile)} kinds", at_most(1.10), max(s["place"] for s in hostile.values()))
    bench.figure(f"{words}, {len(honest)} kinds named below", at_most(1.30), max(s["place"] for s in honest.values()))
    bench.figure("the first decision beside them", at_most(0.25), max(s["first"] for s in found.values()), "s")
    bench.note(f"a decision: {dearest(hostile, 'place')}")
    bench.note(f"named apart: {dearest(honest, 'place')}")
    bench.note(f"taking in an end: {dearest(found, 'leave')}")
    bench.note(f"taking in another label of a node, which may run them: {dearest(found, 'node')}")
    bench.verdict()
