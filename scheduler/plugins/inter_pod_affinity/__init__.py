"""InterPodAffinity: pods want to be near other pods, or apart from them (spec §4.16)."""

from __future__ import annotations

from scheduler.plugins.inter_pod_affinity.filtering import REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING
from scheduler.plugins.inter_pod_affinity.plugin import NAME, InterPodAffinity, new

__all__ = ["NAME", "REASON_AFFINITY", "REASON_ANTI_AFFINITY", "REASON_EXISTING", "InterPodAffinity", "new"]
