"""The three scoring strategies of NodeResourcesFit, each on one node's numbers and on columns (spec §4.8).

A strategy sees, for every configured resource, what the node offers and what would be requested with the pod on it.
A resource that the node does not offer takes no part; neither does a scalar resource that the pod does not request.
All divisions are integer divisions of non-negative numbers, except on a falling slope of a shape, where Go truncates
toward zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler.api import MAX_NODE_SCORE, IntColumn
from scheduler.config.args import ScoringStrategy
from scheduler.plugins.node_resources.blocks import blocks
from scheduler.plugins.shared.broken_line import line_value

__all__ = [
    "MAX_WEIGHTS",
    "ColumnFree",
    "ColumnUsage",
    "LeastAllocated",
    "MostAllocated",
    "RequestedToCapacityRatio",
    "Strategy",
    "Usage",
    "strategy_for",
]

MAX_WEIGHTS = 320
"""Up to this sum of the resources' weights a weighted sum of scores fits int16; validation lets each have 100."""

_CONFIG_MAX_SCORE = 10  # shape points score 0..10


class Usage(NamedTuple):
    """One resource on one node."""

    weight: int
    capacity: int
    requested: int


class ColumnUsage(NamedTuple):
    """One resource on all nodes."""

    weight: int
    capacity: IntColumn
    requested: IntColumn


class ColumnFree(NamedTuple):
    """One resource on all nodes before the pod comes, and how much the pod wants."""

    weight: int
    capacity: NDArray[np.float64]
    hundredfold: NDArray[np.float64]  # what is free, times 100
    amount: int


class Strategy(Protocol):
    """How full a node should be."""

    def score(self, usages: Sequence[Usage]) -> int:
        """Return 0..100 for one node; resources with capacity 0 must have been left out."""

    def score_all(self, usages: Sequence[ColumnUsage], num_nodes: int) -> IntColumn:
        """Return 0..100 for each node; resources with capacity 0 on a node are left out there."""


class LeastAllocated:
    """The emptier the better.

    On the usual nodes, which offer all of the usual resources, ``score_free`` says it from kept columns.
    """

    def score_free(self, free: Sequence[ColumnFree], num_nodes: int) -> NDArray[np.int16]:
        """Return ``score_all`` for nodes that offer at least 1 and at most ``MAX_EXACT_CAPACITY`` of each resource.

        The weights must not add up to more than ``MAX_WEIGHTS``.
        """
        scores = np.empty(num_nodes, np.int16)
        weights = sum(column.weight for column in free)
        for rows, zeros, _ in blocks(num_nodes):
            total = scores[rows]
            for i, (weight, capacity, hundredfold, amount) in enumerate(free):
                share = hundredfold[rows] - MAX_NODE_SCORE * float(amount)
                np.maximum(share, zeros, out=share)
                share /= capacity[rows]
                score = share.astype(np.int16)  # rounds down, as the integer division does
                if weight != 1:
                    score *= weight
                if i:
                    total += score
                else:
                    total[:] = score
            total //= weights
        return scores

    def score(self, usages: Sequence[Usage]) -> int:
        # Written out: with equal pods it is asked about one node in each decision.
        total = weights = 0
        for weight, capacity, requested in usages:
            weights += weight
            if requested <= capacity:
                total += (capacity - requested) * MAX_NODE_SCORE // capacity * weight
        return total // weights if weights else 0

    def score_all(self, usages: Sequence[ColumnUsage], num_nodes: int) -> IntColumn:
        def per_resource(capacity: IntColumn, requested: IntColumn) -> IntColumn:
            free = capacity - requested
            np.maximum(free, 0, out=free)
            free *= MAX_NODE_SCORE
            return free // np.maximum(capacity, 1)

        return _weighted_mean_all(usages, num_nodes, per_resource)


class MostAllocated:
    """The fuller the better."""

    def score(self, usages: Sequence[Usage]) -> int:
        return _weighted_mean(usages, lambda u: min(u.requested, u.capacity) * MAX_NODE_SCORE // u.capacity)

    def score_all(self, usages: Sequence[ColumnUsage], num_nodes: int) -> IntColumn:
        def per_resource(capacity: IntColumn, requested: IntColumn) -> IntColumn:
            used = np.minimum(requested, capacity)
            used *= MAX_NODE_SCORE
            return used // np.maximum(capacity, 1)

        return _weighted_mean_all(usages, num_nodes, per_resource)


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatio:
    """A line through given points says how welcome each utilization is.

    Attributes:
        shape: (utilization in per cent, score 0..100), utilization rising.
    """

    shape: tuple[tuple[int, int], ...]

    def score(self, usages: Sequence[Usage]) -> int:
        total, weights = 0, 0
        for usage in usages:
            utilization = usage.requested * 100 // usage.capacity if usage.requested <= usage.capacity else 100
            score = self.at(utilization)
            if score > 0:
                total += score * usage.weight
                weights += usage.weight
        return _round_half_up(total, weights) if weights else 0

    def score_all(self, usages: Sequence[ColumnUsage], num_nodes: int) -> IntColumn:
        # Utilization is one of 0..100, so the line is a table.
        table = np.array([self.at(utilization) for utilization in range(101)], np.int64)
        total, weights = np.zeros(num_nodes, np.int64), np.zeros(num_nodes, np.int64)
        for weight, capacity, requested in usages:
            utilization = np.minimum(requested, capacity) * 100 // np.maximum(capacity, 1)
            score = table[utilization] * (capacity > 0)
            total += score * weight
            weights += (score > 0) * np.int64(weight)
        mean = np.floor(total / np.maximum(weights, 1) + 0.5)
        return mean.astype(np.int64)

    def at(self, utilization: int) -> int:
        """Return the line's value; outside the points it is level."""
        return line_value(self.shape, utilization)


def strategy_for(strategy: ScoringStrategy) -> Strategy:
    """Return the strategy that the validated arguments name.

    Raises:
        ValueError: the type is unknown; validation lets no such arguments through.
    """
    match strategy.type:
        case "LeastAllocated":
            return LeastAllocated()
        case "MostAllocated":
            return MostAllocated()
        case "RequestedToCapacityRatio":
            ratio = strategy.requested_to_capacity_ratio
            points = ratio.shape if ratio is not None else ()
            scale = MAX_NODE_SCORE // _CONFIG_MAX_SCORE
            return RequestedToCapacityRatio(tuple((p.utilization, p.score * scale) for p in points))
        case unknown:
            raise ValueError(f"scoring strategy {unknown} is not supported")


def _weighted_mean(usages: Sequence[Usage], per_resource: Callable[[Usage], int]) -> int:
    weights = sum(usage.weight for usage in usages)
    return sum(per_resource(usage) * usage.weight for usage in usages) // weights if weights else 0


def _weighted_mean_all(
    usages: Sequence[ColumnUsage], num_nodes: int, per_resource: Callable[[IntColumn, IntColumn], IntColumn]
) -> IntColumn:
    total: IntColumn | None = None
    missing: IntColumn | None = None  # weight of the resources that a node does not offer
    weights = 0
    for weight, capacity, requested in usages:
        # Where the capacity is 0 the quotient is 0 as well, so only the sum of the weights has to be corrected.
        score = per_resource(capacity, requested)
        if weight != 1:
            score *= weight
        total = score if total is None else total + score
        weights += weight
        absent = capacity == 0
        if absent.any():
            absent_weight = absent * np.int64(weight)
            missing = absent_weight if missing is None else missing + absent_weight
    if total is None:
        return np.zeros(num_nodes, np.int64)
    # One divisor for all nodes is the common case, and much cheaper than a column of them.
    return total // weights if missing is None else total // np.maximum(weights - missing, 1)


def _round_half_up(total: int, weights: int) -> int:
    # parity: math.Round of a float64 quotient; scores are not negative, so half goes up
    return math.floor(total / weights + 0.5)
