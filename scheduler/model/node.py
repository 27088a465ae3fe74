"""Node: the fields that scheduling reads."""

from __future__ import annotations

from scheduler.model.derived import derived
from scheduler.model.meta import Condition, Int64, KubeObject, Value
from scheduler.model.pod import QuantityText
from scheduler.model.requests import Resources, node_allocatable
from scheduler.model.taints import Taint

__all__ = ["ContainerImage", "Node", "NodeSpec", "NodeStatus", "Taint"]


class NodeSpec(Value, frozen=True):
    """``spec`` of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Value, frozen=True):
    """An image on the node, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Value, frozen=True):
    """``status`` of a node."""

    capacity: dict[str, QuantityText] = {}
    allocatable: dict[str, QuantityText] = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @derived
    def allocatable(self) -> Resources:
        """Return ``status.allocatable`` in scheduler units."""
        return node_allocatable(self.status.allocatable)

    @derived
    def zone_key(self) -> str:
        """Return region and zone in one text, "" if neither is known (spec §1.9; beta labels win)."""
        labels = self.metadata.labels
        region = labels.get("failure-domain.beta.kubernetes.io/region") or labels.get(
            "topology.kubernetes.io/region", ""
        )
        zone = labels.get("failure-domain.beta.kubernetes.io/zone") or labels.get("topology.kubernetes.io/zone", "")
        return f"{region}:\x00:{zone}" if region or zone else ""
