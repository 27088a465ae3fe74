"""Visible labels: what a set of label selectors can tell apart, so that one answer serves all pods that look alike.

A selector sees of a label whether it is there and whether its value is one of those that it names. So of a pod's labels
only those count whose key some selector names, and all values that none of them names are one and the same to it. A
cluster whose pods each have a label value of their own (a StatefulSet's pods, jobs) still looks to most selectors as if
it had a handful of kinds of pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from scheduler.model.bounds import Kept
from scheduler.model.meta import LabelSelector
from scheduler.model.selectors import label_selector_matches

__all__ = ["OTHER", "Pairs", "SelectorSet", "VisibleLabels"]

T = TypeVar("T", bound=Hashable)

Labels = Mapping[str, str]
Pairs = tuple[tuple[str, str], ...]

OTHER = "\0"
"""Stands for any value that no selector names; no valid label value and no valid selector has it."""

_FEW = 3
_SPARE = 16


class VisibleLabels:
    """The keys and values that some selectors name; they may come and go."""

    __slots__ = ("_keys", "_pairs")

    def __init__(self, selectors: Iterable[LabelSelector | None] = ()) -> None:
        self._keys: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()
        for selector in selectors:
            self.add(selector)

    def add(self, selector: LabelSelector | None) -> None:
        """Take in a selector, which must be valid."""
        for key, values in _named(selector):
            self._keys[key] += 1
            for value in values:
                self._pairs[key, value] += 1

    def remove(self, selector: LabelSelector | None) -> None:
        """Take out a selector that was taken in."""
        for key, values in _named(selector):
            _decrement(self._keys, key)
            for value in values:
                _decrement(self._pairs, (key, value))

    def of(self, labels: Labels) -> Pairs:
        """Return what the selectors see of these labels: any two sets of labels with equal answers match the same."""
        keys, pairs = self._keys, self._pairs
        if not keys or not labels:
            return ()
        seen = [pair if pair in pairs else (pair[0], OTHER) for pair in labels.items() if pair[0] in keys]
        if len(seen) > 1:
            seen.sort()
        return tuple(seen)


def _named(selector: LabelSelector | None) -> Iterator[tuple[str, Sequence[str]]]:
    if selector is not None:
        for key, value in selector.match_labels.items():
            yield key, (value,)
        for requirement in selector.match_expressions:
            yield requirement.key, requirement.values


def _decrement(counter: Counter[T], key: T) -> None:
    if counter[key] == 1:
        del counter[key]
    else:
        counter[key] -= 1


class SelectorSet:
    """Several selectors, all of which are asked about the same pods again and again.

    What is kept is bounded by the number of selectors: a waiting pod must not take many times the memory of its spec.

    Attributes:
        size: how many selectors there are.
        num_evaluated: how many times one of them was matched against labels; the answers are kept.
    """

    __slots__ = ("_all", "_kept", "_selectors", "_visible", "num_evaluated", "size")

    def __init__(self, selectors: Iterable[LabelSelector | None]) -> None:
        """Take valid selectors; None matches nothing."""
        self._selectors = tuple(selectors)
        self.size = len(self._selectors)
        self._visible = VisibleLabels(self._selectors) if self.size > _FEW else None
        self._all = (1 << self.size) - 1
        self._kept: Kept[Pairs, int] = Kept(_SPARE + self.size, 4 * (_SPARE + self.size))
        self.num_evaluated = 0

    def all_match(self, labels: Labels) -> bool:
        """Say whether every selector matches."""
        return self.matching(labels) == self._all

    def matching(self, labels: Labels) -> int:
        """Return which of the selectors match: bit ``i`` is set for the ``i``-th."""
        if self._visible is None:
            return self._evaluate(labels)
        seen = self._visible.of(labels)
        kept = self._kept.get(seen)
        return self._kept.keep(seen, self._evaluate(labels), 1 + len(seen)) if kept is None else kept

    def _evaluate(self, labels: Labels) -> int:
        self.num_evaluated += self.size
        matching = 0
        for i, selector in enumerate(self._selectors):
            if label_selector_matches(selector, labels):
                matching |= 1 << i
        return matching
