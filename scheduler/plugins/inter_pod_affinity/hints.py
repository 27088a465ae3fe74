"""Hints: after which events a pod that InterPodAffinity rejected is worth a retry (spec §2.7).

differs: a term with a namespace selector is judged by the namespaces that it selects, as it is in Filter. Upstream asks
the selector about no labels here, so such a pod sleeps through the event that it waits for until the next flush.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import Node, Pod, QueueingHint
from scheduler.model.affinity import AffinityTerm
from scheduler.plugins.inter_pod_affinity.terms import Namespaces, Question, matches_all, question

__all__ = ["after_node_change", "after_pod_change"]


def after_pod_change(pod: Pod, old: object | None, new: object | None, namespaces: Namespaces) -> QueueingHint:
    """Say whether a pod's coming, change of labels or going may help ``pod``."""
    before, after = old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None
    if before is not None and after is not None and after.uid == pod.uid:
        return QueueingHint.QUEUE  # its own labels changed: another pod's anti-affinity may no longer select it
    others = [other for other in (before, after) if other is not None]
    if not others or pod.affinity_terms.problem is not None:
        return QueueingHint.QUEUE
    if any(not (other.node_name or other.status.nominated_node_name) for other in others):
        return QueueingHint.SKIP
    near = _questions(pod.affinity_terms.required_affinity, namespaces)
    apart = _questions(pod.affinity_terms.required_anti_affinity, namespaces)
    if before is not None and after is not None:
        came_near = not matches_all(near, before) and matches_all(near, after)
        return _queue_if(came_near or (matches_all(apart, before) and not matches_all(apart, after)))
    if after is not None:
        return _queue_if(matches_all(near, after))
    return _queue_if(any(matches_all(apart, gone) or _repelled(gone, pod, namespaces) for gone in others))


def _repelled(other: Pod, pod: Pod, namespaces: Namespaces) -> bool:
    return matches_all(_questions(other.affinity_terms.required_anti_affinity, namespaces), pod)


def _questions(terms: Sequence[AffinityTerm], namespaces: Namespaces) -> list[Question]:
    return [question(term, namespaces) for term in terms]


def after_node_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    """Say whether a node's coming or its change of labels may help ``pod``."""
    terms = pod.affinity_terms
    if not isinstance(new, Node) or terms.problem is not None:
        return QueueingHint.QUEUE
    labels = new.metadata.labels
    if not isinstance(old, Node):
        # A node without the topology key always satisfies anti-affinity; what runs in its domain is not looked at here.
        has_key = any(term.topology_key in labels for term in terms.required_affinity)
        return _queue_if(has_key or bool(terms.required_anti_affinity))
    before = old.metadata.labels
    for term in terms.required_affinity:
        key = term.topology_key
        if key in labels and labels[key] != before.get(key):
            return QueueingHint.QUEUE
    for term in terms.required_anti_affinity:
        key = term.topology_key
        if key in before and labels.get(key) != before[key]:
            return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
