"""The incoming pod's own terms, as questions about the pods on nodes.

A term's namespace selector is turned into names once an attempt, and the names are kept until some namespace changes.
Several terms that one pod must match together become one question, because the conjunction of label selectors is a
label selector.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.api import Lister, Pod
from scheduler.model.affinity import AffinityTerm
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement, Namespace
from scheduler.model.selectors import label_selector_matches

__all__ = ["MATCHES_NOTHING", "Namespaces", "Question", "conjunction", "matches_all", "question"]

_NO_LABELS: Mapping[str, str] = {}
_MAX_KEPT = 256


@dataclass(frozen=True, slots=True)
class Question:
    """Which pods are meant.

    Attributes:
        namespaces: the namespaces they are in; None: any.
        selector: what their labels match; None matches nothing.
    """

    namespaces: frozenset[str] | None
    selector: LabelSelector | None

    def selects(self, pod: Pod) -> bool:
        """Say whether ``pod`` is one of them."""
        if self.namespaces is not None and pod.metadata.namespace not in self.namespaces:
            return False
        return label_selector_matches(self.selector, pod.metadata.labels)


MATCHES_NOTHING = Question(frozenset(), None)


class Namespaces:
    """What the plugin knows of namespaces."""

    __slots__ = ("_kept", "_lister", "_version")

    def __init__(self, lister: Lister[Namespace]) -> None:
        self._lister = lister
        self._kept: dict[Hashable, frozenset[str] | None] = {}
        self._version = -1

    def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace; none if it is not known."""
        namespace = self._lister.get(name)
        return namespace.metadata.labels if namespace is not None else _NO_LABELS

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
            self._version = self._lister.version
        if term not in self._kept:
            self._kept[term] = term.namespaces | self._selected(selector)
        return self._kept[term]

    def _selected(self, selector: LabelSelector) -> frozenset[str]:
        known = self._lister.list()
        return frozenset(n.metadata.name for n in known if label_selector_matches(selector, n.metadata.labels))


def question(term: AffinityTerm, namespaces: Namespaces) -> Question:
    """Return which pods a term of the incoming pod means."""
    return Question(namespaces.of(term), term.selector)


def conjunction(questions: Sequence[Question]) -> Question:
    """Return which pods are meant by all of ``questions``, of which there must be one."""
    first, *others = questions
    for other in others:
        first = _both(first, other)
    return first


def _both(a: Question, b: Question) -> Question:
    if a.selector is None or b.selector is None:
        return MATCHES_NOTHING
    if a.namespaces is None or b.namespaces is None:
        namespaces = b.namespaces if a.namespaces is None else a.namespaces
    else:
        namespaces = a.namespaces & b.namespaces
    if a.selector is b.selector:
        return Question(namespaces, a.selector)
    expressions = (*a.selector.match_expressions, *b.selector.match_expressions, *_as_expressions(b.selector))
    return Question(namespaces, LabelSelector(a.selector.match_labels, expressions))


def _as_expressions(selector: LabelSelector) -> list[LabelSelectorRequirement]:
    """Return the demanded labels as expressions: two selectors may demand different values of one key."""
    return [LabelSelectorRequirement(key, "In", (value,)) for key, value in selector.match_labels.items()]


class _Selects(Protocol):
    def selects(self, pod: Pod) -> bool: ...


def matches_all(questions: Sequence[_Selects], pod: Pod) -> bool:
    """Say whether ``pod`` is meant by all of ``questions``; parity: not if there are none."""
    return bool(questions) and all(question.selects(pod) for question in questions)
