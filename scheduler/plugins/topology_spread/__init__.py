"""PodTopologySpread: pods that belong together are spread over zones, hosts or other domains (spec §4.15)."""

from __future__ import annotations

from scheduler.plugins.topology_spread.plugin import (
    NAME,
    REASON_CONSTRAINTS,
    REASON_MISSING_LABEL,
    PodTopologySpread,
    new,
)

__all__ = ["NAME", "REASON_CONSTRAINTS", "REASON_MISSING_LABEL", "PodTopologySpread", "new"]
