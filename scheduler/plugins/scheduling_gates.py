"""SchedulingGates: a pod with gates is not looked at (spec §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from scheduler.api import (
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    Handle,
    Pod,
    PreEnqueuePlugin,
    QueueingHint,
    Status,
)

__all__ = ["NAME", "SchedulingGates", "new"]

NAME = "SchedulingGates"


class SchedulingGates(PreEnqueuePlugin):
    """Keeps gated pods out of the queue until the last gate is gone."""

    name: ClassVar[str] = NAME
    __slots__ = ()

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events(self) -> Sequence[EventRegistration]:
        eliminated = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (EventRegistration(eliminated, _is_own_update),)


def _is_own_update(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    own = not isinstance(new, Pod) or new.uid == pod.uid
    return QueueingHint.QUEUE if own else QueueingHint.SKIP


def new(args: object, handle: Handle) -> SchedulingGates:
    """Make the plugin; it has no arguments."""
    del args, handle
    return SchedulingGates()
