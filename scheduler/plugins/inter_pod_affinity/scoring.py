"""Score: how much a node's surroundings suit the pod's preferences, and those of the pods around it.

A node's raw score is the sum, over the topology keys, of what its domain has: for each pod there, the weight of the
incoming pod's preferences that select it (negative for anti-affinity), the weight of its own preferences that select
the incoming pod, and ``hardPodAffinityWeight`` for each of its required affinity terms that does. The span from the
lowest to the highest raw score becomes 0..100.

Source: ``interpodaffinity/scoring.go`` v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scheduler.api import MAX_NODE_SCORE, CodedColumn, IntColumn, NodesView, NodeView, Pod, StateKey
from scheduler.plugins.inter_pod_affinity.namespaces import Namespaces
from scheduler.plugins.inter_pod_affinity.terms import question

__all__ = ["SCORE_STATE", "DomainScores", "prepare_scores", "score_domains", "score_node", "spread_out"]


class DomainScores(NamedTuple):
    """The scores of one topology key's domains: by code of ``column``, and a 0 for nodes without a value."""

    column: CodedColumn[str]
    by_code: IntColumn


ScoreState = dict[str, DomainScores]
SCORE_STATE: StateKey[ScoreState] = StateKey("PreScoreInterPodAffinity")


def prepare_scores(pod: Pod, nodes: NodesView, namespaces: Namespaces, hard_weight: int) -> ScoreState:
    """Add up the scores of all domains by topology key; ``nodes`` are all nodes. Empty if nothing was added."""
    scores: ScoreState = {}
    for carried in nodes.preferring_terms(pod, namespaces.labels(pod.metadata.namespace)):
        weight = hard_weight if carried.is_required else 1
        # parity: a weight of 0 leaves required terms out, rather than adding 0 (then PreScore may answer Skip)
        if weight > 0:
            column, by_code = _of_key(scores, carried.topology_key, nodes)
            carried.add_to(by_code, column, weight)
    for key, by_code in _own_preferences(pod, nodes, namespaces):
        _of_key(scores, key, nodes).by_code[:] += by_code
    return scores


def _of_key(scores: ScoreState, key: str, nodes: NodesView) -> DomainScores:
    known = scores.get(key)
    if known is None:
        column = nodes.label(key)
        known = scores[key] = DomainScores(column, np.zeros(len(column.values) + 1, np.int64))
    return known


def _own_preferences(pod: Pod, nodes: NodesView, namespaces: Namespaces) -> Iterator[tuple[str, IntColumn]]:
    """Yield topology key and scores by code for each of the pod's preferences that selects a pod in some domain."""
    terms = pod.affinity_terms
    for sign, preferences in ((1, terms.preferred_affinity), (-1, terms.preferred_anti_affinity)):
        for term, weight in preferences:
            asked = question(term, namespaces)
            counts = nodes.matching_pods_by(
                term.topology_key, asked.namespaces, asked.selector, include_terminating=True
            )
            if counts.any():
                yield term.topology_key, counts * (sign * weight)


def score_node(scores: ScoreState, node: NodeView) -> int:
    """Return the raw score of a node."""
    total = 0
    labels = node.labels
    for key, (column, by_code) in scores.items():
        code = column.code_of.get(labels[key]) if key in labels else None
        if code is not None:
            total += int(by_code[code])
    return total


def score_domains(scores: ScoreState, nodes: NodesView) -> IntColumn:
    """Return the raw score of every row."""
    total: IntColumn | None = None
    for key, (_, by_code) in scores.items():
        of_key = by_code.take(nodes.label(key).codes)
        total = of_key if total is None else total + of_key
    return np.zeros(len(nodes), np.int64) if total is None else total


def spread_out(scores: IntColumn) -> IntColumn:
    """Bring scores to 0..100: the lowest becomes 0 and the highest 100; all become 0 if they are equal."""
    lowest = int(scores.min()) if len(scores) else 0
    span = int(scores.max()) - lowest if len(scores) else 0
    if not span:
        return np.zeros_like(scores)
    # parity: in floating point, in this order, and truncated
    return (MAX_NODE_SCORE * ((scores - lowest) / span)).astype(np.int64)
