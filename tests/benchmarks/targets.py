"""The targets, and what the results at hand say about them; clusters that are too small decide nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks import core_only, side_tables
from tests.benchmarks.contestants import KUBE, NULL, PODIUM
from tests.benchmarks.documents import CORE, PREEMPTION, SIDE_BY_SIDE, STEADY
from tests.benchmarks.side_tables import JUDGED
from tests.benchmarks.stats import spread
from tests.benchmarks.tables import NOTHING, markdown
from tests.benchmarks.workloads import BY_KEY

Result = dict[str, Any]
Results = Mapping[str, Sequence[Result]]
"""Kind of document -> its results."""

LARGEST = 65_000


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured for a target, and whether that is enough; None: not measured."""

    text: str
    is_reached: bool | None


NOT_MEASURED = Finding("not measured", None)


@dataclass(frozen=True, slots=True)
class Target:
    """One row of the table."""

    what: str
    wanted: str
    find: Callable[[Results], Finding]


def table(results: Results) -> str:
    """Return target, measured, reached as Markdown."""
    rows = []
    for target in TARGETS:
        found = target.find(results)
        reached = {True: "yes", False: "**no**", None: NOTHING}[found.is_reached]
        rows.append([target.what, target.wanted, found.text, reached])
    return markdown(["what", "target", "measured", "reached"], rows)


# --- side by side ----------------------------------------------------------------------------------------------------


def _compared(results: Results, key: str) -> list[list[Result]]:
    """Return the runs of a workload by size, the smallest first, where both schedulers were measured."""
    mine = [r for r in results.get(SIDE_BY_SIDE, ()) if r["workload"] == key]
    pairs = [g for g in side_tables.groups(mine).values() if {PODIUM, KUBE} <= {r["contestant"] for r in g}]
    return sorted(pairs, key=lambda g: (g[0]["nodes"], g[0]["init"], g[0]["pods"]))


def _largest(results: Results, key: str, contestant: str) -> list[Result]:
    """Return the runs of one contestant at the largest size."""
    pairs = _compared(results, key)
    return [r for r in pairs[-1] if r["contestant"] == contestant] if pairs else []


def _counts(result: Result) -> bool:
    """Say whether a cluster is large enough for the target: the workload's own size, or 1,000 nodes."""
    load = BY_KEY[result["workload"]]
    return bool(result["nodes"] >= (load.nodes if load.nodes >= 5_000 else min(load.nodes, 1_000)))


def _times(key: str, wanted: float, of_null: float = 0.0) -> Callable[[Results], Finding]:
    """Return how many times as fast as kube-scheduler (and as the null scheduler) a workload went."""

    def find(results: Results) -> Finding:
        texts, reached = [], []
        for mine in _compared(results, key):
            found = spread(side_tables.ratios(mine, PODIUM, KUBE))
            if found is None:
                continue
            text, is_reached = f"{found[0]:.2f} times ({found[1]:.2f} … {found[2]:.2f})", found[0] >= wanted
            null = spread(side_tables.ratios(mine, PODIUM, NULL)) if of_null else None
            if null is not None:
                text += f", {null[0]:.2f} of null"
                is_reached &= null[0] >= of_null
            texts.append(f"{text} at {mine[0]['nodes']:,} nodes")
            reached += [is_reached] if _counts(mine[0]) else []
        return Finding("; ".join(texts), all(reached) if reached else None) if texts else NOT_MEASURED

    return find


def _no_blocking(results: Results) -> Finding:
    """Compare the p99 of fitting pods that arrive at a steady rate with and without the noise."""
    noisy, quiet = (_largest(results, key, PODIUM) for key in ("W8a", "W8q"))
    with_noise, without = side_tables.wait_ms(noisy, 99), side_tables.wait_ms(quiet, 99)
    if with_noise is None or without is None:
        return NOT_MEASURED
    text = f"{with_noise:,.0f} ms against {without:,.0f} ms: {with_noise / without:.1f} times"
    return Finding(text, with_noise <= 2 * without if _counts(noisy[0]) else None)


def _cpu_per_pod(results: Results) -> Finding:
    texts, reached = [], []
    for key in ("W1", "W2"):
        mine = _largest(results, key, PODIUM)
        spent_ms = side_tables.cpu_ms(mine, "cpu_ms_per_pod_settled", "scheduler")
        if spent_ms is not None:
            texts.append(f"{spent_ms:.2f} ms at {mine[0]['nodes']:,} nodes")
            reached += [spent_ms <= 0.6] if _counts(mine[0]) else []
    return Finding(", ".join(texts), all(reached) if reached else None) if texts else NOT_MEASURED


def _start(results: Results) -> Finding:
    mine = _largest(results, "W12r", PODIUM)
    start_s, rss_mb = (side_tables.median(mine, key) for key in ("start_to_first_bind_s", "peak_rss_mb"))
    if start_s is None or rss_mb is None:
        return NOT_MEASURED
    text = f"{start_s:.1f} s, {rss_mb:,.0f} MB peak with {mine[0]['nodes']:,} nodes and {mine[0]['init']:,} pods"
    is_whole = _counts(mine[0]) and mine[0]["init"] >= 30_000
    return Finding(text, start_s <= 5 and rss_mb <= 400 if is_whole else None)


# --- the core --------------------------------------------------------------------------------------------------------


def _decisions(wanted: Mapping[tuple[str, int], int]) -> Callable[[Results], Finding]:
    """Return decisions a second (case, nodes -> at least)."""

    def find(results: Results) -> Finding:
        cases = [r for r in results.get(CORE, ()) if r["metrics"] == "real"]
        rates = {(r["case"], r["nodes"]): r["decisions_per_s"] for r in cases}
        found = {point: rates[point] for point in wanted if point in rates}
        if not found:
            return NOT_MEASURED
        text = ", ".join(f"{letter}/{nodes:,}: {rate:,}/s" for (letter, nodes), rate in found.items())
        is_reached = all(rate >= wanted[point] for point, rate in found.items()) and len(found) == len(wanted)
        return Finding(text, is_reached)

    return find


def _preemptions(results: Results) -> Finding:
    rates = [r["per_s"] for r in results.get(PREEMPTION, ()) if (r["case"], r["nodes"]) == ("preempts", 1_000)]
    return Finding(f"{rates[-1]:,.0f}/s", rates[-1] >= 300) if rates else NOT_MEASURED


def _growth(results: Results) -> Finding:
    core = [r for r in results.get(CORE, ()) if r["nodes"] <= LARGEST]
    if not any(r["nodes"] == LARGEST for r in core):
        return NOT_MEASURED
    alike, unlike = (core_only.exponent_of(core, letter, "real") for letter in "AC")
    if alike is None or unlike is None:
        return NOT_MEASURED
    return Finding(f"{alike:.2f} with (A), {unlike:.2f} without (C)", alike <= 0.3 and unlike <= 0.6)


def _steady(results: Results) -> Finding:
    mine = [r for r in results.get(STEADY, ()) if r["growth_per_cent"] is not None]
    if not mine:
        return NOT_MEASURED
    text = "; ".join(f"{r['growth_per_cent']:+.2f} % over {r['pods']:,} pods ({r['where']})" for r in mine)
    is_whole = any(r["pods"] >= 200_000 for r in mine)
    return Finding(text, all(abs(r["growth_per_cent"]) <= 1 for r in mine) and is_whole)


def _versus(key: str, wanted: float, of_null: float = 0.0) -> Target:
    load = BY_KEY[key]
    by = "" if load.judged_by == "rate" else f" (by {JUDGED[load.judged_by]})"
    null = f", ≥ {of_null} of null" if of_null else ""
    return Target(f"{key} {load.title}{by}", f"≥ {wanted:g} times{null}", _times(key, wanted, of_null))


SIZES = core_only.SIZES
TARGETS = (
    _versus("W1", 2.5, 0.8),
    _versus("W2", 4, 0.8),
    *(_versus(key, 6) for key in ("W3", "W4", "W5", "W5m", "W6", "W7", "W8")),
    Target("W8 no head-of-line blocking: p99 wait of fitting pods", "≤ 2 times the quiet case", _no_blocking),
    *(_versus(key, 2) for key in ("W9", "W9b", "W10", "W12", "W12r")),
    Target("our CPU per pod, plain, with watch, bind, event", "≤ 0.6 ms", _cpu_per_pod),
    Target("core: no two pods alike", "≥ 5,000/s at 5,000 nodes, ≥ 1,000/s at 65,000", _decisions({("C", 5_000): 5_000, ("C", LARGEST): 1_000})),
    Target("core: one class", "≥ 10,000/s at every size", _decisions({("A", size): 10_000 for size in SIZES})),
    Target("core: hard spread, anti-affinity, affinity", "≥ 3,000/s at 5,000 nodes", _decisions({(case, 5_000): 3_000 for case in "SEF"})),
    Target("core: preemption, 1,000 full nodes", "≥ 300/s", _preemptions),
    Target("growth exponent of a decision's cost, 1,000 → 65,000 nodes", "≤ 0.3 with class reuse, ≤ 0.6 without", _growth),
    Target("start to first bind, 5,000 nodes and 30,000 bound pods", "≤ 5 s, ≤ 400 MB", _start),
    Target("200,000 pods created and deleted at 5,000 nodes", "RSS slope 0 ± 1 %", _steady),
)  # fmt: skip
