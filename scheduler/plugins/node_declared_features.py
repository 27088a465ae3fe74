"""NodeDeclaredFeatures: a pod that needs a young kubelet feature goes to nodes that declare it (spec §4.20).

Which fields of a pod need which feature is a fixed table; it follows ``component-helpers/nodedeclaredfeatures`` v1.36,
where the other declared features concern updates of running pods only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
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
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
    StateKey,
    Status,
    Verdicts,
)
from scheduler.plugins.shared.indexed import about_itself, by_event

__all__ = ["NAME", "REASON_MISSING_FEATURES", "NodeDeclaredFeatures", "new", "required_features"]

NAME = "NodeDeclaredFeatures"
REASON_MISSING_FEATURES = "node(s) didn't match Pod's required features"

_REJECTED = Status.unresolvable(REASON_MISSING_FEATURES)
_REQUIRED: StateKey[frozenset[str]] = StateKey("PreFilterNodeDeclaredFeatures")


def _restarts_all_containers(pod: Pod) -> bool:
    ruled = [c for c in (*pod.spec.containers, *pod.spec.init_containers) if c.restart_policy_rules]
    return (
        any(rule.action == "RestartAllContainers" for c in ruled for rule in c.restart_policy_rules) if ruled else False
    )


def _shares_host_network_in_user_namespace(pod: Pod) -> bool:
    return pod.spec.host_network and pod.spec.host_users is False


_NEEDS: Mapping[str, Callable[[Pod], bool]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _shares_host_network_in_user_namespace,
}


def required_features(pod: Pod) -> frozenset[str]:
    """Return the features that a node must declare to run the pod."""
    return frozenset([feature for feature, is_needed in _NEEDS.items() if is_needed(pod)])


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Keeps pods off nodes whose kubelet lacks a feature they need."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del nodes
        required = required_features(pod)
        if not required:
            return None, Status.skip()
        state.write(_REQUIRED, required)
        return None, None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del pod
        return None if state.read(_REQUIRED) <= set(node.node.status.declared_features) else _REJECTED

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        # Pods that come here are rare, so no column is kept for declared features.
        answers = (self.filter(state, pod, node) is None for node in nodes.infos)
        return Verdicts.all_equal(np.fromiter(answers, np.bool_, len(nodes)), _REJECTED)

    def node_signature(self, pod: Pod) -> Hashable:
        return required_features(pod)

    def events(self) -> Sequence[EventRegistration]:
        node_changed = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
        pod_changed = ClusterEvent(EventResource.POD, ActionType.UPDATE)
        return (
            by_event(node_changed, _declares_others),
            about_itself(pod_changed, _after_pod_update),
        )


def _declares_others(old: object | None, new: object | None) -> bool:
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return old.status.declared_features != new.status.declared_features


def _after_pod_update(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return QueueingHint.QUEUE
    changed = new.uid == pod.uid and required_features(old) != required_features(new)
    return QueueingHint.QUEUE if changed else QueueingHint.SKIP


def new(args: object, handle: Handle) -> NodeDeclaredFeatures:
    """Make the plugin; it has no arguments."""
    del args, handle
    return NodeDeclaredFeatures()
