"""Bounds on what is kept about values that tenants write: in bytes, not only in entries.

A cache of a few thousand entries is small as long as its keys are. Somebody who makes and deletes pods of a megabyte
each would otherwise leave gigabytes behind in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TypeVar

from scheduler.model.meta import LabelSelector

__all__ = ["MAX_KEPT_CHARS", "Kept", "kept_for_short", "selector_weight"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
R = TypeVar("R")

MAX_KEPT_CHARS = 512
"""Longer than any name, label key or label value that the API server accepts."""


def kept_for_short(maxsize: int) -> Callable[[Callable[[str], R]], Callable[[str], R]]:
    """Return a decorator that keeps the answers to the ``maxsize`` short texts that were asked about last."""

    def decorate(function: Callable[[str], R]) -> Callable[[str], R]:
        kept = functools.lru_cache(maxsize)(function)

        @functools.wraps(function)
        def answer(text: str) -> R:
            return kept(text) if len(text) <= MAX_KEPT_CHARS else function(text)

        return answer

    return decorate


class Kept(dict[K, V]):
    """A dictionary that forgets everything when it has grown past a number of entries or a weight.

    A weight counts labels, values or terms: what a tenant may have thousands of, some hundred bytes each.
    """

    __slots__ = ("_left", "_max_entries", "_max_weight")

    def __init__(self, max_entries: int, max_weight: int) -> None:
        super().__init__()
        self._max_entries = max_entries
        self._max_weight = self._left = max_weight

    def keep(self, key: K, value: V, weight: int) -> V:
        """Keep the value, perhaps instead of all others, and return it."""
        if len(self) >= self._max_entries or weight > self._left:
            self.clear()
        self._left -= weight
        self[key] = value
        return value

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._left = self._max_weight


def selector_weight(selector: LabelSelector | None) -> int:
    """Return how many labels and values a selector names."""
    if selector is None:
        return 0
    return len(selector.match_labels) + sum(1 + len(each.values) for each in selector.match_expressions)
