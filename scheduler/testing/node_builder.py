"""``node("n1")``: nodes for tests, in the words of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from scheduler.model.node import Node
from scheduler.testing.manifests import Builder, resource_list

__all__ = ["NodeBuilder", "node"]

Quantity = str | int | float


def node(name: str = "node") -> NodeBuilder:
    """Start a node without labels, taints or capacity."""
    return NodeBuilder(
        Node,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": {},
            "status": {},
        },
    )


class NodeBuilder(Builder[Node]):
    """Builds a node; every method returns a new builder."""

    __slots__ = ()

    def capacity(self, quantities: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> Self:
        """Add to capacity and allocatable: ``capacity(cpu="4", memory="8Gi", pods="110")``."""
        more = resource_list(quantities or {}, named)
        return self._merge(more, "status", "capacity").allocatable(more)

    def allocatable(self, quantities: Mapping[str, Quantity] | None = None, /, **named: Quantity) -> Self:
        """Set what of the capacity pods may have."""
        return self._merge(resource_list(quantities or {}, named), "status", "allocatable")

    def zone(self, zone: str) -> Self:
        """Set the zone label."""
        return self.label("topology.kubernetes.io/zone", zone)

    def region(self, region: str) -> Self:
        """Set the region label."""
        return self.label("topology.kubernetes.io/region", region)

    def hostname(self, hostname: str = "") -> Self:
        """Set the hostname label, by default to the node's name, as a kubelet does."""
        return self.label("kubernetes.io/hostname", hostname or self._get("metadata", "name"))

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        """Add a taint."""
        entry = {"key": key, "effect": effect} | ({"value": value} if value else {})
        return self._append(entry, "spec", "taints")

    def cordoned(self) -> Self:
        """Make the node unschedulable; the taint that a controller adds is not added."""
        return self._with(True, "spec", "unschedulable")

    def image(self, *names: str, size_bytes: int) -> Self:
        """Add an image that the node has, under all its names."""
        return self._append({"names": list(names), "sizeBytes": size_bytes}, "status", "images")

    def declares(self, *features: str) -> Self:
        """Add declared features."""
        return self._with([*(self._get("status", "declaredFeatures") or ()), *features], "status", "declaredFeatures")
