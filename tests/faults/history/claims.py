"""G10: conditions and events never claim what did not happen."""

from __future__ import annotations

import re
from collections import Counter

from tests.faults.history.record import History, Violation, key_of
from tests.integration.api import condition

_ASSIGNED = re.compile(r"Successfully assigned (\S+) to (\S+)$")


def false_claims(history: History) -> list[Violation]:
    """G10: no bound pod is called unschedulable; a Scheduled event tells the node that the pod was bound to, once."""
    return [*_bound_and_refused(history), *_untrue_events(history)]


def _bound_and_refused(history: History) -> list[Violation]:
    found = {}
    for version in history.ordered():
        if version.kind != "Pod" or not history.is_ours(version.object):
            continue
        said = condition(dict(version.object))
        if version.object["spec"].get("nodeName") and said is not None:
            what = f"{version.key} is bound, and says that it is not scheduled: {said.get('message', '')[:200]}"
            found.setdefault(version.uid, Violation("G10", what, version.at_s))
    return list(found.values())


def _untrue_events(history: History) -> list[Violation]:
    bound = history.bindings()
    found = []
    told: Counter[tuple[str, str]] = Counter()
    for event in history.events:
        if event["reason"] != "Scheduled" or not _is_ours(history, event):
            continue
        uid, note = event["regarding"].get("uid", ""), event.get("note", "")
        said = _ASSIGNED.match(note)
        if said is None or (uid, said[2]) not in bound:
            found.append(Violation("G10", f"an event about {key_of(event['regarding'] | _meta(event))} says: {note}"))
        told[uid, said[1] if said else ""] += 1 + ((event.get("series") or {}).get("count", 1) - 1)
    if any(version.epoch for version in history.versions):
        return found  # the server was restored: what had been told before is told again
    found += (
        Violation("G10", f"{name} was told {n} times that it is scheduled") for (_, name), n in told.items() if n > 1
    )
    return found


def _meta(event: dict) -> dict:
    return {"metadata": {"namespace": event["regarding"].get("namespace", ""), "name": event["regarding"]["name"]}}


def _is_ours(history: History, event: dict) -> bool:
    return event.get("reportingController") in history.schedulers
