"""Defaults of pod-level resources, as the API server fills them in from limits and from what the containers ask for.

Source: ``defaultHugePagePodLimits`` and ``defaultPodRequests`` in ``pkg/apis/core/v1/defaults.go``.
"""

from __future__ import annotations

import msgspec

from scheduler.model.meta import ObjectMeta
from scheduler.model.pod import Pod, PodSpec
from scheduler.model.quantity import NANO
from scheduler.model.requests import container_requests_nano
from scheduler.testing.apiserver.quantities import normalize_resource_list
from scheduler.testing.apiserver.status import Json

__all__ = ["default_pod_level"]

_CONTAINER_FIELDS = ("containers", "initContainers")


def default_pod_level(spec: Json) -> None:
    """Complete ``spec.resources`` in place; the containers have their defaults already."""
    resources = spec.get("resources")
    if not resources:
        return
    for field in ("limits", "requests"):
        normalize_resource_list(resources, field)
    _default_huge_page_limits(spec, resources)
    if resources.get("limits"):
        resources["requests"] = _completed_requests(spec, resources["limits"], resources.get("requests") or {})


def _default_huge_page_limits(spec: Json, resources: Json) -> None:
    if not (resources.get("limits") or resources.get("requests")):
        return
    limits, requests = dict(resources.get("limits") or {}), resources.get("requests") or {}
    for name, nano in _sum_of_containers(spec, "limits").items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, _text(nano))
    if limits:
        resources["limits"] = limits


def _completed_requests(spec: Json, limits: Json, requests: Json) -> Json:
    completed = dict(requests)
    for name, nano in _sum_of_containers(spec, "requests").items():
        if name in ("cpu", "memory"):
            completed.setdefault(name, _text(nano))
    for name, value in limits.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            completed.setdefault(name, value)
    return completed


def _sum_of_containers(spec: Json, field: str) -> dict[str, int]:
    """Return the sum of the containers' requests or limits, init containers considered, in nano-units."""
    bare = {
        key: [
            {"resources": {"requests": (c.get("resources") or {}).get(field) or {}}, **_restart_policy(c)}
            for c in spec.get(key) or ()
        ]
        for key in _CONTAINER_FIELDS
    }
    return container_requests_nano(Pod(metadata=ObjectMeta(), spec=msgspec.convert(bare, PodSpec)))


def _restart_policy(container: Json) -> Json:
    return {"restartPolicy": container["restartPolicy"]} if container.get("restartPolicy") else {}


def _text(nano: int) -> str:
    if nano % NANO == 0:
        return str(nano // NANO)
    return f"{nano // 1_000_000}m" if nano % 1_000_000 == 0 else f"{nano}n"
