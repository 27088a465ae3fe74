"""Host ports: what a pod needs and when two needs collide (spec §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scheduler.model.pod import Pod

__all__ = ["HostPort", "pod_host_ports"]


class HostPort(NamedTuple):
    """One port on the node; an empty protocol means TCP and an empty address 0.0.0.0, already filled in."""

    ip: str
    protocol: str
    port: int


def pod_host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of the pod's containers and native sidecars."""
    raise NotImplementedError  # model helper
