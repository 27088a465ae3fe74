"""Provisioning: on which nodes a volume can be made for a claim.

The class must have a provisioner and allow the node's topology, and a driver that publishes capacities must have room
for the volume where the node can reach it. Source: ``checkVolumeProvisions`` and ``hasEnoughCapacity``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.api import Lister
from scheduler.model.quantity import parse_quantity_nano, value
from scheduler.model.selectors import label_selector_matches
from scheduler.model.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from scheduler.plugins.shared.pinned_list import PinnedList, selector_pin
from scheduler.plugins.shared.storage import claim_class, storage_nano
from scheduler.plugins.volume_binding.decisions import REASON_NO_STORAGE, REASON_NO_VOLUME, BindingError, Provision

__all__ = ["Provisioner", "Provisioning", "volume_limit_bytes"]

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_STORAGE = "storage"


class Provisioner:
    """How one claim's volume would be made; what does not depend on the node is found out once."""

    __slots__ = ("_capacities", "_claim", "_class")

    def __init__(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        capacities: PinnedList[CSIStorageCapacity] | None,
    ) -> None:
        """Make the record; ``capacities`` are those with room for the claim, None if capacity is no question."""
        self._claim = claim
        self._class = storage_class
        self._capacities = capacities

    def plan(self, labels: Mapping[str, str]) -> Provision | str:
        """Return the decision for a node with these labels, or the reason against the node."""
        if self._class.provisioner in ("", _NO_PROVISIONER) or not _allows(self._class.allowed_topologies, labels):
            return REASON_NO_VOLUME
        if self._capacities is None:
            return Provision(self._claim)
        for capacity in self._capacities.offered_to(labels):
            if label_selector_matches(capacity.node_topology, labels):
                return Provision(self._claim, capacity)
        return REASON_NO_STORAGE


@dataclass(frozen=True, slots=True)
class Provisioning:
    """Knows the classes, drivers and capacities of the cluster."""

    classes: Lister[StorageClass]
    drivers: Lister[CSIDriver]
    capacities: Lister[CSIStorageCapacity]

    def provisioner(self, claim: PersistentVolumeClaim) -> Provisioner:
        """Return how the claim's volume would be made.

        Raises:
            BindingError: the claim has no class, or the class does not exist.
        """
        name = claim_class(claim)
        if not name:
            raise BindingError(f'no class for claim "{claim.key}"')
        storage_class = self.classes.get(name)
        if storage_class is None:
            raise BindingError(f'failed to find storage class "{name}"')
        return Provisioner(claim, storage_class, self._with_room(claim, storage_class))

    def _with_room(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> PinnedList[CSIStorageCapacity] | None:
        requests = claim.spec.resources.requests
        driver = self.drivers.get(storage_class.provisioner) if _STORAGE in requests else None
        if driver is None or not driver.spec.storage_capacity:
            return None
        size_bytes = value(storage_nano(requests))
        return PinnedList(
            (capacity, selector_pin(capacity.node_topology))
            for capacity in self._of_class(storage_class.name)
            if (limit_bytes := volume_limit_bytes(capacity)) is not None and limit_bytes >= size_bytes
        )

    def label_keys(self, class_name: str) -> set[str]:
        """Return the node labels on which plans for claims of this class may depend."""
        storage_class = self.classes.get(class_name)
        if storage_class is None:
            return set()
        keys = {r.key for term in storage_class.allowed_topologies for r in term.match_label_expressions}
        driver = self.drivers.get(storage_class.provisioner)
        if driver is not None and driver.spec.storage_capacity:
            for capacity in self._of_class(class_name):
                topology = capacity.node_topology
                if topology is not None:
                    keys |= topology.match_labels.keys() | {r.key for r in topology.match_expressions}
        return keys

    def _of_class(self, name: str) -> list[CSIStorageCapacity]:
        return [capacity for capacity in self.capacities.list() if capacity.storage_class_name == name]


def volume_limit_bytes(capacity: CSIStorageCapacity) -> int | None:
    """Return the size of the largest volume that can be made; None if the driver does not say."""
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if limit is None else value(parse_quantity_nano(limit))


def _allows(terms: tuple[TopologyTerm, ...], labels: Mapping[str, str]) -> bool:
    """Say whether one of the terms holds; no terms allow every node, an empty term none."""
    if not terms:
        return True
    return any(
        term.match_label_expressions
        and all(labels.get(required.key) in required.values for required in term.match_label_expressions)
        for term in terms
    )
