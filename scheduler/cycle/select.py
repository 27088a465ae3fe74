"""Select: one node among the best.

differs: upstream's heap leaves ties to the order of the filter's threads; here the choice among equals is uniform, from
the injected Random, so that a seed reproduces a run (decision "ties").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.api import IntColumn, NodesView, Random
from scheduler.cycle.attempt import Attempt

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["Choice", "best_rows", "choose_smallest_name", "choose_uniformly", "select_node"]

Rows = Sequence[int] | NDArray[np.intp]
Choice = Callable[[NodesView, Rows, Random], int]
"""``choose(nodes, best, random)``: one of the rows ``best`` (never empty, ascending) of ``nodes``."""


def select_node(engine: Scheduler, attempt: Attempt) -> None:
    """Fill in the chosen node of a scored attempt."""
    scores = attempt.scores
    assert scores is not None
    attempt.best = best_rows(scores.totals)
    chosen = engine.choose(scores.nodes, attempt.best, engine.random)
    # By way of the snapshot's row: the names of a narrowed view would be gathered for this one look-up.
    attempt.node_name = attempt.nodes.names[int(attempt.feasible[chosen])]


def best_rows(totals: IntColumn) -> NDArray[np.intp]:
    """Return the rows with the highest total."""
    first = int(totals.argmax())
    is_best = totals == totals[first]
    if np.count_nonzero(is_best) == 1:
        return np.array((first,), np.intp)  # the common case, cheaper than collecting
    rows: NDArray[np.intp] = is_best.nonzero()[0]
    return rows


def choose_uniformly(nodes: NodesView, best: Rows, random: Random) -> int:
    """Choose with equal chances."""
    del nodes
    return int(best[random.randrange(len(best))] if len(best) > 1 else best[0])


def choose_smallest_name(nodes: NodesView, best: Rows, random: Random) -> int:
    """Choose the first by name; for comparisons with the oracle."""
    del random
    return min(map(int, best), key=lambda row: nodes.names[row])
