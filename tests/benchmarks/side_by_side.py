"""Podium, kube-scheduler and a null scheduler on one real API server: ``python -m tests.benchmarks.side_by_side``.

For each workload: etcd and kube-apiserver are started, nodes and pods are created beforehand, then the contestants take
turns (in each run in another order), every one in a fresh namespace with pods of its own. Every placement is checked;
an invalid one fails the run. No time is asserted: figures of a noisy machine are to be read as ratios.

    python -m tests.benchmarks.side_by_side --quick                     five workloads, one run each, some minutes
    python -m tests.benchmarks.side_by_side --runs 5                    everything, hours
    python -m tests.benchmarks.side_by_side --workloads W1 --runs 3 --pods 2000

Podium leaves out workloads whose plugins are not built yet, and says so.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

from scheduler.plugins.fail_safe import FAIL_SAFE
from tests.benchmarks import machine, null_scheduler, plots
from tests.benchmarks.api import Api, LoadError, opened
from tests.benchmarks.bind_watch import WatchBrokeError
from tests.benchmarks.contestants import KUBE, KUBE_LIMITED, NULL, PODIUM
from tests.benchmarks.one_run import InvalidRunError, Run, fill_cluster
from tests.benchmarks.stats import percentile, spread
from tests.benchmarks.tables import NOTHING, markdown, write_results
from tests.benchmarks.workloads import ALL, QUICK, Workload
from tests.controlplane.cluster import ControlPlane

REPOSITORY = Path(__file__).resolve().parents[2]
LIMITED_WORKLOAD, LIMITED_PODS = "W1", 1_000
METHOD = (
    "etcd keeps its data {where} and runs with --unsafe-no-fsync; kube-apiserver without priority and fairness, limits "
    "3,000. All processes share the machine. Pods per second are counted from the first to the last bind."
)
HEADER = (
    "workload|nodes|pods|scheduler|pods/s|least … most|sampled pods/s|pods/s until at rest|start to first bind s|CPU ms/pod: scheduler|API server|etcd"
    "|… until at rest|peak RSS MB|requests/pod|bind p50 ms|p99 ms|create→bind p50 ms|p99 ms|events|dropped|cores busy elsewhere"
)
RATIO_HEADER = (
    "workload|nodes|Podium / kube-scheduler|least … most|Podium / null|least … most|kube-scheduler / null"
    "|CPU of all three processes: kube-scheduler / Podium"
)

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; returns 1 if any run was invalid."""
    options = _parser().parse_args(argv)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_compare(options))


async def _compare(options: argparse.Namespace) -> int:
    known = machine.facts()
    method = METHOD.format(where=machine.etcd_place())
    print(f"{machine.sentence(known)}\n{method}\n")
    notes: list[str] = []
    results: list[Result] = []
    begin_s = perf_counter()
    for workload in _chosen(options):
        results += await _run_workload(workload, options, notes)
    text = "\n\n".join([machine.sentence(known), method, _report(results), *notes])
    print(f"\n{_report(results)}\n\n" + "\n".join(notes))
    shown = {"facts": known, "method": method, "notes": notes, "results": results}
    write_results(options.output, "side-by-side", shown, text)
    print(f"\n{perf_counter() - begin_s:.0f} s; written to {options.output}; {_plot(results, options.output)}")
    return 1 if any("problem" in result for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="five workloads at smaller sizes")
    parser.add_argument("--workloads", help="keys, comma separated; default: all")
    parser.add_argument("--contestants", help=f"of {KUBE}, {PODIUM}, {NULL}; comma separated")
    parser.add_argument("--runs", type=int, help="runs of each contestant (default 1 with --quick, else 5)")
    parser.add_argument("--nodes", type=int, help="cluster size instead of the workload's")
    parser.add_argument("--pods", type=int, help="measured pods instead of the workload's")
    parser.add_argument("--init", type=int, help="pods that run beforehand instead of the workload's")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "benchmarks")
    return parser


def _chosen(options: argparse.Namespace) -> list[Workload]:
    pool = QUICK if options.quick else ALL
    if options.workloads:
        keys = options.workloads.split(",")
        unknown = set(keys) - {w.key for w in pool}
        if unknown:
            sys.exit(f"unknown workloads: {', '.join(sorted(unknown))}; there are {', '.join(w.key for w in pool)}")
        pool = tuple(w for w in pool if w.key in keys)
    try:
        return [
            w.sized(options.nodes or w.nodes, w.init if options.init is None else options.init, options.pods or w.pods)
            for w in pool
        ]
    except ValueError as error:
        sys.exit(str(error))


async def _run_workload(workload: Workload, options: argparse.Namespace, notes: list[str]) -> list[Result]:
    contestants = _contestants(workload, options, notes)
    if not contestants:
        return []
    print(f"{workload.key} {workload.title}: {workload.nodes:,} nodes, {workload.pods:,} pods", flush=True)
    results: list[Result] = []
    plane = await asyncio.to_thread(ControlPlane.start)
    try:
        async with opened(plane.admin_kubeconfig) as api:
            begin_s = perf_counter()
            await fill_cluster(api, workload)
            print(f"  cluster filled in {perf_counter() - begin_s:.1f} s", flush=True)
            for number in range(_num_runs(options)):
                turn = contestants[number % len(contestants) :] + contestants[: number % len(contestants)]
                for contestant in turn:
                    results.append(await _run_once(plane, api, workload, contestant, number))
            if workload.key == LIMITED_WORKLOAD and not options.quick and KUBE in contestants:
                fewer = workload.sized(workload.nodes, workload.init, min(LIMITED_PODS, workload.pods))
                results.append(await _run_once(plane, api, fewer, KUBE_LIMITED, 0))
    finally:
        await asyncio.to_thread(plane.stop)
    return results


def _num_runs(options: argparse.Namespace) -> int:
    return int(options.runs or (1 if options.quick else 5))


def _contestants(workload: Workload, options: argparse.Namespace, notes: list[str]) -> list[str]:
    wanted = options.contestants.split(",") if options.contestants else [KUBE, PODIUM, NULL]
    missing = [name for name in workload.needs if name in FAIL_SAFE]
    if PODIUM in wanted and missing:
        wanted.remove(PODIUM)
        notes.append(f"{workload.key}: Podium left out, {', '.join(missing)} is not built yet")
    if NULL in wanted and workload.target is None:
        wanted.remove(NULL)
    if NULL in wanted:
        try:
            null_scheduler.binary()
        except null_scheduler.NullUnavailableError as error:
            wanted.remove(NULL)
            notes.append(str(error))
    return wanted


async def _run_once(plane: ControlPlane, api: Api, workload: Workload, contestant: str, number: int) -> Result:
    run = Run(plane, api, workload, contestant, number)
    base = {"workload": workload.key, "title": workload.title, "contestant": contestant, "run": number}
    base |= {"nodes": workload.nodes, "pods": workload.pods}
    try:
        figures = await run.measure()
    except (InvalidRunError, WatchBrokeError, LoadError, ExceptionGroup, TimeoutError) as error:
        print(f"  INVALID {contestant} run {number}: {error!r}", flush=True)
        return {**base, "problem": str(error)}
    cpu = figures["cpu_ms_per_pod_settled"] or {}
    print(
        f"  {contestant:<15} run {number}: {figures['pods_per_s']:>7,.1f} pods/s, CPU ms/pod until at rest: "
        f"scheduler {cpu.get('scheduler')}, API server {cpu.get('apiserver')}, etcd {cpu.get('etcd')}; "
        f"{figures['events_posted']} events; others kept {figures['others_cores']} cores busy",
        flush=True,
    )
    return {**base, **figures}


# --- report ------------------------------------------------------------------------------------------------------------


def _report(results: Sequence[Result]) -> str:
    valid = [r for r in results if "problem" not in r]
    rows, ratios = [], []
    for key in dict.fromkeys(r["workload"] for r in valid):
        mine = [r for r in valid if r["workload"] == key]
        rows += [_row(key, name, mine) for name in dict.fromkeys(r["contestant"] for r in mine)]
        ratios.append(_ratio_row(key, mine))
    invalid = [
        f"INVALID: {r['workload']} {r['contestant']} run {r['run']}: {r['problem']}" for r in results if "problem" in r
    ]
    tables = (
        [markdown(HEADER.split("|"), rows), markdown(RATIO_HEADER.split("|"), ratios)] if rows else ["no valid run"]
    )
    return "\n\n".join([*tables, *invalid])


def _row(key: str, contestant: str, results: Sequence[Result]) -> list[Any]:
    mine = [r for r in results if r["contestant"] == contestant]
    rates = spread([r["pods_per_s"] for r in mine])
    assert rates is not None
    binding, settled = (
        {name: _median([(r[which] or {}).get(name) for r in mine]) for name in ("scheduler", "apiserver", "etcd")}
        for which in ("cpu_ms_per_pod", "cpu_ms_per_pod_settled")
    )
    at_rest = " / ".join(NOTHING if value is None else f"{value:.2f}" for value in settled.values())
    return [
        f"{key} {mine[0]['title']}", mine[0]["nodes"], mine[0]["pods"], contestant,
        rates[0], f"{rates[1]:,.0f} … {rates[2]:,.0f}", _median([r["pods_per_s_sampled"] for r in mine]),
        _median([r["pods_per_s_until_rest"] for r in mine]),
        _median([r["start_to_first_bind_s"] for r in mine]),
        *binding.values(), at_rest,
        *(_median([r[name] for r in mine]) for name in (
            "peak_rss_mb", "requests_per_pod", "bind_request_ms_p50", "bind_request_ms_p99",
            "create_to_bind_ms_p50", "create_to_bind_ms_p99", "events_posted", "events_dropped",
            "others_cores",
        )),
    ]  # fmt: skip


def _ratio_row(key: str, results: Sequence[Result]) -> list[Any]:
    cells: list[Any] = [f"{key} {results[0]['title']}", results[0]["nodes"]]
    for over, under in ((PODIUM, KUBE), (PODIUM, NULL), (KUBE, NULL)):
        found = spread(ratios(results, over, under))
        cells.append(None if found is None else round(found[0], 2))
        cells.append(NOTHING if found is None else f"{found[1]:.2f} … {found[2]:.2f}")
    cells[-1] = cpu_ratio(results)
    return cells


def ratios(results: Sequence[Result], over: str, under: str) -> list[float]:
    """Return the ratios of the rates of two contestants, run by run."""
    rates = {(r["contestant"], r["run"]): r["pods_per_s"] for r in results}
    numbers = sorted({r["run"] for r in results})
    return [rates[over, n] / rates[under, n] for n in numbers if rates.get((over, n)) and rates.get((under, n))]


def cpu_ratio(results: Sequence[Result]) -> float | None:
    """Return how many times the CPU time a pod (scheduler, API server and etcd) kube-scheduler takes; noise-proof."""
    spent = {name: _median([_all_cpu_ms(r) for r in results if r["contestant"] == name]) for name in (KUBE, PODIUM)}
    kube, ours = spent[KUBE], spent[PODIUM]
    return round(kube / ours, 2) if kube and ours else None


def _all_cpu_ms(result: Result) -> float | None:
    spent = result["cpu_ms_per_pod_settled"]
    return sum(spent.values()) if spent else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _plot(results: Sequence[Result], output: Path) -> str:
    valid = [r for r in results if "problem" not in r]
    bars = {}
    for key in dict.fromkeys(r["workload"] for r in valid):
        found = ratios([r for r in valid if r["workload"] == key], PODIUM, KUBE)
        if found:
            bars[key] = statistics.median(found)
    done = plots.bars(output / "ratios.svg", bars, title="Podium against kube-scheduler", y="times as many pods/s")
    if done == plots.NO_MATPLOTLIB:
        return done
    sizes: dict[str, list[tuple[float, float]]] = {}
    for r in valid:
        if r["title"] == "plain":
            sizes.setdefault(r["contestant"], []).append((r["nodes"], r["pods_per_s"]))
    done += "; " + plots.lines(output / "throughput.svg", sizes, title="Plain pods", x="nodes", y="pods/s")
    latency = {
        f"{r['workload']} {r['contestant']}": [(p, _gap_ms(r, p)) for p in (50, 75, 90, 95, 99, 99.9)]
        for r in valid
        if r["run"] == 0
    }
    return (
        done
        + "; "
        + plots.lines(
            output / "latency.svg", latency, title="Time from one bind to the next", x="percentile", y="ms", log=False
        )
    )


def _gap_ms(result: Result, per_cent: float) -> float:
    times = result["bind_times_s"]
    return (percentile([b - a for a, b in itertools.pairwise(times)], per_cent) or 0.0) * 1e3


if __name__ == "__main__":
    sys.exit(main())
