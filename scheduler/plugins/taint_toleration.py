"""TaintToleration: taints keep pods away unless tolerated; soft taints make a node less welcome (spec §4.5).

Nodes with equal taints share one answer: a cluster has a handful of distinct taint lists, however many nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    IntColumn,
    Node,
    NodesView,
    NodeView,
    Pod,
    PreScorePlugin,
    QueueingHint,
    ScorePlugin,
    StateKey,
    Status,
    Taint,
    Toleration,
    Verdicts,
    default_normalize,
)
from scheduler.model.taints import find_untolerated, tolerates
from scheduler.plugins.shared.indexed import about_itself

__all__ = ["NAME", "REASON_UNTOLERATED", "TaintToleration", "new"]

NAME = "TaintToleration"
REASON_UNTOLERATED = "node(s) had untolerated taint(s)"

_HARD = frozenset({"NoSchedule", "NoExecute"})
_SOFT = "PreferNoSchedule"
_REJECTED = Status.unresolvable(REASON_UNTOLERATED)
_SOFT_TOLERATIONS: StateKey[Sequence[Toleration]] = StateKey("PreScoreTaintToleration")


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by hard taints and scores by the number of soft taints that the pod does not tolerate."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ()

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state
        return None if _is_welcome(pod, node.node.spec.taints) else _REJECTED

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del state
        ok = nodes.taints.test(lambda taints: _is_welcome(pod, taints), missing=True)
        return Verdicts.all_equal(ok, _REJECTED)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        del nodes
        state.write(_SOFT_TOLERATIONS, tuple(t for t in pod.spec.tolerations if t.effect in ("", _SOFT)))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        del pod
        return _count_untolerated_soft(node.node.spec.taints, state.read(_SOFT_TOLERATIONS))

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        del pod
        tolerations = state.read(_SOFT_TOLERATIONS)
        return nodes.taints.map(lambda taints: _count_untolerated_soft(taints, tolerations), missing=0)

    def normalize(self, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn) -> IntColumn:
        del state, pod, nodes
        return default_normalize(scores, reverse=True)

    def node_signature(self, pod: Pod) -> Hashable:
        return pod.spec.tolerations

    def events(self) -> Sequence[EventRegistration]:
        node_changed = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        pod_tolerates = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            EventRegistration(node_changed, _after_node_change),
            about_itself(pod_tolerates, _after_toleration_change),
        )


def _is_welcome(pod: Pod, taints: Sequence[Taint]) -> bool:
    return not taints or find_untolerated(taints, pod.spec.tolerations, _HARD) is None


def _count_untolerated_soft(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    soft = (taint for taint in taints if taint.effect == _SOFT)
    return sum(not any(tolerates(toleration, taint) for toleration in tolerations) for taint in soft)


def _after_node_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(new, Node):
        return QueueingHint.QUEUE
    if not _is_welcome(pod, new.spec.taints):
        return QueueingHint.SKIP
    was_welcome = isinstance(old, Node) and _is_welcome(pod, old.spec.taints)
    return QueueingHint.SKIP if was_welcome else QueueingHint.QUEUE


def _after_toleration_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    own = not isinstance(new, Pod) or new.uid == pod.uid
    return QueueingHint.QUEUE if own else QueueingHint.SKIP


def new(args: object, handle: Handle) -> TaintToleration:
    """Make the plugin; it has no arguments."""
    del args, handle
    return TaintToleration()
