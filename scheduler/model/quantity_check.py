"""The quantities of every kind: where they stand, and whether they make sense.

Decode asks this of each object, so that code behind it can parse quantities without expecting an error. Pods may not
ask for negative amounts; the API server refuses those too, but a request that lowers a node's load is worth a second
lock. Limits are not looked at, since scheduling does not read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from scheduler.model.dra import ResourceClaim, ResourceSlice
from scheduler.model.meta import KubeObject
from scheduler.model.node import Node
from scheduler.model.pod import Container, ContainerStatus, Pod
from scheduler.model.quantity import QuantityError, parse_quantity_nano
from scheduler.model.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from scheduler.model.dra import CapacityRequirements, CounterSet, Device, DeviceCapacity
    from scheduler.model.pod import QuantityText

__all__ = ["quantity_problem"]

Located = tuple[str, Mapping[str, "QuantityText"]]  # path of a map of quantities, and the map


def quantity_problem(obj: KubeObject) -> str:
    """Return what is wrong with the object's quantities, with the path of the field; "" if nothing is."""
    kind = type(obj)
    if kind is Pod:
        return _pod_problem(cast("Pod", obj))
    quantities_of = _QUANTITIES.get(kind)
    return _first_problem(quantities_of(obj), may_be_negative=True) if quantities_of is not None else ""


def _pod_problem(pod: Pod) -> str:
    """Check a pod; written for speed, because most objects are pods and almost all are good."""
    spec = pod.spec
    try:
        for container in spec.containers:
            for text in container.resources.requests.values():
                if parse_quantity_nano(text) < 0:
                    return _first_problem(_pod_quantities(pod), may_be_negative=False)
    except QuantityError:
        return _first_problem(_pod_quantities(pod), may_be_negative=False)
    status = pod.status
    if spec.init_containers or spec.overhead or spec.resources or status.container_statuses or status.resources:
        return _first_problem(_pod_quantities(pod), may_be_negative=False)
    return ""


def _first_problem(located: Iterable[Located], *, may_be_negative: bool) -> str:
    for path, quantities in located:
        for name, text in quantities.items():
            try:
                is_negative = parse_quantity_nano(text) < 0
            except QuantityError as error:
                return f"{_at(path, name)}: {error}"
            if is_negative and not may_be_negative:
                return f"{_at(path, name)}: {text} is negative"
    return ""


def _at(path: str, name: str) -> str:
    return f"{path}[{name}]" if path else name


def _pod_quantities(pod: Pod) -> Iterator[Located]:
    spec, status = pod.spec, pod.status
    yield from _containers("spec.containers", spec.containers)
    yield from _containers("spec.initContainers", spec.init_containers)
    if spec.overhead:
        yield "spec.overhead", spec.overhead
    if spec.resources is not None:
        yield "spec.resources.requests", spec.resources.requests
    yield from _statuses("status.containerStatuses", status.container_statuses)
    yield from _statuses("status.initContainerStatuses", status.init_container_statuses)
    if status.resources is not None:
        yield "status.resources.requests", status.resources.requests
    if status.allocated_resources:
        yield "status.allocatedResources", status.allocated_resources


def _containers(path: str, containers: Iterable[Container]) -> Iterator[Located]:
    for i, container in enumerate(containers):
        if container.resources.requests:
            yield f"{path}[{i}].resources.requests", container.resources.requests


def _statuses(path: str, statuses: Iterable[ContainerStatus]) -> Iterator[Located]:
    for i, status in enumerate(statuses):
        if status.resources is not None and status.resources.requests:
            yield f"{path}[{i}].resources.requests", status.resources.requests
        if status.allocated_resources:
            yield f"{path}[{i}].allocatedResources", status.allocated_resources


def _node_quantities(node: Node) -> Iterator[Located]:
    yield "status.allocatable", node.status.allocatable
    yield "status.capacity", node.status.capacity


def _volume_quantities(volume: PersistentVolume) -> Iterator[Located]:
    yield "spec.capacity", volume.spec.capacity


def _claim_quantities(claim: PersistentVolumeClaim) -> Iterator[Located]:
    yield "spec.resources.requests", claim.spec.resources.requests
    yield "status.capacity", claim.status.capacity


def _capacity_quantities(capacity: CSIStorageCapacity) -> Iterator[Located]:
    yield from _optional(capacity=capacity.capacity, maximumVolumeSize=capacity.maximum_volume_size)


def _optional(path: str = "", **quantities: QuantityText | None) -> Iterator[Located]:
    yield path, {name: text for name, text in quantities.items() if text is not None}


def _resource_claim_quantities(claim: ResourceClaim) -> Iterator[Located]:
    for i, request in enumerate(claim.spec.devices.requests):
        path = f"spec.devices.requests[{i}]"
        if request.exactly is not None:
            yield from _wanted_capacity(f"{path}.exactly", request.exactly.capacity)
        for j, alternative in enumerate(request.first_available):
            yield from _wanted_capacity(f"{path}.firstAvailable[{j}]", alternative.capacity)
    if claim.status.allocation is not None:
        for i, result in enumerate(claim.status.allocation.devices.results):
            yield f"status.allocation.devices.results[{i}].consumedCapacity", result.consumed_capacity


def _wanted_capacity(path: str, capacity: CapacityRequirements | None) -> Iterator[Located]:
    if capacity is not None:
        yield f"{path}.capacity.requests", capacity.requests


def _slice_quantities(slice_: ResourceSlice) -> Iterator[Located]:
    yield from _counter_sets("spec.sharedCounters", slice_.spec.shared_counters)
    for i, device in enumerate(slice_.spec.devices):
        yield from _device_quantities(f"spec.devices[{i}]", device)


def _counter_sets(path: str, sets: Iterable[CounterSet]) -> Iterator[Located]:
    for i, counter_set in enumerate(sets):
        yield f"{path}[{i}].counters", {name: counter.value for name, counter in counter_set.counters.items()}


def _device_quantities(path: str, device: Device) -> Iterator[Located]:
    for i, consumed in enumerate(device.consumes_counters):
        counters = {name: counter.value for name, counter in consumed.counters.items()}
        yield f"{path}.consumesCounters[{i}].counters", counters
    for name, capacity in device.capacity.items():
        yield from _device_capacity(f"{path}.capacity[{name}]", capacity)


def _device_capacity(path: str, capacity: DeviceCapacity) -> Iterator[Located]:
    yield from _optional(path, value=capacity.value)
    policy = capacity.request_policy
    if policy is None:
        return
    yield from _optional(f"{path}.requestPolicy", default=policy.default)
    yield f"{path}.requestPolicy.validValues", {str(i): text for i, text in enumerate(policy.valid_values)}
    if policy.valid_range is not None:
        bounds = policy.valid_range
        yield from _optional(f"{path}.requestPolicy.validRange", min=bounds.min, max=bounds.max, step=bounds.step)


_QUANTITIES: dict[type[KubeObject], Callable[[Any], Iterator[Located]]] = {
    Node: _node_quantities,
    PersistentVolume: _volume_quantities,
    PersistentVolumeClaim: _claim_quantities,
    CSIStorageCapacity: _capacity_quantities,
    ResourceClaim: _resource_claim_quantities,
    ResourceSlice: _slice_quantities,
}
