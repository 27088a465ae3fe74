"""Hints: which changes may let a pod in that its hard constraints kept out.

Source: ``isSchedulableAfterPodChange`` and ``isSchedulableAfterNodeChange`` in ``podtopologyspread/plugin.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.api import (
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    Node,
    Pod,
    QueueingHint,
)
from scheduler.plugins.topology_spread.constraints import Constraint, ConstraintError, has_all_keys

__all__ = ["registrations"]

HardConstraints = Callable[[Pod], Sequence[Constraint]]


def registrations(constraints_of: HardConstraints) -> Sequence[EventRegistration]:
    """Return the plugin's events; ``constraints_of`` gives a pod's hard constraints or raises ConstraintError."""
    pod_changed = ClusterEvent(
        EventResource.POD,
        ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE,
    )
    node_changed = ClusterEvent(
        EventResource.NODE,
        ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT,
    )

    def after_pod_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        before, after = _pods(old, new)
        if not all(_takes_part(other, pod) for other in (before, after) if other is not None):
            return QueueingHint.SKIP
        try:
            return _hint(_pod_matters(pod, before, after, constraints_of(pod)))
        except ConstraintError:
            return QueueingHint.QUEUE

    def after_node_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        try:
            return _hint(_node_matters(old, new, constraints_of(pod)))
        except ConstraintError:
            return QueueingHint.QUEUE

    return (EventRegistration(pod_changed, after_pod_change), EventRegistration(node_changed, after_node_change))


def _pods(old: object | None, new: object | None) -> tuple[Pod | None, Pod | None]:
    return old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None


def _takes_part(other: Pod, pod: Pod) -> bool:
    """Say whether ``other`` can be among the pods that the pod is spread with: it is the pod itself, or has a node."""
    if other.uid == pod.uid:
        return True
    has_node = bool(other.node_name or other.status.nominated_node_name)
    return has_node and other.namespace == pod.namespace


def _pod_matters(pod: Pod, old: Pod | None, new: Pod | None, constraints: Sequence[Constraint]) -> bool:
    if old is None or new is None:
        changed = new or old
        return changed is None or any(constraint.matches(changed.labels) for constraint in constraints)
    tolerates_more = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_more and any(constraint.honors_taints for constraint in constraints):
        return True
    return any(constraint.matches(old.labels) != constraint.matches(new.labels) for constraint in constraints)


def _node_matters(old: object | None, new: object | None, constraints: Sequence[Constraint]) -> bool:
    before = old if isinstance(old, Node) else None
    after = new if isinstance(new, Node) else None
    counted_before = before is not None and has_all_keys(before, constraints)
    counted_after = after is not None and has_all_keys(after, constraints)
    if before is None and after is None:
        return True
    if before is None or after is None or counted_before != counted_after:
        return counted_before or counted_after
    return counted_after and (before.spec.taints != after.spec.taints or _moved(before, after, constraints))


def _moved(old: Node, new: Node, constraints: Sequence[Constraint]) -> bool:
    return any(old.labels.get(c.topology_key) != new.labels.get(c.topology_key) for c in constraints)


def _hint(matters: bool) -> QueueingHint:
    return QueueingHint.QUEUE if matters else QueueingHint.SKIP
