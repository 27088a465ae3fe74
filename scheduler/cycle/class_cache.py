"""Class cache: pods that are equal as far as plugins look share one ranking of the nodes.

A Deployment makes a hundred pods that differ in nothing that a scheduling rule reads. For the first of them all nodes
are filtered and scored; after that only nodes that changed since are looked at again, usually the one node that got the
last pod. The ranking is kept as columns (who fits, raw and normalized scores) and totals that know their best rows.

    key of the pod unknown ──▶ ordinary way, key noted ──▶ seen again: ordinary way, ranking kept
    ranking kept ──▶ changed rows few? ──▶ judge those rows, renormalize if need be ──▶ ask coupled plugins ──▶ choose

What must hold for the ranking to be what the ordinary way would give: the pod's *local* plugins depend on its key and
single nodes alone (``framework.reuse``), no nomination and no extender takes part, and all nodes are looked at.
Otherwise the ordinary way is taken. Plugins that look further than single nodes, as spread and affinity do, are
*coupled*: they are asked in each attempt, and what they say is put on top of the ranking.
Design and rejected alternatives: docs/design/0006-class-cache.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scheduler.api import MAX_NODE_SCORE, BoolColumn, CycleState, IntColumn, Pod
from scheduler.cycle.attempt import Attempt
from scheduler.cycle.leaders import NO_TOTAL, Leaders
from scheduler.cycle.ranked import Ranked
from scheduler.framework.columns import are_in_range
from scheduler.framework.reuse import Ranking, ReusePoint
from scheduler.state.cache.snapshot import Snapshot

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["ClassCache", "ClassKey"]

_MAX_CLASSES = 64
_MAX_SEEN = 1024
# Beyond this share of changed rows a fresh ranking costs less than mending the kept one.
_MAX_CHANGED_SHARE = 0.1
# After so many pods in a row whose class was not kept, only every eighth pod is looked up: where no two pods are alike,
# looking for their like is wasted time.
_COLD_AFTER = 128
_COLD_STRIDE = 8
# So many changed rows are judged by the per-node forms, which then cost less than columns.
_FEW = 6

ClassKey = tuple[str, tuple[Hashable | None, ...]]
"""Profile and signatures: what pods of one class have in common."""


class ClassCache:
    """The kept rankings of one engine, least recently used first; with ``max_classes`` 0 nothing is shared.

    Attributes:
        hits: attempts that were decided from a kept ranking.
    """

    def __init__(self, max_classes: int = _MAX_CLASSES) -> None:
        self.hits = 0
        self._misses_in_row = 0
        self._max_classes = max_classes
        self._classes: OrderedDict[ClassKey, _Class] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._latest: _Class | None = None

    def __len__(self) -> int:
        return len(self._classes)

    def clear(self) -> None:
        """Forget everything: the plugins of a profile are others now."""
        self._classes.clear()
        self._seen.clear()
        self._latest = None

    def key_of(self, attempt: Attempt, standing: tuple[Hashable | None, ...]) -> ClassKey | None:
        """Return the class of the pod, whose standing key is given; None if none is to be looked up for it."""
        framework, pod = attempt.framework, attempt.pod
        if not self._max_classes or not framework.reuse.is_available:
            return None
        self._misses_in_row += 1
        if self._misses_in_row > _COLD_AFTER and self._misses_in_row % _COLD_STRIDE:
            return None
        signature = framework.reuse.key(standing, pod)
        return None if signature is None else (framework.profile_name, signature)

    def try_reuse(self, key: ClassKey, engine: Scheduler, attempt: Attempt) -> bool:
        """Choose from the ranking kept for ``key``; False if there is none or it does not hold any more."""
        kept = self._classes.get(key)
        if kept is None:
            return False
        if not kept.catch_up(engine.snapshot, attempt):
            del self._classes[key]
            return False
        if not kept.num_fitting or not kept.decide(engine, attempt):
            return False
        if kept is not self._latest:
            self._classes.move_to_end(key)
            self._latest = kept
        self.hits += 1
        self._misses_in_row = 0
        return True

    def remember(self, key: ClassKey, engine: Scheduler, attempt: Attempt) -> None:
        """Keep the ranking that an ordinary attempt has just made, if its class has been seen before."""
        if attempt.scores is None or key in self._classes:
            return
        # The hash will do: of two that share one, the other's ranking is kept a pod earlier. The key may be a megabyte.
        digest = hash(key)
        if digest not in self._seen:
            self._seen[digest] = None
            if len(self._seen) > _MAX_SEEN:
                self._seen.popitem(last=False)
            return
        made = _Class.of(key, engine.snapshot, attempt)
        if made is not None:
            self._classes[key] = self._latest = made
            if len(self._classes) > self._max_classes:
                self._classes.popitem(last=False)


class _Class(Ranked):
    """One ranking."""

    def __init__(  # noqa: PLR0917  what one finished attempt left
        self,
        key: ClassKey,
        snapshot: Snapshot,
        reuse: ReusePoint,
        state: CycleState,
        columns: tuple[BoolColumn, BoolColumn],
        raw: list[IntColumn],
    ) -> None:
        stands, fits = columns
        super().__init__(reuse, reuse.coupled(key[1]), state, reuse.rankings(state), fits)
        self._judge = reuse.judge(state)
        self._generation = snapshot.generation
        self._images_generation = snapshot.images_generation
        self._stands = stands
        self._raw = raw
        self._normalized = [
            column if ranking.normalizes is False else column.copy() for column, ranking in self._pairs()
        ]

    @classmethod
    def of(cls, key: ClassKey, snapshot: Snapshot, attempt: Attempt) -> _Class | None:
        """Return the ranking of a finished ordinary attempt over all nodes, or None if it cannot be shared."""
        reuse, pod = attempt.framework.reuse, attempt.pod
        if attempt.pre_filter is not None and attempt.pre_filter.node_names is not None:
            return None
        if not reuse.coupled(key[1]).have_skipped(attempt.state):
            return None
        state = reuse.guarded(reuse.local_state, key[1], pod, snapshot)
        if state is None:
            return None
        judge = reuse.judge(state)
        verdicts = reuse.guarded(judge.verdicts, state, pod, snapshot)
        raw = reuse.guarded(judge.raw_scores, state, pod, snapshot)
        if verdicts is None or raw is None:
            return None
        stands, moves = verdicts
        made = cls(key, snapshot, reuse, state, (stands, stands & moves), raw)
        return made if made._rank_all(snapshot, pod, set(range(len(made._rankings)))) else None

    def catch_up(self, snapshot: Snapshot, attempt: Attempt) -> bool:
        """Bring the ranking up to the snapshot; False if it must be made anew."""
        if snapshot.images_generation != self._images_generation:
            return False
        rows = snapshot.changes_since(self._generation)
        renewed = snapshot.renewals_since(self._generation)
        if rows is None or renewed is None or len(rows) > max(2, len(self._fits) * _MAX_CHANGED_SHARE):
            return False
        if rows:
            judge = self._judge_few if len(rows) <= _FEW else self._judge_many
            changed = self._reuse.guarded(judge, snapshot, attempt, rows, renewed)
            if changed is None:
                return False
            if not (self._rank_all(snapshot, attempt.pod, changed) if changed else self._rank_rows(rows)):
                return False
        self._generation = snapshot.generation
        return True

    # --- inside ------------------------------------------------------------------------------------------------------

    def _columns(self) -> Iterator[tuple[Ranking, IntColumn, IntColumn]]:
        return zip(self._rankings, self._raw, self._normalized, strict=True)

    def _totals(self, rows: NDArray[np.intp]) -> IntColumn:
        totals = self._leaders.totals
        return totals.copy() if len(rows) == len(totals) else totals[rows]

    def _best(self) -> Sequence[int]:
        return self._leaders.best()

    def _pairs(self) -> Iterator[tuple[IntColumn, Ranking]]:
        return zip(self._raw, self._rankings, strict=True)

    def _judge_few(
        self, snapshot: Snapshot, attempt: Attempt, rows: Sequence[int], renewed: Sequence[int]
    ) -> set[int] | None:
        """Judge rows one by one; returns the rankings to be normalized again, None if a row cannot be judged."""
        judge, state, pod, infos = self._judge, self._state, attempt.pod, snapshot.infos
        changed: set[int] = set()
        for row in rows:
            node = infos[row]
            is_renewed = row in renewed
            stands = judge.stands(state, pod, node) if is_renewed else self._stands.item(row)
            moves = judge.moves(state, pod, node)
            if stands is None or moves is None:
                return None
            self._stands[row] = stands
            scores = judge.scores(state, pod, node, moving_only=not is_renewed)
            self._note(row, stands and moves, scores, changed)
        return changed

    def _judge_many(
        self, snapshot: Snapshot, attempt: Attempt, rows: Sequence[int], renewed: Sequence[int]
    ) -> set[int] | None:
        """Do what ``_judge_few`` does by columns."""
        del renewed
        view = snapshot.take(np.array(rows, np.intp))
        verdicts = self._judge.verdicts(self._state, attempt.pod, view)
        if verdicts is None:
            return None
        stands, moves = verdicts
        self._stands[rows] = stands
        columns = [scores.tolist() for scores in self._judge.raw_scores(self._state, attempt.pod, view)]
        changed: set[int] = set()
        for i, (row, fits) in enumerate(zip(rows, (stands & moves).tolist(), strict=True)):
            self._note(row, fits, [(k, column[i]) for k, column in enumerate(columns)], changed)
        return changed

    def _note(self, row: int, fits: bool, scores: Iterable[tuple[int, int]], changed: set[int]) -> None:
        """Take in one row's judgement; adds the rankings whose normalization it may change."""
        is_new = self._fits.item(row) is not fits
        if is_new:
            self._fits[row] = fits
            self._fits_changed()
            self.num_fitting += 1 if fits else -1
            changed.update(i for i, ranking in enumerate(self._rankings) if ranking.normalizes)
        for i, score in scores:
            raw = self._raw[i]
            if fits and self._rankings[i].normalizes and raw.item(row) != score:
                changed.add(i)
            raw[row] = score

    def _rank_rows(self, rows: Sequence[int]) -> bool:
        """Add up single rows; those plugins that normalize have not changed there."""
        for row in rows:
            total = 0
            if self._fits.item(row):
                for column, ranking in zip(self._normalized, self._rankings, strict=True):
                    score = column.item(row)
                    if not 0 <= score <= MAX_NODE_SCORE:
                        return False
                    total += score * ranking.weight
            else:
                total = NO_TOTAL
            self._leaders.set(row, total)
        return True

    def _rank_all(self, snapshot: Snapshot, pod: Pod, changed: set[int]) -> bool:
        """Normalize the changed rankings again and add everything up; False if a score leaves 0..100."""
        rows = np.flatnonzero(self._fits)
        view = snapshot.take(rows)
        totals = np.zeros(len(self._fits), np.int64)
        for i, (raw, ranking) in enumerate(self._pairs()):
            if ranking.normalizes and i in changed:
                normalized = self._reuse.normalize(ranking.name, self._state, pod, view, raw[rows])
                if normalized is None:
                    return False
                self._normalized[i][rows] = normalized
            elif not ranking.normalizes and not are_in_range(raw[rows]):
                return False
            totals += self._normalized[i] * ranking.weight
        totals[~self._fits] = NO_TOTAL
        self._leaders = Leaders(totals)
        return True
