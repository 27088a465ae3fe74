"""NodeResourcesBalancedAllocation: prefers nodes whose resources the pod makes more evenly used (spec §4.9).

With f the used fractions of the configured resources, balance = (1 - standard deviation of f) x 100. The score compares
the balance with and without the pod: 75 means no change, 100 the best and 50 the worst.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler.api import (
    CycleState,
    EventRegistration,
    Handle,
    IntColumn,
    NodesView,
    NodeView,
    Pod,
    PreScorePlugin,
    ScoreColumn,
    ScorePlugin,
    StateKey,
    Status,
)
from scheduler.config.args import NodeResourcesBalancedAllocationArgs
from scheduler.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler.plugins.node_resources.blocks import blocks
from scheduler.plugins.node_resources.bounded import bounded, bounded_columns
from scheduler.plugins.node_resources.usual import USUAL_RESOURCES, Usual, balance, usual

__all__ = ["NAME", "BalancedAllocation", "new"]

NAME = "NodeResourcesBalancedAllocation"

_NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_WANTED: StateKey[tuple[tuple[str, int], ...]] = StateKey("PreScoreNodeResourcesBalancedAllocation")

FloatColumn = NDArray[np.float64]


class BalancedAllocation(PreScorePlugin, ScorePlugin):
    """Scores by the change of balance; pods that request nothing are not scored."""

    name: ClassVar[str] = NAME
    __slots__ = ("_is_usual", "_resources")

    def __init__(self, resources: tuple[str, ...]) -> None:
        self._resources = resources
        self._is_usual = len(resources) == len(USUAL_RESOURCES) and set(resources) == USUAL_RESOURCES

    def events(self) -> Sequence[EventRegistration]:
        return ()

    def node_signature(self, pod: Pod) -> Hashable:
        return tuple(pod.accounted_requests.items())

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        del nodes
        wanted = self._wanted(pod)
        if not wanted:
            return Status.skip()
        state.write(_WANTED, wanted)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        wanted = self._wanted_in(state, pod)
        if not wanted:
            return 0
        with_pod: list[float] = []
        without: list[float] = []
        for name, amount in wanted:
            capacity, used, used_with_pod = bounded(node.allocatable.get(name, 0), node.requested.get(name, 0), amount)
            if capacity:
                with_pod.append(_fraction(used_with_pod, capacity))
                without.append(_fraction(used, capacity))
        return 50 + (50 + _balance(with_pod) - _balance(without)) // 2

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> ScoreColumn:
        wanted = self._wanted_in(state, pod)
        if not wanted:
            return np.zeros(len(nodes), np.int64)
        numbers = usual(nodes) if self._is_usual else None
        if numbers is not None:
            amounts = dict(wanted)
            return _score_pair(numbers, amounts[CPU], amounts[MEMORY])
        columns = [bounded_columns(nodes.allocatable(name), nodes.requested(name), amount) for name, amount in wanted]
        capacities, used, used_with_pod = zip(*columns, strict=True)
        offered = [capacity > 0 for capacity in capacities]
        divisors = [np.maximum(capacity, 1).astype(np.float64) for capacity in capacities]
        # what is used was cut to the capacity, so only the pod can bring a fraction above 1
        before = [u / d for u, d in zip(used, divisors, strict=True)]
        after = [np.minimum(1.0, u / d) for u, d in zip(used_with_pod, divisors, strict=True)]
        score = _balance_all(after, offered, len(nodes))
        score -= _balance_all(before, offered, len(nodes))
        # 50 + (50 + change) // 2 in fewer steps; the change is at least -50, so // and >> truncate as Go does
        score += 150
        score >>= 1
        return score

    def _wanted_in(self, state: CycleState, pod: Pod) -> tuple[tuple[str, int], ...]:
        wanted = state.get(_WANTED)
        # parity: a profile may have Score without PreScore
        return self._wanted(pod) if wanted is None else wanted

    def _wanted(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """Return (resource, amount); empty if the pod requests none of the configured resources.

        A scalar resource that the pod does not request takes no part, other resources take part with 0.
        """
        requests = pod.accounted_requests
        wanted = [(name, requests.get(name, 0)) for name in self._resources]
        taking_part = [w for w in wanted if w[1] or w[0] in _NATIVE]
        return tuple(taking_part) if sum([amount for _, amount in wanted]) else ()


def _score_pair(numbers: Usual, cpu_amount: int, memory_amount: int) -> NDArray[np.int16]:
    """Return the scores for CPU and memory from kept columns; the same floats as ``score`` comes to."""
    _, imbalance, cpu, memory = numbers
    scores = np.empty(len(imbalance), np.int16)
    for rows, _, ones in blocks(len(imbalance)):
        difference = cpu.used[rows] + float(cpu_amount)
        difference /= cpu.capacity[rows]
        np.minimum(difference, ones, out=difference)
        other = memory.used[rows] + float(memory_amount)
        other /= memory.capacity[rows]
        np.minimum(other, ones, out=other)
        difference -= other
        # (1 - |difference| / 2) * 100 in fewer steps: a factor of 2 is exact, whether it comes first or last.
        change = np.abs(difference, out=difference)
        np.subtract(2.0, change, out=change)
        change *= 50.0
        np.floor(change, out=change)
        change += imbalance[rows]
        score = scores[rows]
        score[:] = change
        score >>= 1  # 50 + (50 + change) // 2; the change is at least -50, so nothing is negative
    return scores


def _fraction(used: int, capacity: int) -> float:
    # parity: both become floats before they are divided, as in Go and numpy
    return min(1.0, float(used) / float(capacity))


def _balance(fractions: Sequence[float]) -> int:
    if len(fractions) < 2:
        std = 0.0
    elif len(fractions) == 2:
        return balance(fractions)
    else:
        total = 0.0
        for fraction in fractions:  # parity: added one by one; sum() is more exact from Python 3.12 on, so different
            total += fraction
        mean = total / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        std = math.sqrt(squares / len(fractions))
    return int((1 - std) * 100)


def _balance_all(fractions: Sequence[FloatColumn], offered: Sequence[NDArray[np.bool_]], num_nodes: int) -> IntColumn:
    """Return ``_balance`` for each node; the same operations in the same order, so the same floats."""
    if len(fractions) == 2 and all(mask.all() for mask in offered):
        std: FloatColumn = fractions[0] - fractions[1]
        std /= 2
        np.abs(std, out=std)
    else:
        std = _std_all(fractions, offered, num_nodes)
    np.subtract(1, std, out=std)
    std *= 100
    return std.astype(np.int64)


def _std_all(fractions: Sequence[FloatColumn], offered: Sequence[NDArray[np.bool_]], num_nodes: int) -> FloatColumn:
    count = np.zeros(num_nodes, np.int64)
    total = np.zeros(num_nodes)
    for fraction, mask in zip(fractions, offered, strict=True):
        count += mask
        total += np.where(mask, fraction, 0.0)
    mean = total / np.maximum(count, 1)
    squares = np.zeros(num_nodes)
    for fraction, mask in zip(fractions, offered, strict=True):
        squares += np.where(mask, (fraction - mean) * (fraction - mean), 0.0)
    std = np.sqrt(squares / np.maximum(count, 1))
    std = np.where(count == 2, _half_distance(fractions, offered, num_nodes), std)
    return np.where(count < 2, 0.0, std)


def _half_distance(
    fractions: Sequence[FloatColumn], offered: Sequence[NDArray[np.bool_]], num_nodes: int
) -> FloatColumn:
    """Return |f0 - f1| / 2 for nodes that offer exactly two of the resources (upstream's short cut)."""
    first = np.full(num_nodes, np.nan)
    second = np.full(num_nodes, np.nan)
    for fraction, mask in zip(fractions, offered, strict=True):
        take_second = mask & ~np.isnan(first)
        second = np.where(take_second & np.isnan(second), fraction, second)
        first = np.where(mask & np.isnan(first), fraction, first)
    half: FloatColumn = np.abs((first - second) / 2)
    return np.nan_to_num(half)


def new(args: object, handle: Handle) -> BalancedAllocation:
    """Make the plugin from its validated ``NodeResourcesBalancedAllocationArgs``."""
    del handle
    given = args if isinstance(args, NodeResourcesBalancedAllocationArgs) else NodeResourcesBalancedAllocationArgs()
    return BalancedAllocation(tuple(spec.name for spec in given.resources))
