"""The incoming pod's own terms, as questions about the pods on nodes.

Several terms that one pod must match together become one question, because the conjunction of label selectors is a
label selector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.api import Pod
from scheduler.model.affinity import AffinityTerm
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces

__all__ = ["MATCHES_NOTHING", "Question", "conjunction", "matches_all", "question"]


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
