"""Standing: which standing answers are kept, for how long, and for whom (see ``framework.standing``).

    key unknown ──▶ noted ──▶ seen again: the plugins are asked about all nodes, answers kept
    answers kept ──▶ node objects replaced? ──▶ those nodes say the same? ──▶ used

They are used in two ways: as a ranking on which the other plugins' say is put (``cycle.ranked``), or, if something is
out of the ordinary and the extension points have to be gone through, in each plugin's turn.

Everything is asked anew after a new order of the nodes, many replaced nodes, or a change of how many have an image.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api import Pod, ScoreColumn
from scheduler.cycle.ranked import Ranked
from scheduler.framework.coupled import Coupled
from scheduler.framework.reuse import Ranking, ReusePoint
from scheduler.framework.runtime import Framework
from scheduler.framework.standing import Answers, KeptScores
from scheduler.state.cache.snapshot import Snapshot

if TYPE_CHECKING:
    from scheduler.cycle.schedule_one import Scheduler

__all__ = ["Known", "Standing", "StandingAnswers"]

_MAX_KEYS = 64
# Beyond so many replaced nodes asking about all by columns costs less.
_MAX_REPLACED = 16
# Plugins that could not answer for a key are not bothered again for so many pods.
_PAUSE = 64

Key = tuple[Hashable | None, ...]


class StandingAnswers:
    """The kept answers of one engine, least recently used first; with ``max_keys`` 0 nothing is kept.

    Attributes:
        hits: attempts that were decided from the ranking that kept answers make.
    """

    def __init__(self, max_keys: int = _MAX_KEYS) -> None:
        self.hits = 0
        self._max_keys = max_keys
        self._kept: OrderedDict[tuple[str, Key], _Kept] = OrderedDict()

    def clear(self) -> None:
        """Forget everything: the plugins of a profile are others now."""
        self._kept.clear()

    def of(self, framework: Framework, key: Key, pod: Pod, snapshot: Snapshot) -> Known | None:
        """Return what need not be asked for this pod, with rows of ``snapshot``; None if everything must be."""
        if not self._max_keys:
            return None
        whole = (framework.profile_name, key)
        kept = self._kept.get(whole)
        if kept is None:
            self._kept[whole] = _Kept()
            if len(self._kept) > self._max_keys:
                self._kept.popitem(last=False)
            return None
        self._kept.move_to_end(whole)
        return kept.known(framework, key, pod, snapshot)


class Known(NamedTuple):
    """What need not be asked.

    Attributes:
        answers: for the extension points, which take them in the plugins' turn.
        ranking: the same as a ranking to decide from at once; None if the ordinary way must be taken.
    """

    answers: Answers
    ranking: Standing | None


class Standing(Ranked):
    """Kept answers as a ranking, on top of which the plugins that read pods are asked."""

    def __init__(
        self,
        answers: Answers,
        coupled: Coupled,
        reuse: ReusePoint,
        columns: Mapping[str, KeptScores],
        totals: ScoreColumn,
    ) -> None:
        rankings = [ranking for ranking in reuse.rankings(answers.state) if ranking.name in columns]
        super().__init__(reuse, coupled, answers.state, rankings, answers.fits)
        self._kept = columns
        self._all_totals = totals

    @classmethod
    def of(cls, framework: Framework, answers: Answers, pod: Pod, snapshot: Snapshot) -> Standing | None:
        """Return the ranking that the answers make; None if it says nothing or a plugin fails."""
        coupled, reuse = answers.coupled, framework.reuse
        if coupled is None or not framework.is_whole_cluster:
            return None
        made = cls(answers, coupled, reuse, answers.scores, answers.weighted)
        return made if made.num_fitting == len(snapshot) or made._normalize(pod, snapshot) else None

    def _normalize(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Scale scores to the best row that fits, where the answers scale them to the best of all."""
        rows = self._fits.nonzero()[0]
        if not len(rows):
            return False
        totals = self._all_totals[rows]
        renewed = self._renormalize(rows, snapshot.take(rows), pod, totals)
        if renewed is None:
            return False
        self._all_totals = self._all_totals.copy()
        self._all_totals[rows] = totals
        kept = dict(self._kept)
        for name, scores in renewed.items():
            normalized = kept[name].normalized.copy()
            normalized[rows] = scores
            kept[name] = KeptScores(kept[name].raw, normalized)
        self._kept = kept
        return True

    def _must_explain(self, engine: Scheduler, rows: NDArray[np.intp]) -> bool:
        return engine.observer is not None and len(rows) < len(self._fits)

    def _columns(self) -> Iterator[tuple[Ranking, ScoreColumn, ScoreColumn]]:
        for ranking in self._rankings:
            kept = self._kept[ranking.name]
            yield ranking, kept.raw, kept.normalized

    def _totals(self, rows: NDArray[np.intp]) -> ScoreColumn:
        totals = self._all_totals
        return totals.copy() if len(rows) == len(totals) else totals[rows]


class _Kept:
    """The answers for one key, if there are any yet."""

    __slots__ = ("_generation", "_images_generation", "_known", "_pause")

    def __init__(self) -> None:
        self._known: Known | None = None
        self._generation = 0
        self._images_generation = 0
        self._pause = 0

    def known(self, framework: Framework, key: Key, pod: Pod, snapshot: Snapshot) -> Known | None:
        if self._known is None or not self._still_hold(self._known.answers, framework, pod, snapshot):
            self._known = self._ask(framework, key, pod, snapshot)
        self._generation = snapshot.generation
        self._images_generation = snapshot.images_generation
        return self._known

    def _still_hold(self, answers: Answers, framework: Framework, pod: Pod, snapshot: Snapshot) -> bool:
        if snapshot.images_generation != self._images_generation:
            return False
        rows = snapshot.renewals_since(self._generation)
        if rows is None or len(rows) > _MAX_REPLACED:
            return False
        return not rows or framework.standing.holds(answers, pod, rows, snapshot.infos)

    def _ask(self, framework: Framework, key: Key, pod: Pod, snapshot: Snapshot) -> Known | None:
        if self._pause:
            self._pause -= 1
            return None
        answers = framework.standing.ask(key, pod, snapshot)
        if answers is None:
            self._pause = _PAUSE
            return None
        return Known(answers, Standing.of(framework, answers, pod, snapshot))
