"""All checkers in one table: the criteria that hold in every run, each with the words of its figure."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.history.beliefs import drift
from tests.faults.history.binds import double_binds
from tests.faults.history.claims import false_claims
from tests.faults.history.leadership import writes_after_lease_end
from tests.faults.history.placements import double_bookings, lost_pods
from tests.faults.history.record import History, Violation
from tests.faults.history.status import dishonest_status

CHECKS: dict[str, Callable[[History], list[Violation]]] = {
    "lost": lost_pods,
    "double bookings": double_bookings,
    "double binds": double_binds,
    "writes after lease end": writes_after_lease_end,
    "drift": drift,
    "false claims": false_claims,
    "dishonest status": dishonest_status,
}


def broken_promises(history: History) -> dict[str, list[Violation]]:
    """Return what each checker finds, by the words of its figure."""
    return {name: check(history) for name, check in CHECKS.items()}
