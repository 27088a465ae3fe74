"""G4: nothing is written by who does not hold the lease any more.

The audit log has the lease as the API server saw it. A leader may write from the moment that its record was written until
its last successful renewal plus the lease's duration, or until it released the lease, or until another one of ours wrote
itself into it, whichever comes first. (The scheduler's own limit is stricter: it counts from the moment of *sending* the
renewal, and keeps a margin.) That somebody edits the lease by hand ends nothing before the leader could see it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tests.faults.history.record import History, Request, Violation

_REVIEWS = ("tokenreviews", "subjectaccessreviews")
NO_CHANGES = (*_REVIEWS, "leases")


@dataclass(frozen=True, slots=True)
class Term:
    """From a successful write of the lease on, who may write until when; user "" if nobody."""

    user: str
    since_s: float
    until_s: float


def terms(history: History) -> list[Term]:
    """Return who held the lease when, oldest first, one entry a renewal."""
    found = []
    for request in sorted(history.requests, key=lambda r: r.received_s):
        is_lease_write = request.resource == "leases" and request.verb in ("create", "update") and request.is_done
        if not is_lease_write or request.user not in history.elected:
            continue
        spec = (request.body or {}).get("spec") or {}
        if spec.get("holderIdentity"):
            until_s = request.received_s + spec["leaseDurationSeconds"]
            found.append(Term(request.user, request.received_s, until_s))
        else:
            found.append(Term("", request.received_s, request.received_s))
    return found


def changes(history: History) -> list[Request]:
    """Return the writes of ours that only a leader may send: all but those to the lease, reviews, and events about it."""
    return [
        request
        for request in history.requests
        if request.user in history.elected
        and request.is_write
        and request.resource not in NO_CHANGES
        and not (request.resource == "events" and request.namespace == "kube-system")
    ]


def writes_after_lease_end(history: History) -> list[Violation]:
    """G4: every write of ours reached the server within a term of its sender."""
    known = terms(history)
    found = []
    for request in changes(history):
        number = bisect_right(known, request.received_s, key=lambda term: term.since_s)
        term = known[number - 1] if number else Term("", 0.0, 0.0)
        if term.user != request.user:
            why = f"the lease is {term.user}'s" if term.user else "nobody holds the lease"
        elif request.received_s > term.until_s:
            why = f"its lease ended {request.received_s - term.until_s:.3f} s before"
        else:
            continue
        what = f"{request.user} sent {request.verb} {request.resource} {request.key} ({request.code}), but {why}"
        found.append(Violation("G4", what, request.received_s))
    return found
