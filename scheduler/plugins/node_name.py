"""NodeName: a pod that names its node runs there or nowhere (spec §4.4)."""

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
    NodesView,
    NodeView,
    Pod,
    Status,
    Verdicts,
)

__all__ = ["NAME", "REASON_OTHER_NODE", "NodeName", "new"]

NAME = "NodeName"
REASON_OTHER_NODE = "node(s) didn't match the requested node name"

_REJECTED = Status.unresolvable(REASON_OTHER_NODE)


class NodeName(FilterPlugin):
    """Keeps a pod that names its node off all others."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ()

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state
        wanted = pod.spec.node_name
        return None if not wanted or wanted == node.name else _REJECTED

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del state
        wanted = pod.spec.node_name
        if not wanted:
            return Verdicts.all_equal(np.ones(len(nodes), np.bool_), _REJECTED)
        ok = np.zeros(len(nodes), np.bool_)
        row = nodes.row(wanted)
        if row is not None:
            ok[row] = True
        return Verdicts.all_equal(ok, _REJECTED)

    def node_signature(self, pod: Pod) -> Hashable:
        return pod.spec.node_name

    def events(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),)


def new(args: object, handle: Handle) -> NodeName:
    """Make the plugin; it has no arguments."""
    del args, handle
    return NodeName()
