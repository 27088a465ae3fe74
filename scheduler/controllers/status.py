"""The status of a SchedulerProfile: what serves, and if that is not what the object says, every reason why not.

Ready=True   Serving    this generation schedules pods
Ready=False  Outdated   this generation is refused; an earlier one keeps scheduling pods
Ready=False  Refused    this generation is refused; pods that name the scheduler wait
"""

from __future__ import annotations

from typing import Any

from scheduler.config.errors import aggregate
from scheduler.config.types import WIRE_POINTS
from scheduler.controllers.objects import SchedulerProfile
from scheduler.controllers.reconcile import Serving

__all__ = ["OUTDATED", "REFUSED", "SERVING", "condition_of", "merge_of", "reason_of", "status_of"]

SERVING = "Serving"
OUTDATED = "Outdated"
REFUSED = "Refused"

_READY = "Ready"
_MAX_ERRORS = 64
_MAX_ERROR_CHARS = 1_024
_MAX_MESSAGE_CHARS = 4_096


def reason_of(serving: Serving | None, problems: tuple[str, ...]) -> str:
    """Return the reason of the Ready condition."""
    if not problems and serving is not None:
        return SERVING
    return REFUSED if serving is None else OUTDATED


def status_of(
    obj: SchedulerProfile, serving: Serving | None, problems: tuple[str, ...], *, pods_scheduled: int, now: str
) -> dict[str, Any]:
    """Return the complete status; what it does not have is None.

    Args:
        obj: the object with the status that it has.
        serving: the profile that came from it, or None.
        problems: why its present generation is refused.
        pods_scheduled: the count to show.
        now: RFC 3339 time, for a condition that changes.
    """
    return {
        "observedGeneration": obj.metadata.generation,
        "servingGeneration": None if serving is None else serving.generation,
        "podsScheduled": pods_scheduled,
        "errors": [_cut(text, _MAX_ERROR_CHARS) for text in problems[:_MAX_ERRORS]] or None,
        "plugins": None if serving is None else _plugins(serving),
        "conditions": [_condition(obj, serving, problems, now)],
    }


def merge_of(known: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """Return the merge patch that turns ``known`` into ``status``: what is to go is None, in ``plugins`` as well."""
    old, new = known.get("plugins"), status["plugins"]
    if not isinstance(old, dict) or new is None:
        return status
    return {**status, "plugins": {**dict.fromkeys(old.keys() - new.keys()), **new}}


def condition_of(status: dict[str, Any]) -> dict[str, Any]:
    """Return the Ready condition of a status; empty if it has none."""
    conditions = status.get("conditions")
    found = conditions if isinstance(conditions, list) else []
    return next((c for c in found if isinstance(c, dict) and c.get("type") == _READY), {})


def _condition(obj: SchedulerProfile, serving: Serving | None, problems: tuple[str, ...], now: str) -> dict[str, Any]:
    reason = reason_of(serving, problems)
    state = "True" if reason == SERVING else "False"
    known = condition_of(obj.known_status)
    return {
        "type": _READY,
        "status": state,
        "reason": reason,
        "message": _cut(_message(obj, serving, problems), _MAX_MESSAGE_CHARS),
        "observedGeneration": obj.metadata.generation,
        "lastTransitionTime": known.get("lastTransitionTime") or now if known.get("status") == state else now,
    }


def _message(obj: SchedulerProfile, serving: Serving | None, problems: tuple[str, ...]) -> str:
    if not problems:
        return f'pods with schedulerName "{obj.scheduler_name}" are scheduled by generation {obj.metadata.generation}'
    refusal = f"generation {obj.metadata.generation} is refused: {aggregate(problems)}"
    if serving is None:
        return refusal
    name = serving.profile.scheduler_name
    return f'generation {serving.generation} keeps scheduling the pods with schedulerName "{name}"; {refusal}'


def _plugins(serving: Serving) -> dict[str, list[str]]:
    """Return names by extension point as the file spells it; Score plugins with their weights."""
    weights = serving.resolved.weights
    return {
        WIRE_POINTS[point]: [f"{name}={weights[name]}" for name in names] if point == "score" else list(names)
        for point, names in serving.resolved.points.items()
    }


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 4]} ..."
