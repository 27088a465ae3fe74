"""The command line; see the package."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.simulation.history import run_history
from tests.simulation.many import Tally, run_many
from tests.simulation.plan import Plan, make_plan
from tests.simulation.quiet import silence
from tests.simulation.record import Record
from tests.simulation.shrink import shrunk

HASH_SEED = "PYTHONHASHSEED"
_SHOWN = 3
_BATCH = 500


def repeatable() -> None:
    """Start again with a fixed order of sets, so that a seed means the same history in every process."""
    if os.environ.get(HASH_SEED) != "0":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, HASH_SEED: "0"})


def main() -> int:
    """Run histories until one breaks a promise; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first violation")
    parser.add_argument("--record", type=Path, help="keep going, write down what ran, and leave out what is there")
    parser.add_argument("--shrink", action="store_true", help="show the smallest plan that fails like the seed's")
    parser.add_argument("--verbose", action="store_true", help="with the log lines of the schedulers")
    given = parser.parse_args()
    repeatable()
    if not given.verbose:
        silence()
    if given.shrink:
        _show(shrunk(make_plan(given.seed)))
        return 1
    seeds = range(given.seed, given.seed + given.count)
    tally = _run_with_record(seeds, Record(given.record)) if given.record else _run(seeds, given.keep_going)
    print(f"{tally} in {tally.wall_s:.0f} s, {tally.speed}")
    return 1 if tally.violated else 0


def _run(seeds: range, keep_going: bool) -> Tally:
    tally = Tally()
    for seed, outcome, so_far in run_many(seeds):
        tally = so_far
        for violation in outcome.violations[:_SHOWN]:
            print(f"seed {seed}: {violation}", flush=True)
        if outcome.violations and not keep_going:
            break
    return tally


def _run_with_record(seeds: range, record: Record) -> Tally:
    for start in range(seeds.start, seeds.stop, _BATCH):
        batch = range(start, min(start + _BATCH, seeds.stop))
        if not record.has(batch.start, len(batch)):
            record.add(batch.start, len(batch), _run(batch, keep_going=True))
    return record.total()


def _show(plan: Plan) -> None:
    print(f"seed {plan.seed}, {plan.replicas} replicas")
    for part in (*plan.deeds, *plan.faults):
        print(f"  {part}")
    for violation in run_history(plan).violations:
        print(violation)


if __name__ == "__main__":
    sys.exit(main())
