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
    """A resource to score.

    Attributes:
        name: for example ``cpu`` or ``example.com/gpu``.
        weight: 1 to 100; 0 stands for 1.
    """

    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Part, frozen=True):
    """A point of a scoring function; between two points the score is on a straight line.

    Attributes:
        utilization: of the resource, in percent, 0 to 100.
        score: what it is worth, 0 to 10.
    """

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(Part, frozen=True):
    """The scoring function of that strategy.

    Attributes:
        shape: its points, by rising utilization.
    """

    shape: tuple[UtilizationShapePoint, ...] = ()


_CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class ScoringStrategy(Part, frozen=True):
    """How NodeResourcesFit scores; a strategy in the file must name its type.

    Attributes:
        type: ``LeastAllocated``, ``MostAllocated`` or ``RequestedToCapacityRatio``.
        resources: what to score; cpu and memory with weight 1 if not given.
        requested_to_capacity_ratio: the function of the third strategy.
    """

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class DefaultPreemptionArgs(Part, frozen=True):
    """How many nodes preemption looks at: at least this share and this number.

    Attributes:
        min_candidate_nodes_percentage: share of the nodes, 0 to 100.
        min_candidate_nodes_absolute: number of nodes.
    """

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class InterPodAffinityArgs(Part, frozen=True):
    """Weight of other pods' required affinity, and whether their preferences matter.

    Attributes:
        hard_pod_affinity_weight: 0 to 100: what a required term of a running pod that matches this one is worth.
        ignore_preferred_terms_of_existing_pods: leave the preferences of running pods out.
    """

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Part, frozen=True):
    """An affinity that every pod of the profile has beside its own.

    Attributes:
        added_affinity: a node affinity as in a pod's ``spec.affinity.nodeAffinity``.
    """

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Part, frozen=True):
    """The resources that shall be in balance.

    Attributes:
        resources: which; weights other than 1 are refused.
    """

    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY


class NodeResourcesFitArgs(Part, frozen=True):
    """What Fit does not count, and how it scores.

    Attributes:
        ignored_resources: extended resources that do not decide whether a pod fits.
        ignored_resource_groups: the same for all resources of a group (the part before the slash).
        scoring_strategy: how nodes are scored.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED, _CPU_AND_MEMORY)


class PodTopologySpreadArgs(Part, frozen=True):
    """Spread constraints for pods that have none.

    Attributes:
        default_constraints: the list to use with ``List``; no ``labelSelector``, it comes from the pod's owner.
        defaulting_type: ``System`` (soft, by host and by zone) or ``List``.
    """

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class VolumeBindingArgs(Part, frozen=True):
    """How long volumes may take to bind, and how nodes are scored by their storage.

    Attributes:
        bind_timeout_seconds: how long PreBind waits for the volume controllers.
        shape: the scoring function, with the gate StorageCapacityScoring.
    """

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


class DynamicResourcesArgs(Part, frozen=True):
    """Time limits of device allocation; read and checked (dynamic resources are not built yet).

    Attributes:
        filter_timeout_s: for one node, with the gate DRASchedulerFilterTimeout; 0 means no limit.
        binding_timeout_s: for the devices' conditions, with the gate DRADeviceBindingConditions.
    """

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
