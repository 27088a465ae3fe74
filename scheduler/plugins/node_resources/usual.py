"""The usual numbers: CPU and memory of each node as the plugins of this folder compute with them, kept as columns.

What is free, used and offered is the same for every pod, so it is worked out once for a changed node and shared by the
filter and both scores. Integers up to 2**53 are exact in floats; a cluster with a node that offers no CPU or memory, or
more than ``MAX_EXACT_CAPACITY``, has no usual numbers, and the plugins compute with integer columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api import MAX_NODE_SCORE, FloatColumns, NodeFacts, NodesView, NodeView
from scheduler.model.requests import CPU, MEMORY, PODS
from scheduler.plugins.node_resources.bounded import MAX_EXACT_CAPACITY

__all__ = ["USUAL_RESOURCES", "Usual", "UsualResource", "balance", "usual"]

USUAL_RESOURCES = frozenset({CPU, MEMORY})

FloatColumn = NDArray[np.float64]


class UsualResource(NamedTuple):
    """One resource on all nodes.

    Attributes:
        capacity: what a node offers, at least 1.
        room: what is left of it; -1 on a node that has no place for another pod.
        hundredfold: 100 times what scores take to be left: containers that request nothing count, too.
        used: what is requested, at most the capacity.
    """

    capacity: FloatColumn
    room: FloatColumn
    hundredfold: FloatColumn
    used: FloatColumn


class Usual(NamedTuple):
    """All nodes.

    Attributes:
        places: for how many pods there is room.
        imbalance: 150 less the balance of CPU and memory, see ``balance``.
    """

    places: FloatColumn
    imbalance: FloatColumn
    cpu: UsualResource
    memory: UsualResource

    def of(self, resource: str) -> UsualResource:
        """Return CPU or memory."""
        return self.cpu if resource == CPU else self.memory


def usual(nodes: NodesView) -> Usual | None:
    """Return the numbers of all nodes of a view; None if there are none."""
    facts = nodes.facts(_FACTS)
    return None if facts is None else _latest.of(facts)


def balance(fractions: Sequence[float]) -> int:
    """Return 100 times (1 - the distance of two used fractions from their mean), rounded down."""
    return int((1 - abs((fractions[0] - fractions[1]) / 2)) * 100)


def _of_node(node: NodeView) -> tuple[float, ...] | None:
    allocatable, requested, used_for_scores = node.allocatable, node.requested, node.non_zero_requested
    cpu, memory = allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)
    if not (0 < cpu <= MAX_EXACT_CAPACITY and 0 < memory <= MAX_EXACT_CAPACITY):
        return None
    used_cpu, used_memory = min(requested.get(CPU, 0), cpu), min(requested.get(MEMORY, 0), memory)
    places = allocatable.get(PODS, 0) - node.num_pods
    # parity: both become floats before they are divided, as in Go and numpy
    fractions = float(used_cpu) / float(cpu), float(used_memory) / float(memory)
    return (
        places,
        150 - balance(fractions),
        cpu,
        cpu - used_cpu if places > 0 else -1,
        MAX_NODE_SCORE * (cpu - min(used_for_scores.get(CPU, 0), cpu)),
        used_cpu,
        memory,
        memory - used_memory if places > 0 else -1,
        MAX_NODE_SCORE * (memory - min(used_for_scores.get(MEMORY, 0), memory)),
        used_memory,
    )


class _Latest:
    """Takes columns apart, which is rarely done: from one decision to the next they are the same array."""

    def __init__(self) -> None:
        self._kept: tuple[FloatColumns, Usual] | None = None

    def of(self, facts: FloatColumns) -> Usual:
        kept = self._kept
        if kept is None or kept[0] is not facts:
            places, imbalance, *columns = facts
            numbers = Usual(places, imbalance, UsualResource(*columns[:4]), UsualResource(*columns[4:]))
            kept = self._kept = facts, numbers
        return kept[1]


_FACTS = NodeFacts(10, _of_node)
_latest = _Latest()
