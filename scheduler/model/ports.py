"""Host ports: what a pod needs and when two needs collide (spec §3.3)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scheduler.model.pod import Container, Pod

__all__ = ["ANY_IP", "HostPort", "pod_host_ports", "ports_conflict"]

ANY_IP = "0.0.0.0"  # noqa: S104  the address that means every address; nothing is bound here
_DEFAULT_PROTOCOL = "TCP"
_ALWAYS = "Always"


class HostPort(NamedTuple):
    """One port on the node; an empty protocol means TCP and an empty address 0.0.0.0, already filled in."""

    ip: str
    protocol: str
    port: int


def pod_host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of the pod's native sidecars and containers, each once."""
    spec = pod.spec
    found: list[HostPort] = []
    for container in spec.init_containers:
        if container.restart_policy == _ALWAYS:
            _collect(container, found)
    for container in spec.containers:
        if container.ports:
            _collect(container, found)
    return tuple(dict.fromkeys(found)) if found else ()


def ports_conflict(wanted: Collection[HostPort], used: Collection[HostPort]) -> bool:
    """Say whether one of ``wanted`` cannot be had beside ``used``.

    Two ports collide if protocol and number are equal and the addresses are equal or one of them is 0.0.0.0.
    """
    if not wanted or not used:
        return False
    few, many = (wanted, used) if len(wanted) <= len(used) else (used, wanted)
    addresses: dict[tuple[str, int], set[str]] = {}
    for port in few:
        addresses.setdefault((port.protocol, port.port), set()).add(port.ip)
    for port in many:
        taken = addresses.get((port.protocol, port.port))
        if taken is not None and (port.ip == ANY_IP or ANY_IP in taken or port.ip in taken):
            return True
    return False


def _collect(container: Container, found: list[HostPort]) -> None:
    found.extend(
        HostPort(port.host_ip or ANY_IP, port.protocol or _DEFAULT_PROTOCOL, port.host_port)
        for port in container.ports
        if port.host_port > 0
    )
