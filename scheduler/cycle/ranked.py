"""Ranked: a choice among all nodes of which much is known before the pod's other plugins are asked.

Whoever keeps what some plugins say of all nodes (``cycle.class_cache`` for equal pods, ``cycle.standing`` for pods that
request other amounts) decides here. The other plugins, called *coupled*, are asked about all nodes at once
(``framework.coupled``), and what they say is put on top of what is known.

    coupled PreFilter, Filter ─▶ feasible rows ─▶ fewer than fit? normalize anew ─▶ coupled scores ─▶ choose

Anything out of the ordinary (a rejection, an error, no node at all) is left to the ordinary way, which asks again and
finds the words for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, CycleState, IntColumn, NodesView, Pod, ScoreColumn
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.feasible import all_rows
from scheduler.cycle.select import select_node
from scheduler.framework.columns import add_weighted
from scheduler.framework.coupled import Coupled, Filtered
from scheduler.framework.reuse import Ranking, ReusePoint
from scheduler.framework.scoring import PluginScores, Scores

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["Ranked"]


class Ranked(ABC):
    """What is known of all nodes.

    Attributes:
        num_fitting: nodes that no known verdict rules out.
    """

    def __init__(
        self, reuse: ReusePoint, coupled: Coupled, state: CycleState, rankings: Sequence[Ranking], fits: BoolColumn
    ) -> None:
        """Make it.

        Args:
            reuse: the plugins of the profile.
            coupled: those that have to be asked.
            state: what the others wrote, and which of them Skip.
            rankings: the Score plugins whose scores are known.
            fits: which rows no known verdict rules out; whoever changes it tells ``_fits_changed``.
        """
        self._reuse = reuse
        self._coupled = coupled
        self._state = state
        self._rankings = rankings
        self._fits = fits
        self.num_fitting = int(np.count_nonzero(fits))
        self._fitting: NDArray[np.intp] | None = None

    @abstractmethod
    def _columns(self) -> Iterator[tuple[Ranking, ScoreColumn, ScoreColumn]]:
        """Yield each ranking with its raw scores and those normalized over the rows that fit."""

    @abstractmethod
    def _totals(self, rows: NDArray[np.intp]) -> ScoreColumn:
        """Return the weighted sums of the normalized scores of these rows; the caller may change the array."""

    def _must_explain(self, engine: Scheduler, rows: NDArray[np.intp]) -> bool:
        """Say whether somebody wants to hear why the other rows were left out, which only the ordinary way notes."""
        del engine, rows
        return False

    def _best(self) -> Sequence[int] | None:
        """Return the best of the rows that fit if they are known, else None."""
        return None

    def decide(self, engine: Scheduler, attempt: Attempt) -> bool:
        """Let the coupled plugins have their say and fill in the node; False: it is a case for the ordinary way."""
        nodes = engine.snapshot
        # A trial: should the ordinary way be taken after all, the plugins must not find what they said here.
        state = CycleState(record_plugin_metrics=attempt.state.record_plugin_metrics)
        state.adopt(attempt.state)
        state.adopt(self._state)
        filtered = self._reuse.guarded(self._coupled.filter, state, attempt.pod, nodes)
        if filtered is None:
            return False
        rows = self._feasible(filtered)
        if not len(rows) or self._must_explain(engine, rows):
            return False  # its reasons have to be worked out
        attempt.feasible = rows
        if len(rows) == 1:
            attempt.node_name = nodes.names[int(rows[0])]
        elif not self._choose(engine, attempt, state):
            attempt.feasible = rows[:0]  # the ordinary way has to find them itself
            return False
        attempt.num_evaluated = len(nodes)
        attempt.state.adopt(state)
        return True

    def _fits_changed(self) -> None:
        self._fitting = None

    def _feasible(self, filtered: Filtered) -> NDArray[np.intp]:
        """Return the rows on which both the known verdicts and the coupled plugins let the pod."""
        if filtered.ok is not None:
            size = len(self._fits)
            ok = filtered.ok if self.num_fitting == size else self._fits & filtered.ok
            if int(np.count_nonzero(ok)) < self.num_fitting:
                rows: NDArray[np.intp] = ok.nonzero()[0]
                return rows
        if self._fitting is None:
            size = len(self._fits)
            self._fitting = all_rows(size) if self.num_fitting == size else self._fits.nonzero()[0]
        return self._fitting

    def _choose(self, engine: Scheduler, attempt: Attempt, state: CycleState) -> bool:
        """Rank the feasible rows, of which there are several, and choose one; False if a plugin cannot say."""
        nodes, rows = engine.snapshot, attempt.feasible
        view = nodes if len(rows) == len(nodes) else nodes.take(rows)
        scored = self._reuse.guarded(self._coupled.score, state, attempt.pod, view, nodes, rows)
        if scored is None:
            return False
        is_narrowed = len(rows) < self.num_fitting
        if not is_narrowed and not scored and engine.observer is None:
            best = self._best()
            if best is not None:
                attempt.node_name = nodes.names[engine.choose(nodes, best, engine.random)]
                return True
        totals = self._totals(rows)
        renewed = self._renormalize(rows, view, attempt.pod, totals) if is_narrowed else {}
        if renewed is None:
            return False
        for _, weight, scores in scored:
            add_weighted(totals, scores, weight)
        shown = self._shown(rows, renewed, scored) if engine.observer is not None else []
        attempt.scores = Scores(view, shown, totals)
        select_node(engine, attempt)
        return True

    def _renormalize(
        self, rows: NDArray[np.intp], view: NodesView, pod: Pod, totals: ScoreColumn
    ) -> dict[str, IntColumn] | None:
        """Scale scores to the best of these rows, not of all that fit, and correct their totals; None if one cannot."""
        renewed: dict[str, IntColumn] = {}
        for ranking, raw, normalized in self._columns():
            if ranking.normalizes:
                scores = self._reuse.normalize(ranking.name, self._state, pod, view, raw[rows])
                if scores is None:
                    return None
                add_weighted(totals, scores - normalized[rows], ranking.weight)
                renewed[ranking.name] = scores
        return renewed

    def _shown(
        self, rows: NDArray[np.intp], renewed: dict[str, IntColumn], scored: Sequence[PluginScores]
    ) -> list[PluginScores]:
        """Return the normalized scores of all plugins, for an observer."""
        shown: list[PluginScores] = list(scored)
        for ranking, _, normalized in self._columns():
            shown.append((ranking.name, ranking.weight, renewed.get(ranking.name, normalized[rows])))
        return self._reuse.in_order(shown)
