"""Term buckets: finds the terms that may select a pod without a look at all of them.

A term stands under each namespace that it names (under ``None`` if it has a namespace selector, which may select any),
and there under one label pair that a pod must have to be selected, if its selector demands one. So a pod meets the
terms that demand one of its own labels, and those that demand none. Of several pairs the one under which the fewest
terms stand is taken: ``pod-template-hash`` rather than ``tier``.

Invariant: every term that selects a pod is among the pod's candidates, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scheduler.model.meta import LabelSelector
from scheduler.state.index.carried import Carried

__all__ = ["TermBuckets"]

Pair = tuple[str, str]

_MAX_ALTERNATIVES = 8

# Dictionaries serve as ordered sets, so that answers do not depend on hashes.
_Terms = dict[Carried, None]


class _Namespace:
    """The terms for one namespace."""

    __slots__ = ("by_pair", "others")

    def __init__(self) -> None:
        self.by_pair: dict[Pair, _Terms] = {}
        self.others: _Terms = {}

    def choose(self, alternatives: Sequence[Sequence[Pair]]) -> Sequence[Pair]:
        """Return the alternative under which the fewest terms stand; nothing if there is none."""
        return min(alternatives, key=self._size, default=())

    def _size(self, pairs: Sequence[Pair]) -> int:
        return sum(len(self.by_pair.get(pair, ())) for pair in pairs)


class TermBuckets:
    """See the module."""

    __slots__ = ("_by_namespace", "_places")

    def __init__(self) -> None:
        self._by_namespace: dict[str | None, _Namespace] = {}
        self._places: dict[Carried, list[tuple[str | None, Sequence[Pair]]]] = {}

    def add(self, carried: Carried) -> None:
        """Put a term in."""
        term = carried.term
        assert term.selector is not None, "a term without a selector selects nothing"
        alternatives = _alternatives(term.selector)
        names = term.namespaces if term.namespace_selector is None else (None,)
        places = self._places[carried] = []
        for name in names:
            namespace = self._by_namespace.get(name)
            if namespace is None:
                namespace = self._by_namespace[name] = _Namespace()
            pairs = namespace.choose(alternatives)
            places.append((name, pairs))
            for pair in pairs:
                namespace.by_pair.setdefault(pair, {})[carried] = None
            if not pairs:
                namespace.others[carried] = None

    def remove(self, carried: Carried) -> None:
        """Take a term out."""
        for name, pairs in self._places.pop(carried):
            namespace = self._by_namespace[name]
            for pair in pairs:
                terms = namespace.by_pair[pair]
                del terms[carried]
                if not terms:
                    del namespace.by_pair[pair]
            if not pairs:
                del namespace.others[carried]
            if not namespace.by_pair and not namespace.others:
                del self._by_namespace[name]

    def candidates(self, name: str, labels: Mapping[str, str]) -> Iterator[Carried]:
        """Return the terms that may select a pod with these labels in this namespace."""
        for namespace in (self._by_namespace.get(name), self._by_namespace.get(None)):
            if namespace is None:
                continue
            if namespace.by_pair:
                for pair in labels.items():
                    terms = namespace.by_pair.get(pair)
                    if terms is not None:
                        yield from terms
            yield from namespace.others


def _alternatives(selector: LabelSelector) -> list[list[Pair]]:
    """Return sets of pairs; a pod that is selected has exactly one pair of each."""
    single = [[pair] for pair in selector.match_labels.items()]
    listed = [
        [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
        for requirement in selector.match_expressions
        if requirement.operator == "In" and 0 < len(requirement.values) <= _MAX_ALTERNATIVES
    ]
    return single + listed
