"""Standing: which standing answers are kept, for how long, and for whom (see ``framework.standing``).

    key unknown ──▶ noted ──▶ seen again: the plugins are asked about all nodes, answers kept
    answers kept ──▶ node objects replaced? ──▶ those nodes say the same? ──▶ used

Everything is asked anew after a new order of the nodes, many replaced nodes, or a change of how many have an image.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from scheduler.api import Pod
from scheduler.framework.runtime import Framework
from scheduler.framework.standing import Answers
from scheduler.state.cache.snapshot import Snapshot

__all__ = ["StandingAnswers"]

_MAX_KEYS = 64
# Beyond so many replaced nodes asking about all by columns costs less.
_MAX_REPLACED = 16
# Plugins that could not answer for a key are not bothered again for so many pods.
_PAUSE = 64

Key = tuple[Hashable | None, ...]


class StandingAnswers:
    """The kept answers of one engine, least recently used first; with ``max_keys`` 0 nothing is kept."""

    def __init__(self, max_keys: int = _MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._kept: OrderedDict[tuple[str, Key], _Kept] = OrderedDict()

    def clear(self) -> None:
        """Forget everything: the plugins of a profile are others now."""
        self._kept.clear()

    def of(self, framework: Framework, key: Key | None, pod: Pod, snapshot: Snapshot) -> Answers | None:
        """Return what need not be asked for this pod, with rows of ``snapshot``; None if everything must be."""
        if key is None or not self._max_keys:
            return None
        whole = (framework.profile_name, key)
        kept = self._kept.get(whole)
        if kept is None:
            self._kept[whole] = _Kept()
            if len(self._kept) > self._max_keys:
                self._kept.popitem(last=False)
            return None
        self._kept.move_to_end(whole)
        return kept.answers(framework, key, pod, snapshot)


class _Kept:
    """The answers for one key, if there are any yet."""

    __slots__ = ("_answers", "_generation", "_images_generation", "_pause")

    def __init__(self) -> None:
        self._answers: Answers | None = None
        self._generation = 0
        self._images_generation = 0
        self._pause = 0

    def answers(self, framework: Framework, key: Key, pod: Pod, snapshot: Snapshot) -> Answers | None:
        if self._answers is None or not self._still_hold(self._answers, framework, pod, snapshot):
            self._answers = self._ask(framework, key, pod, snapshot)
        self._generation = snapshot.generation
        self._images_generation = snapshot.images_generation
        return self._answers

    def _still_hold(self, answers: Answers, framework: Framework, pod: Pod, snapshot: Snapshot) -> bool:
        if snapshot.images_generation != self._images_generation:
            return False
        rows = snapshot.renewals_since(self._generation)
        if rows is None or len(rows) > _MAX_REPLACED:
            return False
        return not rows or framework.standing.holds(answers, pod, rows, snapshot.infos)

    def _ask(self, framework: Framework, key: Key, pod: Pod, snapshot: Snapshot) -> Answers | None:
        if self._pause:
            self._pause -= 1
            return None
        answers = framework.standing.ask(key, pod, snapshot)
        if answers is None:
            self._pause = _PAUSE
        return answers
