"""Migration: on nodes that have moved a plugin to its CSI driver, a volume is reached by the driver's topology."""

from __future__ import annotations

from scheduler.model.storage import CSINode, PersistentVolume, VolumeNodeAffinity
from scheduler.plugins.shared.csi_translation import MIGRATED, TranslationError, in_tree_plugin, translate_volume
from scheduler.plugins.volume_binding.decisions import BindingError

__all__ = ["MIGRATED_PLUGINS", "can_have_moved", "has_moved", "reach_on", "translated_reach"]

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: the in-tree plugins whose volumes the node serves by CSI drivers."""


def can_have_moved(volume: PersistentVolume) -> bool:
    """Say whether there are nodes that see the volume as a CSI volume."""
    return in_tree_plugin(volume.spec) in MIGRATED


def has_moved(volume: PersistentVolume, csi_node: CSINode | None) -> bool:
    """Say whether this node sees the in-tree volume as a CSI volume."""
    if csi_node is None or not can_have_moved(volume):
        return False
    return in_tree_plugin(volume.spec) in csi_node.annotations.get(MIGRATED_PLUGINS, "").split(",")


def reach_on(volume: PersistentVolume, csi_node: CSINode | None) -> VolumeNodeAffinity | None:
    """Return the volume's node affinity as the node sees it.

    Raises:
        BindingError: the volume has moved to CSI on this node, but cannot be translated.
    """
    return translated_reach(volume) if has_moved(volume, csi_node) else volume.spec.node_affinity


def translated_reach(volume: PersistentVolume) -> VolumeNodeAffinity | None:
    """Return the node affinity of the CSI volume that the in-tree volume has become.

    Raises:
        BindingError: it cannot be translated.
    """
    try:
        translated = translate_volume(volume)
    except TranslationError as error:
        raise BindingError(f"could not translate pv: {error}") from error
    return volume.spec.node_affinity if translated is None else translated[1]
