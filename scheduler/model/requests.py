"""What pods ask for and nodes offer, in the scheduler's integer units (spec §3.3, §3.4).

Amounts are added as exact nano-units and rounded once at the end, as upstream adds Quantities before it converts
them: three containers of ``100u`` CPU ask for 1 milli-core, not 3. Quantities are never negative here, because decode
rejects such pods.

Source: ``component-helpers/resource/helpers.go`` and ``pkg/scheduler/framework/types.go`` v1.36 with the feature gates
PodLevelResources, InPlacePodVerticalScaling and InPlacePodLevelResourcesVerticalScaling on (their defaults).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from scheduler.model.bounds import MAX_KEPT_CHARS, kept_for_short
from scheduler.model.label_syntax import label_key_problems
from scheduler.model.quantity import NANO, milli_value, parse_quantity_nano, value

if TYPE_CHECKING:
    from scheduler.model.pod import Container, ContainerStatus, Pod, QuantityText

__all__ = [
    "CPU",
    "DEFAULT_CPU_MILLI",
    "DEFAULT_MEMORY_BYTES",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "PODS",
    "Resources",
    "container_requests_nano",
    "is_scalar_resource",
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

DEFAULT_CPU_MILLI = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024

Amounts = dict[str, int]  # resource name -> nano-units
Quantities = Mapping[str, "QuantityText"]  # resource name -> text of the manifest

_DEFAULTS: Amounts = {CPU: DEFAULT_CPU_MILLI * (NANO // 1000), MEMORY: DEFAULT_MEMORY_BYTES * NANO}
_NO_DEFAULTS: Amounts = {}
_HUGE_PAGES = "hugepages-"
_ALWAYS = "Always"
_PLAIN_DIGITS = 18  # as many fit int64


def pod_requests(pod: Pod, *, use_status: bool) -> Resources:
    """Return the pod's effective requests.

    Args:
        pod: a pod whose quantities are valid.
        use_status: count what the kubelet has allocated and actuated, for a pod that runs on a node.

    Raises:
        QuantityError: a quantity cannot be read; decode lets no such pod through.
    """
    spec = pod.spec
    if len(spec.containers) == 1 and _is_plain(pod, use_status=use_status):
        requests = spec.containers[0].resources.requests
        return {name: amount for name, text in requests.items() if (amount := _amount(name, text)) is not None}
    return _to_resources(_pod_amounts(pod, _NO_DEFAULTS, use_status=use_status))


def non_zero_pod_requests(pod: Pod, *, use_status: bool) -> Resources:
    """Return CPU and memory, with 100 m and 200 MiB for each container that states none (scores only).

    A request of 0 that is stated stays 0. Where pod-level requests are set, only resources that are stated nowhere in
    the pod get the default.

    Raises:
        QuantityError: as ``pod_requests``.
    """
    spec = pod.spec
    if len(spec.containers) == 1 and _is_plain(pod, use_status=use_status):
        # One container: nothing is added up, so nothing is rounded twice.
        requests = pod.requests
        return {CPU: requests.get(CPU, DEFAULT_CPU_MILLI), MEMORY: requests.get(MEMORY, DEFAULT_MEMORY_BYTES)}
    defaults = _DEFAULTS
    if _has_pod_level_requests(pod):
        stated = _pod_amounts(pod, _NO_DEFAULTS, use_status=use_status)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in stated}
    amounts = _pod_amounts(pod, defaults, use_status=use_status)
    return {CPU: milli_value(amounts.get(CPU, 0)), MEMORY: value(amounts.get(MEMORY, 0))}


def container_requests_nano(pod: Pod) -> dict[str, int]:
    """Return what the containers need together in nano-units: neither pod-level resources nor overhead."""
    return _aggregate(pod, _NO_DEFAULTS, None)


def node_allocatable(allocatable: Mapping[str, QuantityText]) -> Resources:
    """Return a node's allocatable amounts, none negative; PODS is the number of pods that the node may run.

    Raises:
        QuantityError: a quantity cannot be read; decode lets no such node through.
    """
    resources: Resources = {}
    for name, text in allocatable.items():
        if name == PODS:
            resources[name] = max(value(parse_quantity_nano(text)), 0)
        elif (amount := _amount(name, text)) is not None:
            # A node that offers less than nothing offers nothing; so no difference of two columns can overflow.
            resources[name] = max(amount, 0)
    return resources


@kept_for_short(1024)
def is_scalar_resource(name: str) -> bool:
    """Say whether the scheduler counts the resource besides CPU, memory, ephemeral storage and pods.

    These are extended resources (``example.com/gpu``), huge pages, attachable volumes and all names of a
    ``kubernetes.io/`` domain.
    """
    if name.startswith((_HUGE_PAGES, "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.") and not label_key_problems(f"requests.{name}")


def _amount(name: str, text: QuantityText) -> int | None:
    """Return one quantity in the scheduler's unit; None if the scheduler does not count the resource."""
    # Bytes come in so many values that keeping them is in vain; such a number is what it says.
    if name == MEMORY and isinstance(text, str) and len(text) <= _PLAIN_DIGITS and text.isdecimal() and text.isascii():
        return int(text)
    if len(name) > MAX_KEPT_CHARS or (isinstance(text, str) and len(text) > MAX_KEPT_CHARS):
        return _convert(name, parse_quantity_nano(text))
    return _kept_amount(name, text)


@functools.lru_cache(maxsize=4096)
def _kept_amount(name: str, text: QuantityText) -> int | None:
    return _convert(name, parse_quantity_nano(text))


def _convert(name: str, nano: int) -> int | None:
    if name == CPU:
        return milli_value(nano)
    if name in (MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name):
        return value(nano)
    return None


def _to_resources(amounts: Amounts) -> Resources:
    return {name: amount for name, nano in amounts.items() if (amount := _convert(name, nano)) is not None}


def _is_plain(pod: Pod, *, use_status: bool) -> bool:
    """Say whether the sum of the containers' stated requests is all there is to it."""
    spec = pod.spec
    if spec.init_containers or spec.overhead or spec.resources is not None:
        return False
    return not (use_status and pod.status.container_statuses)


def _pod_amounts(pod: Pod, defaults: Amounts, *, use_status: bool) -> Amounts:
    if _is_plain(pod, use_status=use_status):
        return _sum_containers(pod.spec.containers, defaults)
    effective = _StatusView(pod) if use_status else None
    amounts = _aggregate(pod, defaults, effective)
    _apply_pod_level(pod, amounts, use_status=use_status)
    for name, text in pod.spec.overhead.items():
        amounts[name] = amounts.get(name, 0) + parse_quantity_nano(text)
    return amounts


def _sum_containers(containers: Iterable[Container], defaults: Amounts) -> Amounts:
    amounts: Amounts = {}
    for container in containers:
        requests = container.resources.requests
        for name, text in requests.items():
            amounts[name] = amounts.get(name, 0) + parse_quantity_nano(text)
        for name, nano in defaults.items():
            if name not in requests:
                amounts[name] = amounts.get(name, 0) + nano
    return amounts


def _aggregate(pod: Pod, defaults: Amounts, effective: _StatusView | None) -> Amounts:
    """Return the larger of what all containers need together and what the most demanding init step needs.

    Sidecars (init containers that restart always) run on, so they count for every later step and for the sum.
    """
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _container_amounts(container, defaults, effective))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == _ALWAYS:
            own = _container_amounts(container, defaults, effective)
            _add(total, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            own = _container_amounts(container, defaults, None)
            _add(own, sidecars)
            _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _container_amounts(container: Container, defaults: Amounts, effective: _StatusView | None) -> Amounts:
    stated = container.resources.requests
    amounts = effective.of_container(container.name, stated) if effective is not None else _parse(stated)
    for name, nano in defaults.items():
        amounts.setdefault(name, nano)
    return amounts


def _apply_pod_level(pod: Pod, amounts: Amounts, *, use_status: bool) -> None:
    """Let pod-level requests replace the containers' sum for the resources that may be set there."""
    if not _has_pod_level_requests(pod) or pod.spec.resources is None:
        return
    stated = pod.spec.resources.requests
    effective = _parse(stated)
    if use_status and pod.status.resources is not None:
        effective = _effective(
            pod, stated, actuated=pod.status.resources.requests, allocated=pod.status.allocated_resources
        )
    for name in stated:
        if _is_pod_level_resource(name):
            amounts[name] = effective.get(name, 0)


def _has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(_is_pod_level_resource, resources.requests))


def _is_pod_level_resource(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES)


class _StatusView:
    """What the kubelet has allocated and actuated for the containers of one pod (in-place resize)."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        # parity: a later status of the same name wins, init containers last
        self._statuses: dict[str, ContainerStatus] = {
            status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        }

    def of_container(self, name: str, stated: Quantities) -> Amounts:
        """Return what the container takes from its node while a resize may be under way."""
        status = self._statuses.get(name)
        if status is None or status.resources is None:
            return _parse(stated)
        return _effective(self._pod, stated, actuated=status.resources.requests, allocated=status.allocated_resources)


def _effective(pod: Pod, stated: Quantities, *, actuated: Quantities, allocated: Quantities) -> Amounts:
    """Return the most that may be in use during a resize; a wish that can never be met does not count."""
    amounts = _parse(actuated)
    _raise_to(amounts, _parse(allocated))
    if not _is_resize_infeasible(pod):
        _raise_to(amounts, _parse(stated))
    return amounts


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _parse(quantities: Quantities) -> Amounts:
    return {name: parse_quantity_nano(text) for name, text in quantities.items()}


def _add(amounts: Amounts, more: Amounts) -> None:
    for name, nano in more.items():
        amounts[name] = amounts.get(name, 0) + nano


def _raise_to(amounts: Amounts, floor: Amounts) -> None:
    for name, nano in floor.items():
        if name not in amounts or amounts[name] < nano:
            amounts[name] = nano
