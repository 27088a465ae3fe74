"""The rules for plugin args, with upstream's texts (``validation_pluginargs.go`` 1.36)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scheduler.config import args as a
from scheduler.config.durations import format_duration
from scheduler.config.errors import Path, Problem, duplicate, forbidden, invalid, not_supported, required
from scheduler.config.gates import FeatureGates
from scheduler.config.validation_selectors import validate_node_affinity
from scheduler.model.label_syntax import label_key_problems
from scheduler.model.pod import TopologySpreadConstraint

__all__ = ["validate_args"]

_STRATEGIES = (a.LEAST_ALLOCATED, a.MOST_ALLOCATED, a.REQUESTED_TO_CAPACITY_RATIO)
_MAX_SHAPE_SCORE = 10


def validate_args(path: Path, args: object, gates: FeatureGates) -> Iterator[Problem]:
    """Return what is wrong with completed args of a default plugin; plain data of other plugins is fine."""
    check = _CHECKS.get(type(args))
    if check is not None:
        yield from check(path, args, gates)


def _default_preemption(path: Path, args: a.DefaultPreemptionArgs, _gates: FeatureGates) -> Iterator[Problem]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = (*path, "minCandidateNodesPercentage")
    absolute_path = (*path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        together = "cannot be zero at the same time as"
        yield invalid(percentage_path, percentage, f"{together} minCandidateNodesAbsolute")
        yield invalid(absolute_path, absolute, f"{together} minCandidateNodesPercentage")


def _inter_pod_affinity(path: Path, args: a.InterPodAffinityArgs, _gates: FeatureGates) -> Iterator[Problem]:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        yield invalid((*path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")


def _node_affinity(path: Path, args: a.NodeAffinityArgs, _gates: FeatureGates) -> Iterator[Problem]:
    if args.added_affinity is not None:
        yield from validate_node_affinity((*path, "addedAffinity"), args.added_affinity)


def _balanced(path: Path, args: a.NodeResourcesBalancedAllocationArgs, _gates: FeatureGates) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        here = (*path, "resources", index)
        if resource.name in seen:
            yield duplicate((*here, "name"), resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid((*here, "weight"), resource.weight, "must be 1")


def _fit(path: Path, args: a.NodeResourcesFitArgs, _gates: FeatureGates) -> Iterator[Problem]:
    for index, name in enumerate(args.ignored_resources):
        yield from _label_name((*path, "ignoredResources", index), name)
    for index, group in enumerate(args.ignored_resource_groups):
        here = (*path, "ignoredResourceGroups", index)
        if "/" in group:
            yield invalid(here, group, "resource group name can't contain '/'")
        yield from _label_name(here, group)
    yield from _scoring_strategy((*path, "scoringStrategy"), args.scoring_strategy)


def _scoring_strategy(path: Path, strategy: a.ScoringStrategy) -> Iterator[Problem]:
    if strategy.type not in _STRATEGIES:
        yield not_supported((*path, "type"), strategy.type, _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid((*path, "resources", index, "weight"), resource.weight, detail)
    here = (*path, "requestedToCapacityRatio")
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type != a.REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield forbidden(here, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        yield required(here, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _shape((*here, "shape"), ratio.shape)


def _shape(path: Path, shape: Sequence[a.UtilizationShapePoint]) -> Iterator[Problem]:
    if not shape:
        yield required(path, "at least one point must be specified")
        return
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            where = (*path, index, "utilization")
            yield invalid(where, shape[index].utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid((*path, index, "utilization"), point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= _MAX_SHAPE_SCORE:
            yield invalid((*path, index, "score"), point.score, f"not in valid range [0, {_MAX_SHAPE_SCORE}]")


def _spread(path: Path, args: a.PodTopologySpreadArgs, _gates: FeatureGates) -> Iterator[Problem]:
    types = (a.SYSTEM_DEFAULTING, a.LIST_DEFAULTING)
    type_path = (*path, "defaultingType")
    if args.defaulting_type not in types:
        yield not_supported(type_path, args.defaulting_type, types)
    elif args.defaulting_type == a.SYSTEM_DEFAULTING and args.default_constraints:
        yield invalid(type_path, args.defaulting_type, "when .defaultConstraints are not empty")
    for index in range(len(args.default_constraints)):
        yield from _constraint((*path, "defaultConstraints", index), args.default_constraints, index)


def _constraint(path: Path, constraints: Sequence[TopologySpreadConstraint], index: int) -> Iterator[Problem]:
    constraint = constraints[index]
    if constraint.max_skew <= 0:
        yield invalid((*path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required((*path, "topologyKey"), "can not be empty")
    else:
        yield from _label_name((*path, "topologyKey"), constraint.topology_key)
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if not constraint.when_unsatisfiable:
        yield required((*path, "whenUnsatisfiable"), "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        yield not_supported((*path, "whenUnsatisfiable"), constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        yield forbidden((*path, "labelSelector"), detail)
    key = (constraint.topology_key, constraint.when_unsatisfiable)
    if any((other.topology_key, other.when_unsatisfiable) == key for other in constraints[:index]):
        yield duplicate(path, f"{{{key[0]}, {key[1]}}}")


def _volume_binding(path: Path, args: a.VolumeBindingArgs, gates: FeatureGates) -> Iterator[Problem]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid((*path, "bindTimeoutSeconds"), args.bind_timeout_seconds, detail)
    if gates.enabled("StorageCapacityScoring"):
        yield from _shape((*path, "shape"), args.shape or ())
    elif args.shape is not None:
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield invalid((*path, "shape"), shown, detail)


def _dynamic_resources(path: Path, args: a.DynamicResourcesArgs, gates: FeatureGates) -> Iterator[Problem]:
    here = (*path, "filterTimeout")
    if args.filter_timeout_s is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            yield forbidden(here, "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout_s < 0:
            yield invalid(here, format_duration(args.filter_timeout_s), "must be zero or positive")
    here = (*path, "bindingTimeout")
    if args.binding_timeout_s is not None:
        if not (gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(here, detail)
        elif args.binding_timeout_s < 1:
            yield invalid(here, format_duration(args.binding_timeout_s), "must be at least 1 second")


def _label_name(path: Path, name: str) -> Iterator[Problem]:
    yield from (invalid(path, name, problem) for problem in label_key_problems(name))


_CHECKS: dict[type, Callable[[Path, Any, FeatureGates], Iterator[Problem]]] = {
    a.DefaultPreemptionArgs: _default_preemption,
    a.InterPodAffinityArgs: _inter_pod_affinity,
    a.NodeAffinityArgs: _node_affinity,
    a.NodeResourcesBalancedAllocationArgs: _balanced,
    a.NodeResourcesFitArgs: _fit,
    a.PodTopologySpreadArgs: _spread,
    a.VolumeBindingArgs: _volume_binding,
    a.DynamicResourcesArgs: _dynamic_resources,
}
