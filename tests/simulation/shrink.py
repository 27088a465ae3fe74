"""Makes a failing plan small: leaves out whatever is not needed for the same promise to be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.history import run_history
from tests.simulation.plan import Plan

__all__ = ["breaks", "shrunk"]


def breaks(plan: Plan) -> str:
    """Return which promise a plan's history breaks first; "" if none."""
    violations = run_history(plan).violations
    return violations[0].promise if violations else ""


def shrunk(plan: Plan, broken_by: Callable[[Plan], str] = breaks) -> Plan:
    """Return the smallest plan found that breaks the same promise as ``plan``.

    Args:
        plan: one that fails.
        broken_by: says which promise a plan breaks.
    """
    promise = broken_by(plan)
    assert promise, "only a plan that breaks a promise can be made smaller"
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(plan):
            if broken_by(candidate) == promise:
                plan, is_smaller = candidate, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans with something left out: halves first, then single deeds and faults, then replicas."""
    for kept in _parts(len(plan.deeds)):
        yield replace(plan, deeds=tuple(plan.deeds[i] for i in kept))
    for kept in _parts(len(plan.faults)):
        yield replace(plan, faults=tuple(plan.faults[i] for i in kept))
    named = {deed.name for deed in plan.deeds if deed.kind in {"crash", "stop", "freeze"}}
    if plan.replicas > 1 and not named & {str(plan.replicas - 1)}:
        yield replace(plan, replicas=plan.replicas - 1)


def _parts(length: int) -> Iterator[list[int]]:
    indices = list(range(length))
    if length > 3:
        yield indices[length // 2 :]
        yield indices[: length // 2]
    for left_out in reversed(indices):
        yield indices[:left_out] + indices[left_out + 1 :]
