"""Hints: which changes may let a pod in that its hard constraints kept out.

A hint is asked for many waiting pods at many events (``wanted`` says which), so its cost must not depend on how many
constraints the pod has.

Source: ``isSchedulableAfterPodChange`` and ``isSchedulableAfterNodeChange`` in ``podtopologyspread/plugin.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scheduler.api import (
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    Node,
    Pod,
    QueueingHint,
    Taint,
)
from scheduler.api.events import IndexedRegistration
from scheduler.plugins.topology_spread.constraints import ConstraintError, Constraints
from scheduler.plugins.topology_spread.wanted import index_of_nodes, index_of_pods

__all__ = ["registrations"]

HardConstraints = Callable[[Pod], Constraints]


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
        if (after is not None and not _takes_part(after, pod)) or (before is not None and not _takes_part(before, pod)):
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

    return (
        IndexedRegistration(pod_changed, after_pod_change, index=index_of_pods(constraints_of)),
        IndexedRegistration(node_changed, after_node_change, index=index_of_nodes(constraints_of)),
    )


def _pods(old: object | None, new: object | None) -> tuple[Pod | None, Pod | None]:
    return old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None


def _takes_part(other: Pod, pod: Pod) -> bool:
    """Say whether ``other`` can be among the pods that the pod is spread with: it is the pod itself, or has a node."""
    if other.metadata.uid == pod.metadata.uid:
        return True
    has_node = other.spec.node_name or other.status.nominated_node_name
    return bool(has_node) and other.metadata.namespace == pod.metadata.namespace


def _pod_matters(pod: Pod, old: Pod | None, new: Pod | None, constraints: Constraints) -> bool:
    if old is None or new is None:
        changed = new or old
        return changed is None or bool(constraints.selectors.matching(changed.metadata.labels))
    tolerates_more = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_more and any(constraint.honors_taints for constraint in constraints):
        return True
    return constraints.selectors.matching(old.labels) != constraints.selectors.matching(new.labels)


def _node_matters(old: object | None, new: object | None, constraints: Constraints) -> bool:
    keys = constraints.keys
    before = old.metadata.labels if isinstance(old, Node) else None
    after = new.metadata.labels if isinstance(new, Node) else None
    counted_before = before is not None and _has_all(before, keys)
    counted_after = after is not None and _has_all(after, keys)
    if before is None and after is None:
        return True
    if before is None or after is None or counted_before != counted_after:
        return counted_before or counted_after
    return counted_after and (_taints(old) != _taints(new) or any(before[key] != after[key] for key in keys))


def _has_all(labels: Mapping[str, str], keys: frozenset[str]) -> bool:
    return len(keys) <= len(labels) and keys <= labels.keys()


def _taints(node: object) -> Sequence[Taint]:
    return node.spec.taints if isinstance(node, Node) else ()


def _hint(matters: bool) -> QueueingHint:
    return QueueingHint.QUEUE if matters else QueueingHint.SKIP
