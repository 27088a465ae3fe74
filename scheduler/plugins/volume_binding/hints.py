"""Which events may help a pod whose volumes could not be bound (spec §2.7)."""

from __future__ import annotations

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, Pod, QueueingHint
from scheduler.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.plugins.shared.indexed import about_claims, by_event
from scheduler.plugins.shared.storage import used_claim_names, uses_claim
from scheduler.plugins.volume_binding.migration import MIGRATED_PLUGINS
from scheduler.plugins.volume_binding.provisioning import volume_limit_bytes

__all__ = ["REGISTRATIONS"]


def _moved(old: object | None, new: object | None) -> bool:
    """Say whether a class came, or provisions elsewhere now."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return True
    return old.allowed_topologies != new.allowed_topologies


def _migrated(old: object | None, new: object | None) -> bool:
    """Say whether a node's drivers came, or others are migrated now."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    return old.annotations.get(MIGRATED_PLUGINS, "") != new.annotations.get(MIGRATED_PLUGINS, "")


def _grew(old: object | None, new: object | None) -> bool:
    """Say whether capacity came, or there is more of it now."""
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return True
    before, now = volume_limit_bytes(old), volume_limit_bytes(new)
    return now is not None and (before is None or now > before)


def _after_claim_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    return _queue_if(not isinstance(new, PersistentVolumeClaim) or uses_claim(pod, new))


def _after_driver_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return QueueingHint.QUEUE
    # parity: only inline volumes of the driver are looked at
    is_used = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return _queue_if(is_used and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


_ADDED_OR_CHANGED = ActionType.ADD | ActionType.UPDATE

REGISTRATIONS = (
    by_event(ClusterEvent(EventResource.STORAGE_CLASS, _ADDED_OR_CHANGED), _moved),
    about_claims(
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _ADDED_OR_CHANGED), _after_claim_change, used_claim_names
    ),
    EventRegistration(ClusterEvent(EventResource.PERSISTENT_VOLUME, _ADDED_OR_CHANGED)),
    EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
    by_event(ClusterEvent(EventResource.CSI_NODE, _ADDED_OR_CHANGED), _migrated),
    EventRegistration(ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), _after_driver_change),
    by_event(ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, _ADDED_OR_CHANGED), _grew),
)
"""The plugin's events with their hints."""
