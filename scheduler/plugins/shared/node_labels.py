"""Node selectors on columns: the whole-cluster form of ``model.selectors``.

Each requirement becomes one look-up table over the distinct values of a label, so the cost follows the number of
distinct values and one indexing operation a requirement, not the number of nodes times expressions.
"""

from __future__ import annotations

import numpy as np

from scheduler.api import BoolColumn, NodesView, Pod
from scheduler.model.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.model.selectors import FIELD_NAME, requirement_matches, validate_node_selector_term

__all__ = ["match_node_selector", "match_required", "match_term"]


def match_required(pod: Pod, nodes: NodesView) -> BoolColumn:
    """Return which nodes satisfy both ``nodeSelector`` and the required node affinity of the pod."""
    ok = np.ones(len(nodes), np.bool_)
    for key, value in pod.spec.node_selector.items():
        ok &= nodes.label(key).isin((value,))
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None:
        ok &= match_node_selector(affinity.node_affinity.required, nodes)
    return ok


def match_node_selector(selector: NodeSelector, nodes: NodesView) -> BoolColumn:
    """Return which nodes match one of the terms; without terms none does."""
    ok = np.zeros(len(nodes), np.bool_)
    for term in selector.node_selector_terms:
        ok |= match_term(term, nodes)
    return ok


def match_term(term: NodeSelectorTerm, nodes: NodesView) -> BoolColumn:
    """Return which nodes satisfy every expression and field; an empty or bad term matches none."""
    if not (term.match_expressions or term.match_fields) or validate_node_selector_term(term) is not None:
        return np.zeros(len(nodes), np.bool_)
    ok = np.ones(len(nodes), np.bool_)
    for requirement in term.match_expressions:
        ok &= _match_label(requirement, nodes)
    for requirement in term.match_fields:
        ok &= _match_field(requirement, nodes)
    return ok


def _match_label(requirement: NodeSelectorRequirement, nodes: NodesView) -> BoolColumn:
    column = nodes.label(requirement.key)
    match requirement.operator:
        case "In":
            return column.isin(requirement.values)
        case "NotIn":
            return ~column.isin(requirement.values)
        case "Exists":
            return column.codes >= 0
        case "DoesNotExist":
            return column.codes < 0
        case _:  # Gt, Lt: a number has to be read from each distinct value
            return column.test(lambda value: requirement_matches(requirement, value), missing=False)


def _match_field(requirement: NodeSelectorRequirement, nodes: NodesView) -> BoolColumn:
    # parity: a field other than the name is the empty text
    named = np.zeros(len(nodes), np.bool_)
    if requirement.key == FIELD_NAME:
        row = nodes.row(requirement.values[0])
        if row is not None:
            named[row] = True
    elif requirement.values[0] == "":
        named[:] = True
    return named if requirement.operator == "In" else ~named
