"""Events have two API versions over one storage: core v1 (stored here) and events.k8s.io/v1.

Schedulers write the second, kubectl reads the first; the field names differ, the objects are the same.
"""

from __future__ import annotations

from scheduler.testing.apiserver.status import FieldProblem, Json
from scheduler.testing.apiserver.validation import required

__all__ = ["event_problems", "from_core", "to_core"]

_CORE_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_NEW_TO_CORE = {new: core for core, new in _CORE_TO_NEW.items()}
_CORE_DEFAULTS: Json = {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}


def from_core(event: Json) -> Json:
    """Return a stored event with the names of events.k8s.io/v1."""
    return {_CORE_TO_NEW.get(name, name): value for name, value in event.items()}


def to_core(event: Json) -> Json:
    """Return an event of events.k8s.io/v1 as it is stored."""
    return {_NEW_TO_CORE.get(name, name): value for name, value in event.items()}


def default_event(event: Json) -> None:
    """Set the fields that the stored form always shows."""
    for name, value in _CORE_DEFAULTS.items():
        event.setdefault(name, value)
    event.setdefault("involvedObject", {})
    event.setdefault("reportingComponent", "")
    event.setdefault("reportingInstance", "")


def event_problems(event: Json, *, is_new_api: bool) -> list[FieldProblem]:
    """Return what events.k8s.io/v1 refuses; core v1 is lenient."""
    if not is_new_api:
        return []
    if not event.get("eventTime"):
        return [required("eventTime")]
    problems = [required(name) for name in ("reportingInstance", "action", "reason") if not event.get(name)]
    if not event.get("reportingComponent"):
        problems.insert(0, required("reportingController"))
    if len(event.get("message") or "") > 1024:
        problems.append(FieldProblem("message", "FieldValueInvalid", "can have at most 1024 characters"))
    if event.get("type") not in ("Normal", "Warning"):
        problems.append(FieldProblem("type", "FieldValueInvalid", 'Invalid value: "": has invalid value'))
    return problems
