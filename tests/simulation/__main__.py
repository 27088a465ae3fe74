"""The command line; see the package."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.simulation.history import run_history
from tests.simulation.plan import Plan, make_plan
from tests.simulation.quiet import silence
from tests.simulation.shrink import shrunk

HASH_SEED = "PYTHONHASHSEED"


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
    parser.add_argument("--shrink", action="store_true", help="show the smallest plan that fails like the seed's")
    parser.add_argument("--verbose", action="store_true", help="with the log lines of the schedulers")
    given = parser.parse_args()
    repeatable()
    if not given.verbose:
        silence()
    if given.shrink:
        _show(shrunk(make_plan(given.seed)))
        return 1
    return _run(range(given.seed, given.seed + given.count), keep_going=given.keep_going)


def _run(seeds: range, *, keep_going: bool) -> int:
    started_s, done, broken, bound, writes, virtual_s = time.perf_counter(), 0, [], 0, 0, 0.0
    for seed in seeds:
        outcome = run_history(make_plan(seed))
        done, bound, writes = done + 1, bound + outcome.bound, writes + outcome.writes
        virtual_s += outcome.virtual_s
        for violation in outcome.violations[:3]:
            print(f"seed {seed}: {violation}", flush=True)
        if outcome.violations:
            broken.append(seed)
            if not keep_going:
                break
    took_s = time.perf_counter() - started_s
    print(
        f"{done} histories, {len(broken)} violated, {bound} pods bound, {writes} writes, "
        f"{virtual_s / 3600:.1f} h of virtual time in {took_s:.0f} s, {done / took_s * 60:.0f} histories a minute"
    )
    return 1 if broken else 0


def _show(plan: Plan) -> None:
    print(f"seed {plan.seed}, {plan.replicas} replicas")
    for part in (*plan.deeds, *plan.faults):
        print(f"  {part}")
    for violation in run_history(plan).violations:
        print(violation)


if __name__ == "__main__":
    sys.exit(main())
