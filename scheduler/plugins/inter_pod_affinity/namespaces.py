"""Namespaces: which of them a term means.

A term's namespace selector is turned into names once an attempt, and the names are kept until some namespace changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from scheduler.api import Lister
from scheduler.model.affinity import AffinityTerm
from scheduler.model.meta import LabelSelector, Namespace
from scheduler.model.selectors import label_selector_matches

__all__ = ["Namespaces"]

_NO_LABELS: Mapping[str, str] = {}
_NOBODY: frozenset[str] = frozenset()
_MAX_KEPT = 256


class Namespaces:
    """What the plugin knows of namespaces."""

    __slots__ = ("_by_label", "_kept", "_lister", "_version")

    def __init__(self, lister: Lister[Namespace]) -> None:
        self._lister = lister
        self._kept: dict[Hashable, frozenset[str] | None] = {}
        self._by_label: _ByLabel | None = None
        self._version = -1

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace; none if it is not known."""
        namespace = self._lister.get(name)
        return namespace.metadata.labels if namespace is not None else _NO_LABELS

    @property
    def version(self) -> int:
        """Return a number that changes with every change of a namespace."""
        return self._lister.version

    def means(self, term: AffinityTerm, name: str) -> bool:
        """Say whether ``of(term)`` has this namespace, without a look at all the others."""
        if name in term.namespaces:
            return True
        selector = term.namespace_selector
        if selector is None:
            return False
        if label_selector_matches(selector, _NO_LABELS):
            return True
        return self._lister.get(name) is not None and label_selector_matches(selector, self.labels(name))

    def of(self, term: AffinityTerm) -> frozenset[str] | None:
        """Return the names of the namespaces that the term of an incoming pod means; None for all."""
        selector = term.namespace_selector
        if selector is None:
            return term.namespaces
        # parity: a selector that holds for a namespace without labels (an empty one, or one that only excludes) is
        # taken to hold for all: upstream asks it about no labels too after it has turned it into names.
        if label_selector_matches(selector, _NO_LABELS):
            return None
        if self._version != self._lister.version or len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
            self._by_label = self._by_label if self._version == self._lister.version else None
            self._version = self._lister.version
        if term not in self._kept:
            self._kept[term] = term.namespaces | self._selected(selector)
        return self._kept[term]

    def _selected(self, selector: LabelSelector) -> frozenset[str]:
        if self._by_label is None:
            self._by_label = _ByLabel(self._lister.list())
        return self._by_label.select(selector)


class _ByLabel:
    """Namespaces by their labels: a selector costs a few operations on sets, however many there are."""

    __slots__ = ("_all", "_by_key", "_by_pair")

    def __init__(self, known: Iterable[Namespace]) -> None:
        self._all = frozenset(namespace.metadata.name for namespace in known)
        self._by_pair: dict[tuple[str, str], set[str]] = {}
        self._by_key: dict[str, set[str]] = {}
        for namespace in known:
            for pair in namespace.metadata.labels.items():
                self._by_pair.setdefault(pair, set()).add(namespace.metadata.name)
                self._by_key.setdefault(pair[0], set()).add(namespace.metadata.name)

    def select(self, selector: LabelSelector) -> frozenset[str]:
        """Return the names of the namespaces that a valid selector matches."""
        names = self._all
        for pair in selector.match_labels.items():
            names &= self._by_pair.get(pair, _NOBODY)
        for requirement in selector.match_expressions:
            key = requirement.key
            match requirement.operator:
                case "In":
                    names &= self._with(key, requirement.values)
                case "NotIn":
                    names -= self._with(key, requirement.values)
                case "Exists":
                    names &= self._by_key.get(key, _NOBODY)
                case _:
                    names -= self._by_key.get(key, _NOBODY)
        return names

    def _with(self, key: str, values: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self._by_pair.get((key, value), _NOBODY) for value in values))
