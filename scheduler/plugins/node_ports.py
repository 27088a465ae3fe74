"""NodePorts: two pods cannot have the same port of a node (spec §4.7).

Few pods ask for host ports and few nodes have one in use, so the whole-cluster form looks only at the latter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
    Status,
    Verdicts,
)
from scheduler.api.events import HintIndex, IndexedRegistration, Offer, WantedKey
from scheduler.model.ports import ports_conflict

__all__ = ["NAME", "REASON_NO_FREE_PORTS", "NodePorts", "new"]

NAME = "NodePorts"
REASON_NO_FREE_PORTS = "node(s) didn't have free ports for the requested pod ports"

_REJECTED = Status.unschedulable(REASON_NO_FREE_PORTS)


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Keeps a pod off nodes where one of its host ports is taken."""

    name: ClassVar[str] = NAME
    __slots__ = ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del state, nodes
        return None, None if pod.host_ports else Status.skip()

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del state
        return _REJECTED if ports_conflict(pod.host_ports, node.used_ports) else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del state
        ok = np.ones(len(nodes), np.bool_)
        infos = nodes.infos
        for row in nodes.rows_using_host_ports():
            ok[row] = not ports_conflict(pod.host_ports, infos[row].used_ports)
        return Verdicts.all_equal(ok, _REJECTED)

    def node_signature(self, pod: Pod) -> Hashable:
        return pod.host_ports

    def events(self) -> Sequence[EventRegistration]:
        return (
            IndexedRegistration(
                ClusterEvent(EventResource.POD, ActionType.DELETE), _after_pod_deleted, index=HintIndex(_wanted, _freed)
            ),
            EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        )


def _after_pod_deleted(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del new
    if not isinstance(old, Pod):
        return QueueingHint.QUEUE
    had_a_place = bool(old.spec.node_name or old.status.nominated_node_name)
    frees = had_a_place and ports_conflict(pod.host_ports, old.host_ports)
    return QueueingHint.QUEUE if frees else QueueingHint.SKIP


def _wanted(pod: Pod) -> Iterable[WantedKey]:
    return [(port.protocol, port.port) for port in pod.host_ports]


def _freed(old: object | None, new: object | None) -> Iterable[Offer] | None:
    del new
    return [(port.protocol, (port.port,)) for port in old.host_ports] if isinstance(old, Pod) else None


def new(args: object, handle: Handle) -> NodePorts:
    """Make the plugin; it has no arguments."""
    del args, handle
    return NodePorts()
