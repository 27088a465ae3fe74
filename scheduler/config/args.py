"""Arguments of the default plugins (``pluginConfig[].args``), with upstream's defaults.

Each type is named NAME + ``Args`` as upstream's kind; `ARGS` finds it by plugin name. `completed` applies the defaults
that depend on other fields or on a feature gate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from scheduler.config.gates import FeatureGates
from scheduler.config.wire import Int32, Int64, Part, Seconds
from scheduler.model.pod import NodeAffinity, TopologySpreadConstraint

__all__ = [
    "ARGS",
    "LEAST_ALLOCATED",
    "LIST_DEFAULTING",
    "MOST_ALLOCATED",
    "REQUESTED_TO_CAPACITY_RATIO",
    "SYSTEM_DEFAULTING",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "InterPodAffinityArgs",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PodTopologySpreadArgs",
    "RequestedToCapacityRatio",
    "ResourceSpec",
    "ScoringStrategy",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "completed",
]

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"
_FILTER_TIMEOUT_S = 10.0
_BINDING_TIMEOUT_S = 600.0


class ResourceSpec(Part, frozen=True):
    """A resource to score with its weight."""

    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Part, frozen=True):
    """At this utilization (0..100) a node is worth this score (0..10)."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(Part, frozen=True):
    """The scoring function of that strategy."""

    shape: tuple[UtilizationShapePoint, ...] = ()


_CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class ScoringStrategy(Part, frozen=True):
    """How NodeResourcesFit scores; a strategy in the file must name its type."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class DefaultPreemptionArgs(Part, frozen=True):
    """How many nodes preemption looks at: at least this share and this number."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class InterPodAffinityArgs(Part, frozen=True):
    """Weight of other pods' required affinity, and whether their preferences matter."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Part, frozen=True):
    """An affinity that every pod of the profile has beside its own."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Part, frozen=True):
    """The resources that shall be in balance."""

    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY


class NodeResourcesFitArgs(Part, frozen=True):
    """What Fit does not count, and how it scores."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED, _CPU_AND_MEMORY)


class PodTopologySpreadArgs(Part, frozen=True):
    """Spread constraints for pods that have none."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class VolumeBindingArgs(Part, frozen=True):
    """How long volumes may take to bind; ``shape`` is None where StorageCapacityScoring is off."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


class DynamicResourcesArgs(Part, frozen=True):
    """Time limits of device allocation; None where the gate for it is off. ``filter_timeout_s`` 0 means no limit."""

    filter_timeout_s: Seconds | None = msgspec.field(name="filterTimeout", default=None)
    binding_timeout_s: Seconds | None = msgspec.field(name="bindingTimeout", default=None)


ARGS: dict[str, type[Part]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""Plugin name -> type of its args, for all default plugins that have args."""


def completed(args: Part, gates: FeatureGates) -> Part:
    """Fill in what depends on other fields or on gates (``SetDefaults_*Args`` upstream); idempotent."""
    complete = _COMPLETIONS.get(type(args))
    return args if complete is None else complete(args, gates)


def _balanced(args: NodeResourcesBalancedAllocationArgs, _gates: FeatureGates) -> Part:
    return msgspec.structs.replace(args, resources=_weighted(args.resources))


def _fit(args: NodeResourcesFitArgs, _gates: FeatureGates) -> Part:
    strategy = msgspec.structs.replace(args.scoring_strategy, resources=_weighted(args.scoring_strategy.resources))
    return msgspec.structs.replace(args, scoring_strategy=strategy)


def _spread(args: PodTopologySpreadArgs, _gates: FeatureGates) -> Part:
    return args if args.defaulting_type else msgspec.structs.replace(args, defaulting_type=SYSTEM_DEFAULTING)


def _volume_binding(args: VolumeBindingArgs, gates: FeatureGates) -> Part:
    if args.shape or not gates.enabled("StorageCapacityScoring"):
        return args
    shape = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
    return msgspec.structs.replace(args, shape=shape)


def _dynamic_resources(args: DynamicResourcesArgs, gates: FeatureGates) -> Part:
    if args.filter_timeout_s is None and gates.enabled("DRASchedulerFilterTimeout"):
        args = msgspec.structs.replace(args, filter_timeout_s=_FILTER_TIMEOUT_S)
    has_conditions = gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")
    if args.binding_timeout_s is None and has_conditions:
        args = msgspec.structs.replace(args, binding_timeout_s=_BINDING_TIMEOUT_S)
    return args


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(spec.name, spec.weight or 1) for spec in resources) or _CPU_AND_MEMORY


_COMPLETIONS: dict[type[Part], Callable[[Any, FeatureGates], Part]] = {
    NodeResourcesBalancedAllocationArgs: _balanced,
    NodeResourcesFitArgs: _fit,
    PodTopologySpreadArgs: _spread,
    VolumeBindingArgs: _volume_binding,
    DynamicResourcesArgs: _dynamic_resources,
}
