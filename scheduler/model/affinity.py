"""Affinity terms: the pod (anti-)affinity of a pod in the form in which it is evaluated.

A term as the API has it leaves things to the reader: which namespaces it means, whether its selectors make sense.
Here that is settled once a pod. Terms that mean the same are equal and hash alike, whoever carries them, so that
replicas of a workload carry one and the same term.

Source: ``AffinityTerm`` and ``GetAffinityTerms`` in ``kube-scheduler/framework/types.go``, ``PodInfo.Update`` in
``pkg/scheduler/framework/types.go`` v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scheduler.model.bounds import selector_weight
from scheduler.model.meta import LabelSelector
from scheduler.model.selectors import label_selector_matches, validate_label_selector

if TYPE_CHECKING:
    from scheduler.model.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm

__all__ = ["NO_TERMS", "AffinityTerm", "PodAffinityTerms", "WeightedTerm", "pod_affinity_terms"]


class AffinityTerm:
    """Which pods, in which namespaces, over which topology; an immutable value.

    Attributes:
        namespaces: names that count beside those that ``namespace_selector`` selects.
        namespace_selector: selects namespaces by label; None selects none, an empty one all.
        selector: selects pods by label; None selects none, an empty one all.
        topology_key: the node label whose values are the domains.
    """

    __slots__ = ("_hash", "_identity", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(
        self,
        namespaces: frozenset[str],
        namespace_selector: LabelSelector | None,
        selector: LabelSelector | None,
        topology_key: str,
    ) -> None:
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self.selector = selector
        self.topology_key = topology_key
        self._identity = (topology_key, _identity(selector), namespaces, _identity(namespace_selector))
        self._hash = hash(self._identity)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, AffinityTerm) and self._hash == other._hash and self._identity == other._identity

    def __repr__(self) -> str:
        return f"AffinityTerm{self._identity}"

    @property
    def weight(self) -> int:
        """Return how much there is of the term: namespaces, labels and values, and the term itself."""
        named = selector_weight(self.selector) + selector_weight(self.namespace_selector)
        return 1 + len(self.namespaces) + named

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Say whether the term selects a pod with these labels in this namespace, which has ``namespace_labels``."""
        if namespace not in self.namespaces and not label_selector_matches(self.namespace_selector, namespace_labels):
            return False
        return label_selector_matches(self.selector, labels)


class WeightedTerm(NamedTuple):
    """A preference; ``weight`` is 1..100."""

    term: AffinityTerm
    weight: int


class PodAffinityTerms(NamedTuple):
    """All terms of one pod.

    Attributes:
        required_affinity: the pod must be near pods that match all of these.
        required_anti_affinity: the pod must not be near a pod that matches one of these.
        preferred_affinity: it is good to be near pods that match.
        preferred_anti_affinity: it is bad to be near pods that match.
        problem: what cannot be understood, in upstream's words; None if all can. A list with such a term is empty.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedTerm, ...] = ()
    problem: str | None = None


NO_TERMS = PodAffinityTerms()
"""What pods without pod affinity have."""


def pod_affinity_terms(pod: Pod) -> PodAffinityTerms:
    """Read all pod affinity and anti-affinity of the pod."""
    if not pod.has_affinity:
        return NO_TERMS
    affinity = pod.spec.affinity
    near, apart = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else (None, None)
    problems: list[str] = []
    namespace = pod.metadata.namespace
    terms = PodAffinityTerms(
        _terms("requiredAffinityTerms", near.required if near else (), namespace, problems),
        _terms("requiredAntiAffinityTerms", apart.required if apart else (), namespace, problems),
        _weighted("preferredAffinityTerms", near.preferred if near else (), namespace, problems),
        _weighted("preferredAntiAffinityTerms", apart.preferred if apart else (), namespace, problems),
    )
    return terms._replace(problem=_aggregate(problems)) if problems else terms


def _terms(
    name: str, given: Sequence[PodAffinityTerm], namespace: str, problems: list[str]
) -> tuple[AffinityTerm, ...]:
    """Read one list; parity: a term that cannot be understood makes the whole list void."""
    for term in given:
        problem = validate_label_selector(term.label_selector) or validate_label_selector(term.namespace_selector)
        if problem is not None:
            problems.append(f"{name}: {problem}")
            return ()
    return tuple(_term(term, namespace) for term in given)


def _weighted(
    name: str, given: Sequence[WeightedPodAffinityTerm], namespace: str, problems: list[str]
) -> tuple[WeightedTerm, ...]:
    terms = _terms(name, [each.pod_affinity_term for each in given], namespace, problems)
    return tuple(WeightedTerm(term, each.weight) for term, each in zip(terms, given, strict=False))


def _term(given: PodAffinityTerm, namespace: str) -> AffinityTerm:
    means_own = not given.namespaces and given.namespace_selector is None
    namespaces = frozenset((namespace,)) if means_own else frozenset(given.namespaces)
    return AffinityTerm(namespaces, given.namespace_selector, given.label_selector, given.topology_key)


def _aggregate(problems: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _identity(selector: LabelSelector | None) -> Hashable:
    if selector is None:
        return None
    return tuple(sorted(selector.match_labels.items())), selector.match_expressions
