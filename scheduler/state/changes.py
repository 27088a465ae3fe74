"""Changes: which cluster events an old and a new version of an object amount to.

The queue wakes pods by events, and the more exactly an event says what changed, the fewer pods wake for nothing. An
update that touches nothing that scheduling reads yields no event for a node and the general Update event for a pod.
The bit order, the order of the checks and the labels are upstream's (``framework/events.go`` v1.36, spec §2.6).
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.events import ActionType, ClusterEvent, EventResource
from scheduler.model.meta import Condition
from scheduler.model.node import Node
from scheduler.model.pod import Pod

__all__ = [
    "ASSIGNED_POD_ADD",
    "ASSIGNED_POD_DELETE",
    "ASSIGNED_POD_UPDATE",
    "BACKOFF_COMPLETE_LABEL",
    "FORCE_ACTIVATE",
    "FORCE_ACTIVATE_LABEL",
    "NODE_ADD",
    "NODE_DELETE",
    "POD_POPPED_LABEL",
    "POP_FROM_BACKOFF_Q_LABEL",
    "PROFILES_CHANGED",
    "SCHEDULE_ATTEMPT_FAILURE_LABEL",
    "UNSCHEDULABLE_POD_ADD",
    "UNSCHEDULABLE_POD_ADD_LABEL",
    "UNSCHEDULABLE_POD_DELETE",
    "UNSCHEDULABLE_POD_UPDATE",
    "UNSCHEDULABLE_POD_UPDATE_LABEL",
    "UNSCHEDULABLE_TIMEOUT",
    "node_events",
    "pod_events",
]

ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE)
UNSCHEDULABLE_POD_DELETE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.DELETE)
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)

UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
"""A pod has waited in vain for an event for so long that it is tried anyway."""
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
"""A plugin asked for a pod to be tried."""
PROFILES_CHANGED = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ProfilesChanged")
"""The profiles were replaced while running, so what rejected a pod may be gone. differs: upstream has no such thing."""

UNSCHEDULABLE_POD_ADD_LABEL = UNSCHEDULABLE_POD_ADD.label
UNSCHEDULABLE_POD_UPDATE_LABEL = UNSCHEDULABLE_POD_UPDATE.label
FORCE_ACTIVATE_LABEL = FORCE_ACTIVATE.label
SCHEDULE_ATTEMPT_FAILURE_LABEL = "ScheduleAttemptFailure"
BACKOFF_COMPLETE_LABEL = "BackoffComplete"
POP_FROM_BACKOFF_Q_LABEL = "PopFromBackoffQ"
POD_POPPED_LABEL = "PodPopped"
"""Counts pods in flight among the events in flight."""


# --- pods ------------------------------------------------------------------------------------------------------------


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    wanted = new.accounted_requests
    return any(wanted.get(name, -1) < amount for name, amount in old.accounted_requests.items())


def _are_gates_gone(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _is_toleration_added(old: Pod, new: Pod) -> bool:
    # parity: the API server lets tolerations only be added, so their number tells.
    return len(old.spec.tolerations) != len(new.spec.tolerations)


def _is_claim_generated(old: Pod, new: Pod) -> bool:
    before, after = old.status, new.status
    return (
        before.resource_claim_statuses != after.resource_claim_statuses
        or before.extended_resource_claim_status != after.extended_resource_claim_status
    )


_POD_CHECKS: tuple[tuple[Callable[[Pod, Pod], bool], ActionType], ...] = (
    (lambda old, new: old.metadata.labels != new.metadata.labels, ActionType.UPDATE_POD_LABEL),
    (_is_scaled_down, ActionType.UPDATE_POD_SCALE_DOWN),
    (_are_gates_gone, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
    (_is_toleration_added, ActionType.UPDATE_POD_TOLERATION),
    (_is_claim_generated, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
)


def pod_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """Return what happened to the pod, at least one event; the resource says whether ``new`` has a node.

    Source: ``PodSchedulingPropertiesChange``. Several properties may have changed at once.
    """
    resource = EventResource.ASSIGNED_POD if new.spec.node_name else EventResource.UNSCHEDULABLE_POD
    events = [ClusterEvent(resource, action) for changed, action in _POD_CHECKS if changed(old, new)]
    if not events:
        events.append(ASSIGNED_POD_UPDATE if new.spec.node_name else UNSCHEDULABLE_POD_UPDATE)
    return events


# --- nodes -----------------------------------------------------------------------------------------------------------


def _is_uncordoned(old: Node, new: Node) -> bool:
    return old.spec.unschedulable and not new.spec.unschedulable


def _is_allocatable_changed(old: Node, new: Node) -> bool:
    # The texts tell in nearly all cases; "1000m" and "1" are one amount, which only the numbers show.
    return old.status.allocatable != new.status.allocatable and old.allocatable != new.allocatable


def _condition_statuses(conditions: tuple[Condition, ...]) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions}


def _is_condition_changed(old: Node, new: Node) -> bool:
    # Heartbeats change times only.
    return _condition_statuses(old.status.conditions) != _condition_statuses(new.status.conditions)


_NODE_CHECKS: tuple[tuple[Callable[[Node, Node], bool], ClusterEvent], ...] = (
    (_is_uncordoned, ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)),
    (_is_allocatable_changed, ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)),
    (
        lambda old, new: old.metadata.labels != new.metadata.labels,
        ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
    ),
    (
        lambda old, new: old.spec.taints != new.spec.taints,
        ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
    ),
    (_is_condition_changed, ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_CONDITION)),
    (
        lambda old, new: old.metadata.annotations != new.metadata.annotations,
        ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ANNOTATION),
    ),
    (
        lambda old, new: old.status.declared_features != new.status.declared_features,
        ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE),
    ),
)


def node_events(old: Node, new: Node) -> list[ClusterEvent]:
    """Return what happened to the node; empty if nothing that scheduling reads has changed.

    Source: ``NodeSchedulingPropertiesChange``. Uncordoning counts as a change of taints, cordoning as nothing.
    """
    return [event for changed, event in _NODE_CHECKS if changed(old, new)]
