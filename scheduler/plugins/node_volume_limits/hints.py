"""Which events may make room for a pod that a volume limit, or a missing claim, kept off (spec §2.7)."""

from __future__ import annotations

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, Pod, QueueingHint
from scheduler.model.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from scheduler.model.volumes import Volume
from scheduler.plugins.shared.csi_translation import TranslationError, driver_of, in_tree_plugin, translate_inline
from scheduler.plugins.shared.indexed import about_claims, by_event
from scheduler.plugins.shared.storage import used_claim_names, uses_claim

__all__ = ["REGISTRATIONS"]


def _rose(old: object | None, new: object | None) -> bool:
    """Say whether a limit rose."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    before = _counts(old)
    return any(count > before.get(driver, 0) for driver, count in _counts(new).items())


def _counts(csi_node: CSINode) -> dict[str, int]:
    """Return the limits; parity: a driver without one counts as 0."""
    return {d.name: (d.allocatable.count or 0) if d.allocatable is not None else 0 for d in csi_node.spec.drivers}


def _had_volumes(old: object | None, new: object | None) -> bool:
    """Say whether a pod that went had volumes on a node."""
    del new
    if not isinstance(old, Pod):
        return True
    had_a_place = bool(old.spec.node_name or old.status.nominated_node_name)
    return had_a_place and bool(old.attachable_volumes)


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
    by_event(ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), _rose),
    by_event(ClusterEvent(EventResource.POD, ActionType.DELETE), _had_volumes),
    about_claims(
        ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), _after_claim_added, used_claim_names
    ),
    EventRegistration(ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), _after_attachment_deleted),
)
"""The plugin's events with their hints."""
