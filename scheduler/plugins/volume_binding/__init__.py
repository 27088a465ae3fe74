"""VolumeBinding: finds, reserves and binds the volumes of a pod's claims."""

from scheduler.plugins.volume_binding.plugin import NAME, VolumeBinding, new

__all__ = ["NAME", "VolumeBinding", "new"]
