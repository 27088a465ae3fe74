"""Hints: after which events a pod that InterPodAffinity rejected is worth a retry (spec §2.7).

A hint is asked for many waiting pods at many events (``wanted`` says which), so what it costs must not depend on how
many terms the pod has: what the terms say of a pod is kept by what they can tell apart, and nodes are compared by the
topology keys.

differs: a term with a namespace selector is judged by the namespaces that it selects, as it is in Filter. Upstream asks
the selector about no labels here, so such a pod sleeps through the event that it waits for until the next flush.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.api import Node, Pod, QueueingHint
from scheduler.model.affinity import AffinityTerm, PodAffinityTerms
from scheduler.model.bounds import Kept
from scheduler.model.selectors import label_selector_matches
from scheduler.model.visible_labels import SelectorSet
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces

__all__ = ["Hints", "TermSet"]

_MAX_KEPT = 16_384
_MAX_WEIGHT = 8 * _MAX_KEPT
_SPARE_NAMESPACES = 16


class TermSet:
    """Required terms of one kind that a pod has, all of which are asked about other pods together.

    Attributes:
        keys: their topology keys.
    """

    __slots__ = ("_means", "_namespaces", "_selectors", "_terms", "_version", "keys")

    def __init__(self, terms: Sequence[AffinityTerm], namespaces: Namespaces) -> None:
        self.keys = frozenset(term.topology_key for term in terms)
        self._terms = terms
        self._namespaces = namespaces
        self._selectors = SelectorSet(term.selector for term in terms)
        self._means: dict[str, bool] = {}
        self._version = -1

    def select(self, pod: Pod) -> bool:
        """Say whether all of the terms select ``pod``; parity: not if there are none."""
        meta = pod.metadata
        return bool(self._terms) and self._mean(meta.namespace) and self._selectors.all_match(meta.labels)

    def _mean(self, namespace: str) -> bool:
        """Say whether all terms mean the namespace."""
        if self._version != self._namespaces.version:
            self._means.clear()
            self._version = self._namespaces.version
        means = self._means.get(namespace)
        if means is None:
            if len(self._means) >= _SPARE_NAMESPACES + len(self._terms):
                self._means.clear()
            means = self._means[namespace] = all(self._namespaces.means(term, namespace) for term in self._terms)
        return means


class _Waiting:
    """The rules of one waiting pod."""

    __slots__ = ("apart", "given", "near")

    def __init__(self, given: PodAffinityTerms, namespaces: Namespaces) -> None:
        self.given = given
        self.near = TermSet(given.required_affinity, namespaces)
        self.apart = TermSet(given.required_anti_affinity, namespaces)


class Hints:
    """The plugin's hints; what they found out about waiting pods is kept, for ``_MAX_KEPT`` pods with ``_MAX_WEIGHT``
    labels and values in their terms at most.
    """

    __slots__ = ("_namespaces", "_waiting")

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._waiting: Kept[str, _Waiting] = Kept(_MAX_KEPT, _MAX_WEIGHT)

    def rules_of(self, pod: Pod) -> _Waiting:
        """Return the rules of a waiting pod."""
        uid, given = pod.metadata.uid, pod.affinity_terms
        kept = self._waiting.get(uid)
        if kept is None or kept.given is not given:
            required = (*given.required_affinity, *given.required_anti_affinity)
            weight = sum(term.weight for term in required)
            kept = self._waiting.keep(uid, _Waiting(given, self._namespaces), weight)
        return kept

    def after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Say whether a pod's coming, change of labels or going may help ``pod``."""
        before, after = old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None
        if before is not None and after is not None and after.uid == pod.uid:
            return QueueingHint.QUEUE  # its own labels changed: another pod's anti-affinity may no longer select it
        if (before is None and after is None) or pod.affinity_terms.problem is not None:
            return QueueingHint.QUEUE
        if (before is not None and not _has_node(before)) or (after is not None and not _has_node(after)):
            return QueueingHint.SKIP
        rules = self.rules_of(pod)
        if after is None:
            assert before is not None, "it was looked at above"
            return _queue_if(rules.apart.select(before) or self._repelled(before, pod))
        if before is None:
            return _queue_if(rules.near.select(after))
        came_near = not rules.near.select(before) and rules.near.select(after)
        return _queue_if(came_near or (rules.apart.select(before) and not rules.apart.select(after)))

    def _repelled(self, other: Pod, pod: Pod) -> bool:
        """Say whether all anti-affinity terms of ``other`` select ``pod``."""
        terms = other.affinity_terms.required_anti_affinity
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        return bool(terms) and all(
            label_selector_matches(term.selector, labels) and self._namespaces.means(term, namespace) for term in terms
        )

    def after_node_change(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        """Say whether a node's coming or its change of labels may help ``pod``."""
        if not isinstance(new, Node) or pod.affinity_terms.problem is not None:
            return QueueingHint.QUEUE
        rules, labels = self.rules_of(pod), new.metadata.labels
        if not isinstance(old, Node):
            # A node without the topology key always satisfies anti-affinity; what runs in its domain is not looked at.
            return _queue_if(bool(rules.apart.keys) or not rules.near.keys.isdisjoint(labels))
        before = old.metadata.labels
        has_come = _differs(labels, before, rules.near.keys)
        return _queue_if(has_come or _differs(before, labels, rules.apart.keys))


def _has_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _differs(labels: Mapping[str, str], others: Mapping[str, str], keys: frozenset[str]) -> bool:
    """Say whether one of ``labels`` under ``keys`` is another one, or missing, among ``others``."""
    return bool(keys) and any(key in keys and others.get(key) != value for key, value in labels.items())


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
