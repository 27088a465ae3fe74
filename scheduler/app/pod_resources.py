"""``/metrics/resources``: what every live pod requests and is limited to (spec §7.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from scheduler.api import Pod
from scheduler.app.core import Core
from scheduler.model.pod import Container, ResourceRequirements
from scheduler.model.quantity import NANO, parse_quantity_nano
from scheduler.model.requests import container_requests_nano
from scheduler.telemetry.exposition import Rows
from scheduler.telemetry.families import POD_LIMIT, POD_REQUEST

__all__ = ["resource_rows"]

Series = tuple[Mapping[str, str], float]


def resource_rows(core: Core) -> Rows:
    """Return one series a pod and resource with a value other than zero; to be called on the scheduling thread."""
    pods = list(core.stores.of(Pod).list())
    return {
        POD_REQUEST.name: (
            POD_REQUEST.help_line,
            [series for pod in pods for series in _series(pod, _requests_nano(pod))],
        ),
        POD_LIMIT.name: (POD_LIMIT.help_line, [series for pod in pods for series in _series(pod, _limits_nano(pod))]),
    }


def _series(pod: Pod, amounts: Mapping[str, int]) -> Iterator[Series]:
    common = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "node": pod.node_name,
        "scheduler": pod.spec.scheduler_name,
        "priority": "" if pod.spec.priority is None else str(pod.spec.priority),
    }
    for resource, nano in amounts.items():
        if nano:
            yield {**common, "resource": resource, "unit": _unit(resource)}, nano / NANO


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in ("memory", "storage", "ephemeral-storage") or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""


def _requests_nano(pod: Pod) -> dict[str, int]:
    amounts = container_requests_nano(pod)
    _apply_pod_level(amounts, pod.spec.resources.requests if pod.spec.resources is not None else {})
    for name, text in pod.spec.overhead.items():
        amounts[name] = amounts.get(name, 0) + parse_quantity_nano(text)
    return amounts


def _limits_nano(pod: Pod) -> dict[str, int]:
    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(_with_limits_as_requests, pod.spec.containers)),
        init_containers=tuple(map(_with_limits_as_requests, pod.spec.init_containers)),
    )
    amounts = container_requests_nano(msgspec.structs.replace(pod, spec=spec))
    _apply_pod_level(amounts, pod.spec.resources.limits if pod.spec.resources is not None else {})
    for name, text in pod.spec.overhead.items():
        if amounts.get(name):  # parity: overhead is added to limits that exist only
            amounts[name] += parse_quantity_nano(text)
    return amounts


def _with_limits_as_requests(container: Container) -> Container:
    return msgspec.structs.replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def _apply_pod_level(amounts: dict[str, int], stated: Mapping[str, str | int | float]) -> None:
    for name, text in stated.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            amounts[name] = parse_quantity_nano(text)
