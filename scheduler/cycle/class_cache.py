"""Class cache: pods that are equal as far as plugins look share one ranking of the nodes.

A Deployment makes a hundred pods that differ in nothing that a scheduling rule reads. For the first of them all nodes
are filtered and scored; after that only nodes that changed since are looked at again, usually the one node that got the
last pod. The ranking is kept as columns (who fits, raw and normalized scores, totals), so choosing is one argmax.

    key of the pod unknown ──▶ ordinary way, key noted ──▶ seen again: ordinary way, ranking kept
    ranking kept ──▶ coupled plugins Skip? changed rows few? ──▶ judge those rows, renormalize if need be, choose

What must hold for the ranking to be what the ordinary way would give: the pod's *local* plugins depend on its key and
single nodes alone, all others Skip (``framework.reuse``), no nomination and no extender takes part, and all nodes are
looked at. Otherwise the ordinary way is taken. Design and rejected alternatives: docs/design/0006-class-cache.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.api import BoolColumn, CycleState, IntColumn, Pod
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.feasible import num_nodes_to_find
from scheduler.framework.reuse import Judgement, Ranking, ReusePoint, are_in_range
from scheduler.framework.scoring import Scores
from scheduler.state.cache.snapshot import Snapshot

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["ClassCache"]

_MAX_CLASSES = 64
_MAX_SEEN = 1024
# Beyond this share of changed rows a fresh ranking costs less than mending the kept one.
_MAX_CHANGED_SHARE = 0.1
# After so many pods in a row whose class was not kept, only every eighth pod is looked up: where no two pods are alike,
# looking for their like is wasted time.
_COLD_AFTER = 128
_COLD_STRIDE = 8


class ClassCache:
    """The kept rankings of one engine, least recently used first; with ``max_classes`` 0 nothing is shared.

    Attributes:
        hits: attempts that were decided from a kept ranking.
    """

    def __init__(self, max_classes: int = _MAX_CLASSES) -> None:
        self.hits = 0
        self._misses_in_row = 0
        self._max_classes = max_classes
        self._classes: OrderedDict[Hashable, _Class] = OrderedDict()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._classes)

    def clear(self) -> None:
        """Forget everything: the plugins of a profile are others now."""
        self._classes.clear()
        self._seen.clear()

    def key_of(self, engine: Scheduler, attempt: Attempt) -> Hashable | None:
        """Return the class of the pod; None if nothing can be shared in this attempt."""
        framework, pod = attempt.framework, attempt.pod
        if not self._max_classes or not framework.reuse.is_available:
            return None
        if engine.extenders or engine.queue.nominated_nodes:
            return None
        self._misses_in_row += 1
        if self._misses_in_row > _COLD_AFTER and self._misses_in_row % _COLD_STRIDE:
            return None
        size = len(attempt.nodes)
        if pod.status.nominated_node_name or num_nodes_to_find(engine, framework, size) < size:
            return None
        signature = framework.reuse.key(pod)
        return None if signature is None else (framework.profile_name, signature)

    def try_reuse(self, key: Hashable, engine: Scheduler, attempt: Attempt) -> bool:
        """Choose from the ranking kept for ``key``; False if there is none or it does not hold any more."""
        kept = self._classes.get(key)
        if kept is None:
            return False
        if not kept.catch_up(engine.snapshot, attempt):
            del self._classes[key]
            return False
        if not kept.num_fitting or not kept.reuse.is_apart(attempt.state, attempt.pod, attempt.nodes):
            return False
        self._classes.move_to_end(key)
        self.hits += 1
        self._misses_in_row = 0
        kept.choose(engine, attempt)
        return True

    def remember(self, key: Hashable, engine: Scheduler, attempt: Attempt) -> None:
        """Keep the ranking that an ordinary attempt has just made, if its class has been seen before."""
        if attempt.scores is None or key in self._classes:
            return
        if key not in self._seen:
            self._seen[key] = None
            if len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)
            return
        made = _Class.of(engine.snapshot, attempt)
        if made is not None:
            self._classes[key] = made
            if len(self._classes) > self._max_classes:
                self._classes.popitem(last=False)


class _Class:
    """One ranking.

    Attributes:
        reuse: the profile's plugins.
        num_fitting: nodes that the pod fits.
    """

    def __init__(
        self, snapshot: Snapshot, reuse: ReusePoint, state: CycleState, fits: BoolColumn, raw: list[IntColumn]
    ) -> None:
        self.reuse = reuse
        self.num_fitting = int(np.count_nonzero(fits))
        self._state = state
        self._rankings: list[Ranking] = reuse.rankings(state)
        self._generation = snapshot.generation
        self._images_generation = snapshot.images_generation
        self._fits = fits
        self._raw = raw
        self._normalized = [
            column if ranking.normalizes is False else column.copy() for column, ranking in self._pairs()
        ]
        self._totals = np.zeros(len(fits), np.int64)

    @classmethod
    def of(cls, snapshot: Snapshot, attempt: Attempt) -> _Class | None:
        """Return the ranking of a finished ordinary attempt over all nodes, or None if it cannot be shared."""
        reuse, pod, state = attempt.framework.reuse, attempt.pod, attempt.state
        if attempt.pre_filter is None or attempt.pre_filter.node_names is not None:
            return None
        if not reuse.was_apart(state):
            return None
        fits = np.zeros(len(snapshot), np.bool_)
        fits[attempt.feasible] = True
        made = cls(snapshot, reuse, state, fits, reuse.raw_scores(state, pod, snapshot))
        return made if made._rank_all(snapshot, pod, set(range(len(made._rankings)))) else None

    def catch_up(self, snapshot: Snapshot, attempt: Attempt) -> bool:
        """Bring the ranking up to the snapshot; False if it must be made anew."""
        if snapshot.images_generation != self._images_generation:
            return False
        rows = snapshot.changed_rows_since(self._generation)
        if rows is None or len(rows) > max(2, len(self._fits) * _MAX_CHANGED_SHARE):
            return False
        self._share(attempt)
        changed: set[int] = set()
        if len(rows):
            judged = self.reuse.judge(attempt.state, attempt.pod, snapshot.take(rows))
            if judged is None:
                return False
            for row, judgement in zip(rows.tolist(), judged, strict=True):
                changed |= self._note(row, judgement)
        self._generation = snapshot.generation
        return self._rank_all(snapshot, attempt.pod, changed) if changed else self._rank_rows(rows)

    def choose(self, engine: Scheduler, attempt: Attempt) -> None:
        """Fill in the node of the attempt, and what an observer may want to see."""
        totals = self._totals
        best = np.flatnonzero(totals == totals[totals.argmax()])
        attempt.node_name = engine.snapshot.names[engine.choose(engine.snapshot, best, engine.random)]
        attempt.num_evaluated = len(totals)
        if engine.observer is not None:
            self._show(attempt, best)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _pairs(self) -> Iterator[tuple[IntColumn, Ranking]]:
        return zip(self._raw, self._rankings, strict=True)

    def _share(self, attempt: Attempt) -> None:
        """Give the attempt the plugins' state of the class, which is what they would write for this pod."""
        attempt.state.adopt(self._state)

    def _note(self, row: int, judgement: Judgement) -> set[int]:
        """Take in one node's judgement; returns the rankings whose normalization it may change."""
        changed: set[int] = set()
        is_new = bool(self._fits[row]) != judgement.fits
        if is_new:
            self._fits[row] = judgement.fits
            self.num_fitting += 1 if judgement.fits else -1
        for i, (score, ranking) in enumerate(zip(judgement.raw, self._rankings, strict=True)):
            if ranking.normalizes and (is_new or (judgement.fits and self._raw[i][row] != score)):
                changed.add(i)
            self._raw[i][row] = score
        return changed

    def _rank_rows(self, rows: NDArray[np.intp]) -> bool:
        """Add up single rows; those plugins that normalize have not changed there."""
        for row in rows.tolist():
            if not self._fits[row]:
                self._totals[row] = -1
                continue
            total = 0
            for column, ranking in zip(self._normalized, self._rankings, strict=True):
                score = int(column[row])
                if not 0 <= score <= 100:
                    return False
                total += score * ranking.weight
            self._totals[row] = total
        return True

    def _rank_all(self, snapshot: Snapshot, pod: Pod, changed: set[int]) -> bool:
        """Normalize the changed rankings again and add everything up; False if a score leaves 0..100."""
        rows = np.flatnonzero(self._fits)
        view = snapshot.take(rows)
        self._totals[:] = 0
        for i, (raw, ranking) in enumerate(self._pairs()):
            if ranking.normalizes and i in changed:
                normalized = self.reuse.normalize(ranking.name, self._state, pod, view, raw[rows])
                if normalized is None:
                    return False
                self._normalized[i][rows] = normalized
            elif not ranking.normalizes and not are_in_range(raw[rows]):
                return False
            self._totals += self._normalized[i] * ranking.weight
        self._totals[~self._fits] = -1
        return True

    def _show(self, attempt: Attempt, best: NDArray[np.intp]) -> None:
        rows = np.flatnonzero(self._fits)
        by_plugin = [(r.name, r.weight, c[rows]) for c, r in zip(self._normalized, self._rankings, strict=True)]
        attempt.feasible = rows
        attempt.scores = Scores(attempt.nodes.take(rows), by_plugin, self._totals[rows])
        attempt.best = np.searchsorted(rows, best)
