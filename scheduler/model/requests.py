"""What pods ask for and nodes offer, in the scheduler's integer units (spec §3.3, §3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.model.pod import Pod, QuantityText

__all__ = [
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "PODS",
    "Resources",
    "node_allocatable",
    "non_zero_pod_requests",
    "pod_requests",
]

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

Resources = dict[str, int]
"""Resource name -> amount: CPU in milli-cores, everything else in whole units (bytes, devices, pods), all int64.

A name that is absent counts as 0. Treat as frozen once it is shared.
"""


def pod_requests(pod: Pod, *, use_status: bool) -> Resources:
    """Return the pod's effective requests."""
    raise NotImplementedError  # model helper


def non_zero_pod_requests(pod: Pod, *, use_status: bool) -> Resources:
    """Return CPU and memory with defaults."""
    raise NotImplementedError  # model helper


def node_allocatable(allocatable: Mapping[str, QuantityText]) -> Resources:
    """Return a node's allocatable amounts."""
    raise NotImplementedError  # model helper
