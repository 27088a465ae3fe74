"""NodeUnschedulable: cordoned nodes take no pods, except pods that tolerate the cordon (spec §4.3)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Node,
    NodesView,
    NodeView,
    Pod,
    QueueingHint,
    Status,
    Taint,
    Verdicts,
)
from scheduler.model.taints import tolerates
from scheduler.plugins.shared.indexed import about_itself, by_event

__all__ = ["NAME", "REASON_UNSCHEDULABLE", "NodeUnschedulable", "new", "tolerates_cordon"]

NAME = "NodeUnschedulable"
REASON_UNSCHEDULABLE = "node(s) were unschedulable"

_REJECTED = Status.unresolvable(REASON_UNSCHEDULABLE)
# parity: the cordon is treated as if it were this taint (pkg/scheduler/framework/plugins/nodeunschedulable)
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates_cordon(pod: Pod) -> bool:
    """Say whether the pod may run on a cordoned node."""
    return any(tolerates(toleration, _CORDON) for toleration in pod.spec.tolerations)


class NodeUnschedulable(FilterPlugin):
    """Keeps pods off cordoned nodes."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ()

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state
        if not node.node.spec.unschedulable or tolerates_cordon(pod):
            return None
        return _REJECTED

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del state
        cordoned = nodes.unschedulable
        if not cordoned.any() or tolerates_cordon(pod):
            return Verdicts.all_equal(np.ones(len(nodes), np.bool_), _REJECTED)
        return Verdicts.all_equal(~cordoned, _REJECTED)

    def node_signature(self, pod: Pod) -> Hashable:
        return tolerates_cordon(pod)

    def events(self) -> Sequence[EventRegistration]:
        node_opened = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        pod_tolerates = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            by_event(node_opened, _was_opened),
            about_itself(pod_tolerates, _after_toleration_change),
        )


def _was_opened(old: object | None, new: object | None) -> bool:
    if not isinstance(new, Node):
        return True
    return not new.spec.unschedulable and (not isinstance(old, Node) or old.spec.unschedulable)


def _after_toleration_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    helps = not isinstance(new, Pod) or (new.uid == pod.uid and tolerates_cordon(new))
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def new(args: object, handle: Handle) -> NodeUnschedulable:
    """Make the plugin; it has no arguments."""
    del args, handle
    return NodeUnschedulable()
