"""Podium, kube-scheduler and a null scheduler on one real API server: ``python -m tests.benchmarks.side_by_side``.

For each workload: etcd and kube-apiserver are started, nodes and pods are created beforehand, then the contestants take
turns (in each run in another order), every one in a fresh namespace with pods of its own. Every placement is checked;
an invalid one fails the run. No time is asserted: figures of a noisy machine are to be read as ratios.

    python -m tests.benchmarks.side_by_side --quick                     five workloads, one run each, some minutes
    python -m tests.benchmarks.side_by_side                             everything, three runs, at most 75 minutes
    python -m tests.benchmarks.side_by_side --resume                    what the last one did not come to
    python -m tests.benchmarks.side_by_side --workloads W1,W3 --runs 5 --pods 2000
    python -m tests.benchmarks.side_by_side --workloads W1 --contestants "podium, profiled" --runs 1
    python -m tests.benchmarks.side_by_side --scale 0.02 --runs 1       does it work? a few minutes

Results are written after every workload (``--name``.json in ``--output``). What several invocations have measured is
put together by ``python -m tests.benchmarks.report``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

from scheduler.kube.errors import TransportError
from tests.benchmarks import machine, null_scheduler, side_tables
from tests.benchmarks.api import Api, LoadError, opened
from tests.benchmarks.bind_watch import WatchBrokeError
from tests.benchmarks.contestants import KUBE, KUBE_LIMITED, NULL, PODIUM, STARTERS
from tests.benchmarks.documents import OUTPUT, SIDE_BY_SIDE, Document
from tests.benchmarks.one_run import InvalidRunError, Run, fill_cluster
from tests.benchmarks.workloads import ALL, QUICK, Workload
from tests.controlplane.cluster import ControlPlane, ControlPlaneError

LIMITED_WORKLOAD, LIMITED_PODS = "W1", 1_000
RUNS, QUICK_RUNS = 3, 1
MINUTES, QUICK_MINUTES = 75.0, 8.0
METHOD = (
    "etcd keeps its data {where} and runs with --unsafe-no-fsync; kube-apiserver without priority and fairness, limits "
    "3,000. All processes share the machine. Pods per second are counted from the first to the last bind."
)

FAILURES = (InvalidRunError, WatchBrokeError, LoadError, TransportError, ExceptionGroup, TimeoutError)

Result = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; returns 1 if any run was invalid."""
    options = _parser().parse_args(argv)
    workloads = _chosen(options)
    document = new_document(options.output / f"{options.name}.json", resume=options.resume)
    runs = int(options.runs or (QUICK_RUNS if options.quick else RUNS))
    wanted = list(options.contestants or (KUBE, PODIUM, NULL))
    minutes = options.minutes or (QUICK_MINUTES if options.quick else MINUTES)
    begin_s = perf_counter()
    for workload in workloads:
        if is_measured(document, workload, runs):
            continue
        if perf_counter() - begin_s > minutes * 60:
            document.notes.append(f"{workload.key} left out: {minutes:g} minutes were over")
            continue
        measure(workload, runs, wanted, document, is_limited_too=not options.quick)
    document.save()
    text = side_tables.report(document.results)
    print(f"\n{text}\n\n" + "\n".join(document.notes))
    print(f"\n{perf_counter() - begin_s:.0f} s; written to {document.path}")
    return 1 if side_tables.invalid(document.results) else 0


def new_document(path: Path, *, resume: bool) -> Document:
    """Return a document for side-by-side results, and say on what machine they are made.

    Args:
        path: where it is kept.
        resume: begin with what is there already, invalid runs apart.
    """
    method = METHOD.format(where=machine.etcd_place())
    document = Document.new(SIDE_BY_SIDE, path, method=method)
    if resume and path.exists():
        document.results = side_tables.valid(Document.read(path).results)
    print(f"{machine.sentence(document.facts)}\n{method}\n", flush=True)
    return document


def is_measured(document: Document, workload: Workload, runs: int) -> bool:
    """Say whether the document has so many valid runs of Podium on a workload of this size."""
    mine = [r for r in document.results if _size(r) == _size_of(workload) and r["contestant"] == PODIUM]
    return len(side_tables.valid(mine)) >= runs


def _size(result: Result) -> tuple[str, int, int, int]:
    return result["workload"], result["nodes"], result["init"], result["pods"]


def _size_of(workload: Workload) -> tuple[str, int, int, int]:
    return workload.key, workload.nodes, workload.init, workload.pods


def measure(
    workload: Workload, runs: int, wanted: Sequence[str], document: Document, *, is_limited_too: bool = False
) -> None:
    """Let the contestants take turns on a workload; results go into the document in place of earlier ones."""
    document.results = [r for r in document.results if _size(r) != _size_of(workload)]
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_measure(workload, runs, wanted, document, is_limited_too=is_limited_too))
    except (ControlPlaneError, *FAILURES) as error:  # the next workload gets a control plane of its own
        print(f"  INVALID {workload.key}: {error!r}", flush=True)
        document.add({**_base(workload, "set-up", 0), "problem": repr(error)})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="five workloads at smaller sizes")
    parser.add_argument("--workloads", help="keys, comma separated; default: all")
    parser.add_argument("--contestants", nargs="+", choices=tuple(STARTERS), help="default: the first three")
    parser.add_argument("--runs", type=int, help=f"of each contestant (default {QUICK_RUNS} with --quick, else {RUNS})")
    parser.add_argument(
        "--minutes", type=float, help=f"start no workload later (default {QUICK_MINUTES:g} or {MINUTES:g})"
    )
    parser.add_argument("--resume", action="store_true", help="leave out what the result file has already")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies all sizes")
    parser.add_argument("--nodes", type=int, help="cluster size instead of the workload's")
    parser.add_argument("--pods", type=int, help="measured pods instead of the workload's")
    parser.add_argument("--init", type=int, help="pods that run beforehand instead of the workload's")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--name", default="side-by-side", help="of the file in the output directory")
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
        scaled = [w.scaled(options.scale) if options.scale != 1 else w for w in pool]
        return [
            w.sized(options.nodes or w.nodes, w.init if options.init is None else options.init, options.pods or w.pods)
            for w in scaled
        ]
    except ValueError as error:
        sys.exit(str(error))


async def _measure(
    workload: Workload, runs: int, wanted: Sequence[str], document: Document, *, is_limited_too: bool
) -> None:
    contestants = _contestants(workload, wanted, document.notes)
    print(f"{workload.key} {workload.title}: {workload.nodes:,} nodes, {workload.pods:,} pods", flush=True)
    plane = await asyncio.to_thread(ControlPlane.start)
    try:
        async with opened(plane.admin_kubeconfig) as api:
            begin_s = perf_counter()
            await fill_cluster(api, workload)
            print(f"  cluster filled in {perf_counter() - begin_s:.1f} s", flush=True)
            for number in range(runs):
                turn = number % len(contestants)
                for contestant in contestants[turn:] + contestants[:turn]:
                    document.add(await _run_once(plane, api, workload, contestant, number))
            if workload.key == LIMITED_WORKLOAD and is_limited_too and KUBE in contestants:
                fewer = workload.sized(workload.nodes, workload.init, min(LIMITED_PODS, workload.pods))
                document.add(await _run_once(plane, api, fewer, KUBE_LIMITED, 0))
    finally:
        await asyncio.to_thread(plane.stop)


def _contestants(workload: Workload, wanted: Sequence[str], notes: list[str]) -> list[str]:
    able = [name for name in wanted if name != NULL or workload.target is not None]
    if NULL in able:
        try:
            null_scheduler.binary()
        except null_scheduler.NullUnavailableError as error:
            able.remove(NULL)
            if str(error) not in notes:
                notes.append(str(error))
    return able


def _base(workload: Workload, contestant: str, number: int) -> Result:
    sizes = {"nodes": workload.nodes, "init": workload.init, "pods": workload.pods}
    return {"workload": workload.key, "title": workload.title, "contestant": contestant, "run": number, **sizes}


async def _run_once(plane: ControlPlane, api: Api, workload: Workload, contestant: str, number: int) -> Result:
    begin_s = perf_counter()
    run = Run(plane, api, workload, contestant, number)
    base = _base(workload, contestant, number)
    try:
        figures = await run.measure()
    except FAILURES as error:
        print(f"  INVALID {contestant} run {number}: {error!r}", flush=True)
        return {**base, "problem": str(error) or repr(error)}
    cpu = figures["cpu_ms_per_pod_settled"] or {}
    print(
        f"  {contestant:<15} run {number}: {figures['pods_per_s']:>7,.1f} pods/s, wait p50 {figures['wait_ms']['50']} ms, CPU "
        f"ms/pod until at rest: scheduler {cpu.get('scheduler')}, API server {cpu.get('apiserver')}, etcd {cpu.get('etcd')}; "
        f"{figures['events_posted']} events; others kept {figures['others_cores']} cores busy "
        f"({perf_counter() - begin_s:.0f} s)",
        flush=True,
    )
    return {**base, **figures}


if __name__ == "__main__":
    sys.exit(main())
