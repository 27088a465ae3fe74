"""Breaks the product on purpose, in one place after another: a bench that misses one of them is not good enough.

python -m tests.simulation.mutations             one history each, of the seed that is known to show it
python -m tests.simulation.mutations --search 200  looks for seeds where the known ones do not, and writes them down
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from tests.simulation.__main__ import repeatable
from tests.simulation.broken import MUTATIONS, Mutation
from tests.simulation.history import run_history
from tests.simulation.many import undisturbed
from tests.simulation.plan import make_plan
from tests.simulation.quiet import silence

__all__ = ["FOUND", "Found", "caught"]

FOUND = Path(__file__).with_name("mutations.json")


class Found(msgspec.Struct, frozen=True):
    """A history that shows a mutation.

    Attributes:
        seed: its seed, the first one that does.
        violation: what it shows.
    """

    seed: int
    violation: str


def caught(mutation: Mutation, seeds: range) -> Found | None:
    """Return the first history that the mutation spoils; None if there is none.

    A history counts only if the sound product keeps every promise in it.
    """
    for seed in seeds:
        plan = make_plan(seed)
        if mutation.needs and all(each.kind != mutation.needs for each in (*plan.deeds, *plan.faults)):
            continue
        with mutation.applied():
            violations = run_history(plan).violations
        if violations and not run_history(plan).violations:
            return Found(seed, str(violations[0]))
    return None


def known() -> dict[str, Found]:
    """Return what was found, by the mutation's name."""
    return msgspec.json.decode(FOUND.read_bytes(), type=dict[str, Found]) if FOUND.exists() else {}


def main() -> int:
    """Try the mutations; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutations", description=__doc__)
    parser.add_argument("--search", type=int, default=0, metavar="COUNT", help="look for seeds among so many")
    parser.add_argument("--only", default="", help="mutations whose name contains this")
    given = parser.parse_args()
    repeatable()
    silence()
    found, missed = known(), 0
    with undisturbed():
        for mutation in MUTATIONS:
            if given.only not in mutation.name:
                continue
            seed = found[mutation.name].seed if mutation.name in found else 0
            now = caught(mutation, range(seed, seed + 1)) or caught(mutation, range(given.search))
            print(f"{mutation.name}: {_said(now)}", flush=True)
            missed += now is None
            if given.search:
                found |= {} if now is None else {mutation.name: now}
                text = msgspec.json.encode({each.name: found[each.name] for each in MUTATIONS if each.name in found})
                FOUND.write_bytes(msgspec.json.format(text, indent=2) + b"\n")
    print(f"{len(MUTATIONS) - missed} caught, {missed} missed")
    return 1 if missed else 0


def _said(found: Found | None) -> str:
    return "missed" if found is None else f"caught by seed {found.seed}: {found.violation[:120]}"


if __name__ == "__main__":
    sys.exit(main())
