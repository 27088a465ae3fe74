"""Which events may make room for a pod that a volume limit, or a missing claim, kept off (spec §2.7)."""

from __future__ import annotations

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, Pod, QueueingHint
from scheduler.model.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from scheduler.model.volumes import Volume
from scheduler.plugins.shared.csi_translation import TranslationError, driver_of, in_tree_plugin, translate_inline
from scheduler.plugins.shared.storage import uses_claim

__all__ = ["REGISTRATIONS"]


def _after_limits_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del pod
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    before = _counts(old)
    rose = any(count > before.get(driver, 0) for driver, count in _counts(new).items())
    return QueueingHint.QUEUE if rose else QueueingHint.SKIP


def _counts(csi_node: CSINode) -> dict[str, int]:
    """Return the limits; parity: a driver without one counts as 0."""
    return {d.name: (d.allocatable.count or 0) if d.allocatable is not None else 0 for d in csi_node.spec.drivers}


def _after_pod_deleted(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del pod, new
    if not isinstance(old, Pod):
        return QueueingHint.QUEUE
    had_a_place = bool(old.spec.node_name or old.status.nominated_node_name)
    frees = had_a_place and bool(old.attachable_volumes)
    return QueueingHint.QUEUE if frees else QueueingHint.SKIP


def _after_claim_added(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    is_mine = not isinstance(new, PersistentVolumeClaim) or uses_claim(pod, new)
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP


def _after_attachment_deleted(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del new
    if not isinstance(old, VolumeAttachment):
        return QueueingHint.QUEUE
    frees = any(v.persistent_volume_claim or _may_be_served_by(v, old.spec.attacher) for v in pod.spec.volumes)
    return QueueingHint.QUEUE if frees else QueueingHint.SKIP


def _may_be_served_by(volume: Volume, driver: str) -> bool:
    """Say whether an inline volume is the driver's; parity: also if the volume cannot be read (a hint's error)."""
    plugin = in_tree_plugin(volume)
    if plugin is None:
        return False
    try:
        translate_inline(volume)
    except TranslationError:
        return True
    return driver_of(plugin) == driver


REGISTRATIONS = (
    EventRegistration(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)),
    EventRegistration(ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), _after_limits_change),
    EventRegistration(ClusterEvent(EventResource.POD, ActionType.DELETE), _after_pod_deleted),
    EventRegistration(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), _after_claim_added),
    EventRegistration(ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), _after_attachment_deleted),
)
"""The plugin's events with their hints."""
