"""Names, sizes and times that all parts of the generator use."""

from __future__ import annotations

import hashlib

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOST = "kubernetes.io/hostname"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
Ki, Mi, Gi = 1 << 10, 1 << 20, 1 << 30

APPS = ["app-a", "app-b", "app-c", "app-d"]
TIERS = ["front", "back"]
VERSIONS = ["v1", "v2", "v3"]


def uid(kind: str, namespace: str, name: str) -> str:
    """Return a UID that depends on the object's name only."""
    h = hashlib.md5(f"gen/{kind}/{namespace}/{name}".encode()).hexdigest()
    return "-".join([h[0:8], h[8:12], h[12:16], h[16:20], h[20:32]])


def stamp(seconds: int) -> str:
    """Return the time so many seconds after the start of 2025, in a calendar of months of 28 days."""
    day, second = divmod(seconds, 86400)
    month = 1 + day // 28
    return f"2025-{month:02d}-{1 + day % 28:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
