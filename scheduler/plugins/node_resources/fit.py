"""NodeResourcesFit: a node must have left what the pod requests; scores say how full nodes should be (spec §4.8).

Assumed pods count as running. The filter compares exact requests; the score counts 100 m CPU and 200 MiB for
containers that request nothing, so that a node full of modest pods does not look empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from scheduler.api import (
    ActionType,
    BoolColumn,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Node,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueingHint,
    Resources,
    ScoreColumn,
    ScorePlugin,
    StateKey,
    Status,
    Verdicts,
)
from scheduler.config.args import NodeResourcesFitArgs
from scheduler.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler.plugins.node_resources.bounded import bounded, bounded_columns
from scheduler.plugins.node_resources.scoring import (
    MAX_WEIGHTS,
    ColumnFree,
    ColumnUsage,
    LeastAllocated,
    Usage,
    strategy_for,
)
from scheduler.plugins.node_resources.usual import USUAL_RESOURCES, Usual, usual
from scheduler.plugins.shared.resource_names import is_extended_resource

__all__ = ["NAME", "REASON_TOO_MANY_PODS", "NodeResourcesFit", "insufficient", "new"]

NAME = "NodeResourcesFit"
REASON_TOO_MANY_PODS = "Too many pods"

_NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_MAX_BITS = 60  # reasons that an int64 can hold one bit each of, with two to spare
_WANTED: StateKey[tuple[tuple[str, int], ...]] = StateKey("PreFilterNodeResourcesFit")
_SCORED: StateKey[tuple[tuple[str, int, int], ...]] = StateKey("PreScoreNodeResourcesFit")


def insufficient(resource: str) -> str:
    """Return the reason for a node that has too little of the resource left."""
    return f"Insufficient {resource}"


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by what is left and scores by one of three strategies."""

    name: ClassVar[str] = NAME
    __slots__ = ("_ignored", "_ignored_groups", "_is_usual", "_resources", "_strategy")

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = strategy_for(args.scoring_strategy)
        self._resources = tuple((spec.name, spec.weight) for spec in args.scoring_strategy.resources)
        weights = dict(self._resources)
        self._is_usual = (
            isinstance(self._strategy, LeastAllocated)
            and weights.keys() == USUAL_RESOURCES
            and len(weights) == len(self._resources)
            and sum(weights.values()) <= MAX_WEIGHTS
        )

    # --- filter ------------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del nodes
        state.write(_WANTED, self._wanted(pod.requests))
        return None, None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        wanted = self._wanted_in(state, pod)
        return _judge(wanted, node.allocatable, node.requested, node.num_pods)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        wanted = self._wanted_in(state, pod)
        numbers = usual(nodes) if all(map(_is_usual, wanted)) else None
        if numbers is not None:
            ok = numbers.places > 0 if not wanted else _has_room(numbers, *wanted[0])
            for resource, amount in wanted[1:]:
                ok &= _has_room(numbers, resource, amount)
            return Verdicts(ok, lambda rows: _explain(wanted, nodes.take(rows), rows))
        ok = nodes.num_pods < nodes.allocatable(PODS)
        for resource, amount in wanted:
            ok &= nodes.allocatable(resource) - nodes.requested(resource) >= amount
        return Verdicts(ok, lambda rows: _explain(wanted, nodes.take(rows), rows))

    def spare(self, state: CycleState, pod: Pod, node: NodeView, others: Sequence[Pod]) -> list[bool] | Status | None:
        wanted = self._wanted_in(state, pod)
        allocatable, requested = node.allocatable, node.requested
        places = allocatable.get(PODS, 0) - node.num_pods + len(others) - 1
        left: dict[str, int] = {}
        for resource, amount in wanted:
            freed = sum([other.accounted_requests.get(resource, 0) for other in others])
            left[resource] = allocatable.get(resource, 0) - requested.get(resource, 0) + freed - amount
        if places < 0 or any(room < 0 for room in left.values()):
            without = {name: allocatable.get(name, 0) - left[name] - amount for name, amount in wanted}
            return _judge(wanted, allocatable, without, node.num_pods - len(others))
        stays: list[bool] = []
        for other in others:
            amounts = other.accounted_requests
            fits = places > 0 and all(room >= amounts.get(resource, 0) for resource, room in left.items())
            if fits:
                places -= 1
                for resource in left:
                    left[resource] -= amounts.get(resource, 0)
            stays.append(fits)
        return stays

    def _wanted_in(self, state: CycleState, pod: Pod) -> tuple[tuple[str, int], ...]:
        wanted = state.get(_WANTED)
        # differs: upstream answers Error if the profile has Filter without PreFilter
        return self._wanted(pod.requests) if wanted is None else wanted

    def _wanted(self, requests: Resources) -> tuple[tuple[str, int], ...]:
        """Return what must be left, native resources first, in the order in which reasons are given."""
        wanted = [(resource, amount) for resource in _NATIVE if (amount := requests.get(resource, 0)) > 0]
        if len(wanted) < len(requests):
            others = sorted(requests.keys() - _NATIVE)
            wanted += [(name, requests[name]) for name in others if requests[name] > 0 and not self._is_ignored(name)]
        return tuple(wanted)

    def _is_ignored(self, resource: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended_resource(resource):
            return False
        return resource in self._ignored or resource.split("/", 1)[0] in self._ignored_groups

    # --- score -------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        del nodes
        state.write(_SCORED, self._scored(pod))
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        usages: list[Usage] = []
        for name, weight, amount in self._scored_in(state, pod):
            capacity, _, requested = bounded(node.allocatable.get(name, 0), _used(node, name), amount)
            if capacity:
                usages.append(Usage(weight, capacity, requested))
        return self._strategy.score(usages)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> ScoreColumn:
        scored = self._scored_in(state, pod)
        numbers = usual(nodes) if self._is_usual else None
        if numbers is not None:
            columns = [(weight, numbers.of(name), amount) for name, weight, amount in scored]
            free = [ColumnFree(weight, of.capacity, of.hundredfold, amount) for weight, of, amount in columns]
            return LeastAllocated().score_free(free, len(nodes))
        usages: list[ColumnUsage] = []
        for name, weight, amount in scored:
            capacity, _, requested = bounded_columns(nodes.allocatable(name), nodes.non_zero_requested(name), amount)
            usages.append(ColumnUsage(weight, capacity, requested))
        return self._strategy.score_all(usages, len(nodes))

    def _scored_in(self, state: CycleState, pod: Pod) -> tuple[tuple[str, int, int], ...]:
        scored = state.get(_SCORED)
        # parity: a profile may have Score without PreScore
        return self._scored(pod) if scored is None else scored

    def _scored(self, pod: Pod) -> tuple[tuple[str, int, int], ...]:
        """Return (resource, weight, amount); a scalar resource that the pod does not request takes no part."""
        requests = _score_requests(pod)
        scored = [(name, weight, requests.get(name, 0)) for name, weight in self._resources]
        return tuple([s for s in scored if s[2] or s[0] in _NATIVE])

    def node_signature(self, pod: Pod) -> Hashable:
        requests = tuple(pod.requests.items())
        if pod.spec.resources is None:
            return requests, tuple(pod.non_zero_requests.items())
        return requests, tuple(_score_requests(pod).items())

    # --- events ------------------------------------------------------------------------------------------------------

    def events(self) -> Sequence[EventRegistration]:
        room_made = ClusterEvent(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        node_grew = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        return (
            EventRegistration(room_made, _after_pod_event),
            EventRegistration(node_grew, self._after_node_change),
        )

    def _after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.QUEUE
        # differs: upstream's hint knows nothing of ignored resources, so a pod that asks an extender for one would not
        # hear of the node that it waits for, and be pending for minutes
        wanted = self._wanted(pod.requests)
        if _judge(wanted, new.allocatable, {}, 0) is not None:
            return QueueingHint.SKIP
        grew = not isinstance(old, Node) or any(
            new.allocatable.get(name, 0) > old.allocatable.get(name, 0)
            for name in (PODS, *(name for name, _ in wanted))
        )
        return QueueingHint.QUEUE if grew else QueueingHint.SKIP


def _judge(
    wanted: Sequence[tuple[str, int]], allocatable: Resources, requested: Resources, num_pods: int
) -> Status | None:
    reasons: list[str] = []
    too_big = False
    if num_pods + 1 > allocatable.get(PODS, 0):
        reasons.append(REASON_TOO_MANY_PODS)
    for resource, amount in wanted:
        capacity = allocatable.get(resource, 0)
        if amount > capacity - requested.get(resource, 0):
            reasons.append(insufficient(resource))
            too_big |= amount > capacity
    if not reasons:
        return None
    return Status.unresolvable(*reasons) if too_big else Status.unschedulable(*reasons)


def _explain(wanted: Sequence[tuple[str, int]], nodes: NodesView, rows: np.ndarray) -> list[tuple[Status, np.ndarray]]:
    """Group rows by the set of their reasons: one bit a reason, and one for "no eviction can help"."""
    kind: Any = (
        np.int64 if len(wanted) <= _MAX_BITS else np.object_
    )  # Python's integers have room for any number of bits
    pattern = (nodes.num_pods >= nodes.allocatable(PODS)).astype(kind) << 1
    for bit, (resource, amount) in enumerate(wanted, start=2):
        capacity = nodes.allocatable(resource)
        pattern |= (amount > capacity - nodes.requested(resource)).astype(kind) << bit
        pattern |= (amount > capacity).astype(kind)
    reasons = [REASON_TOO_MANY_PODS, *(insufficient(resource) for resource, _ in wanted)]
    return [(_status_of(int(value), reasons), rows[pattern == value]) for value in np.unique(pattern)]


def _status_of(pattern: int, reasons: Sequence[str]) -> Status:
    given = [reason for bit, reason in enumerate(reasons, start=1) if pattern >> bit & 1]
    return Status.unresolvable(*given) if pattern & 1 else Status.unschedulable(*given)


def _used(node: NodeView, resource: str) -> int:
    if resource in (CPU, MEMORY):
        return node.non_zero_requested.get(resource, 0)
    return node.requested.get(resource, 0)


def _is_usual(wanted: tuple[str, int]) -> bool:
    return wanted[0] in USUAL_RESOURCES


def _has_room(numbers: Usual, resource: str, amount: int) -> BoolColumn:
    """Say where there is a place for a pod and so much of a resource; an amount too large for floats is so anyway."""
    return numbers.of(resource).room >= float(amount)


def _score_requests(pod: Pod) -> Mapping[str, int]:
    # parity: the scorer of this plugin ignores pod-level requests (its switches stay off in 1.36)
    if pod.spec.resources is not None:
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=None))
    return {**pod.requests, **pod.non_zero_requests}


def _after_pod_event(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    if not isinstance(old, Pod):
        return QueueingHint.QUEUE
    if new is None:
        had_a_place = bool(old.spec.node_name or old.status.nominated_node_name)
        return QueueingHint.QUEUE if had_a_place else QueueingHint.SKIP
    if not isinstance(new, Pod) or new.uid == pod.uid:
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if new.spec.node_name and _lowered_what_is_wanted(pod, old, new) else QueueingHint.SKIP


def _lowered_what_is_wanted(pod: Pod, old: Pod, new: Pod) -> bool:
    before, after = old.accounted_requests, new.accounted_requests
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in pod.accounted_requests.items())


def new(args: object, handle: Handle) -> NodeResourcesFit:
    """Make the plugin from its validated ``NodeResourcesFitArgs``."""
    del handle
    return NodeResourcesFit(args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs())
