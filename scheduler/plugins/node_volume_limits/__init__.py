"""NodeVolumeLimits: no more volumes on a node than its CSI drivers can attach."""

from scheduler.plugins.node_volume_limits.plugin import NAME, NodeVolumeLimits, new

__all__ = ["NAME", "NodeVolumeLimits", "new"]
