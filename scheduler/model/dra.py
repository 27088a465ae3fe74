"""Dynamic resource allocation, ``resource.k8s.io/v1``: claims, the slices of devices that drivers offer, classes."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.model.meta import Condition, Int64, KubeObject, Value
from scheduler.model.pod import NodeSelector, QuantityText

__all__ = [
    "AllocationConfiguration",
    "AllocationResult",
    "CapacityRequestPolicy",
    "CapacityRequirements",
    "ClaimConfiguration",
    "ClaimConsumer",
    "CounterSet",
    "Device",
    "DeviceAllocation",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClass",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceRequest",
    "DeviceSelector",
    "DeviceSubRequest",
    "DeviceTaint",
    "DeviceToleration",
    "ExactDeviceRequest",
    "ResourceClaim",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


class CELSelector(Value, frozen=True):
    """A CEL expression over one device."""

    expression: str = ""


class DeviceSelector(Value, frozen=True):
    """One condition on a device."""

    cel: CELSelector | None = None


class DeviceToleration(Value, frozen=True):
    """A device taint that a request accepts."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Value, frozen=True):
    """How much of a shareable device's capacity is wanted."""

    requests: dict[str, QuantityText] = {}


class ExactDeviceRequest(Value, frozen=True):
    """Devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Value, frozen=True):
    """One alternative of a prioritised list."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Value, frozen=True):
    """One request: exactly this, or the first alternative that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Value, frozen=True):
    """What the devices of several requests must have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueConfiguration(Value, frozen=True):
    """Parameters for one driver, passed through unread."""

    driver: str = ""
    parameters: Any = None


class ClaimConfiguration(Value, frozen=True):
    """Configuration stated in a claim or class."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class AllocationConfiguration(Value, frozen=True):
    """Configuration recorded in an allocation, with where it came from."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Value, frozen=True):
    """``spec.devices`` of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(Value, frozen=True):
    """``spec`` of a claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocation(Value, frozen=True):
    """One device given to one request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, QuantityText] = {}


class DeviceAllocation(Value, frozen=True):
    """The devices of an allocation."""

    results: tuple[DeviceRequestAllocation, ...] = ()
    config: tuple[AllocationConfiguration, ...] = ()


class AllocationResult(Value, frozen=True):
    """What a claim got, and the nodes that can reach it."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ClaimConsumer(Value, frozen=True):
    """Who may use a claim; in practice a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Value, frozen=True):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Value, frozen=True):
    """``status`` of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeObject, frozen=True):
    """A wish for devices, and what came of it."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourcePool(Value, frozen=True):
    """The pool a slice is a part of; only slices of the newest generation count."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class Counter(Value, frozen=True):
    """An amount that partitions of a device share."""

    value: QuantityText = 0


class CounterSet(Value, frozen=True):
    """Named counters of a device that can be partitioned."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(Value, frozen=True):
    """What one device takes from a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceAttribute(Value, frozen=True):
    """One attribute; exactly one field is set."""

    int_value: Int64 | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)
    int_values: tuple[Int64, ...] = msgspec.field(name="ints", default=())
    bool_values: tuple[bool, ...] = msgspec.field(name="bools", default=())
    string_values: tuple[str, ...] = msgspec.field(name="strings", default=())
    version_values: tuple[str, ...] = msgspec.field(name="versions", default=())


class CapacityRange(Value, frozen=True):
    """The amounts that a request may take, from ``min`` to ``max`` in steps."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(Value, frozen=True):
    """How a request for capacity is rounded, and what applies without one."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Value, frozen=True):
    """One capacity of a device."""

    value: QuantityText = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Value, frozen=True):
    """Why a device should not be used."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(Value, frozen=True):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(Value, frozen=True):
    """``spec`` of a slice."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject, frozen=True):
    """A part of the devices that a driver offers."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(Value, frozen=True):
    """``spec`` of a class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    """A named set of conditions on devices."""

    spec: DeviceClassSpec = DeviceClassSpec()
