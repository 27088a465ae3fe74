"""Which nodes reach a volume: its node affinity, judged by labels alone.

parity: the volume's terms are matched against a node without a name (``CheckNodeAffinity``), so ``matchFields`` hold
on every node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.api import BoolColumn, NodesView
from scheduler.model.pod import NodeSelectorTerm
from scheduler.model.selectors import node_selector_term_matches_labels, validate_node_selector_term
from scheduler.model.storage import VolumeNodeAffinity
from scheduler.plugins.shared.node_labels import match_term

__all__ = ["NO_TERM_MATCHES", "affinity_keys", "affinity_problem", "is_reachable", "reachable_rows"]

NO_TERM_MATCHES = "no matching NodeSelectorTerms"


def is_reachable(affinity: VolumeNodeAffinity | None, labels: Mapping[str, str]) -> bool:
    """Say whether a node with these labels reaches the volume; without a requirement every node does."""
    if affinity is None or affinity.required is None:
        return True
    return any(node_selector_term_matches_labels(term, labels) for term in affinity.required.node_selector_terms)


def reachable_rows(affinity: VolumeNodeAffinity | None, nodes: NodesView) -> BoolColumn:
    """Return ``is_reachable`` for each row."""
    if affinity is None or affinity.required is None:
        return np.ones(len(nodes), np.bool_)
    ok = np.zeros(len(nodes), np.bool_)
    for term in affinity.required.node_selector_terms:
        if term.match_expressions and validate_node_selector_term(term) is None:
            ok |= match_term(NodeSelectorTerm(term.match_expressions), nodes)
        elif node_selector_term_matches_labels(term, {}):  # a term of fields alone
            ok[:] = True
    return ok


def affinity_problem(affinity: VolumeNodeAffinity | None, labels: Mapping[str, str]) -> str | None:
    """Return upstream's text of why a node with these labels does not reach the volume; None if it does."""
    if affinity is None or affinity.required is None or is_reachable(affinity, labels):
        return None
    for i, term in enumerate(affinity.required.node_selector_terms):
        problem = validate_node_selector_term(term, f"nodeSelectorTerms[{i}]")
        if problem is not None:
            return problem
    return NO_TERM_MATCHES


def affinity_keys(affinity: VolumeNodeAffinity | None) -> set[str]:
    """Return the labels on which the answer depends."""
    if affinity is None or affinity.required is None:
        return set()
    return {r.key for term in affinity.required.node_selector_terms for r in term.match_expressions}
