"""Names of resources: which of them are extended resources."""

from __future__ import annotations

from scheduler.model.bounds import kept_for_short
from scheduler.model.requests import is_scalar_resource

__all__ = ["is_extended_resource"]


@kept_for_short(1024)
def is_extended_resource(name: str) -> bool:
    """Say whether the name is one that a device plugin or an administrator made up: ``vendor.example/gpu``.

    Source: ``pkg/apis/core/v1/helper.IsExtendedResourceName``.
    """
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith("requests.") and is_scalar_resource(name)
