"""Node selectors in args, checked as kube-scheduler parses them (``component-helpers/.../nodeaffinity``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from scheduler.config.errors import Path, Problem, invalid, not_supported
from scheduler.model.label_syntax import label_key_problems, label_value_problems
from scheduler.model.pod import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["validate_node_affinity"]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INT64 = re.compile(r"[-+]?[0-9]{1,19}")


def validate_node_affinity(path: Path, affinity: NodeAffinity) -> Iterator[Problem]:
    """Return what is wrong with the terms of a node affinity; empty terms, which match nothing, are fine."""
    if affinity.required is not None:
        terms_path = (*path, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        for index, term in enumerate(affinity.required.node_selector_terms):
            yield from _term((*terms_path, index), term)
    for index, preferred in enumerate(affinity.preferred):
        # parity: terms of weight 0 are dropped before they are parsed, and the path leaves out "preference"
        if preferred.weight != 0:
            yield from _term((*path, "preferredDuringSchedulingIgnoredDuringExecution", index), preferred.preference)


def _term(path: Path, term: NodeSelectorTerm) -> Iterator[Problem]:
    for index, requirement in enumerate(term.match_expressions):
        yield from _expression((*path, "matchExpressions", index), requirement)
    for index, requirement in enumerate(term.match_fields):
        yield from _field((*path, "matchFields", index), requirement)


def _field(path: Path, requirement: NodeSelectorRequirement) -> Iterator[Problem]:
    if requirement.operator not in _FIELD_OPERATORS:
        yield not_supported((*path, "operator"), requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values) != 1:
        yield invalid((*path, "values"), list(requirement.values), "must have one element")


def _expression(path: Path, requirement: NodeSelectorRequirement) -> Iterator[Problem]:
    if requirement.operator not in _OPERATORS:
        yield not_supported((*path, "operator"), requirement.operator, _OPERATORS)
        return
    problems = label_key_problems(requirement.key)
    if problems:
        yield invalid((*path, "key"), requirement.key, "; ".join(problems))
    values_path = (*path, "values")
    yield from _values_fit_operator(values_path, requirement.operator, requirement.values)
    for index, value in enumerate(requirement.values):
        problems = label_value_problems(value)
        if problems:
            where = (*values_path, index, f"[{requirement.key}]")
            yield invalid(where, value, "; ".join(problems))


def _values_fit_operator(path: Path, operator: str, values: Sequence[str]) -> Iterator[Problem]:
    if operator in {"In", "NotIn"}:
        if not values:
            yield invalid(path, None, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield invalid(path, list(values), "values set must be empty for exists and does not exist")
    else:
        if len(values) != 1:
            yield invalid(path, list(values), "for 'Gt', 'Lt' operators, exactly one value is required")
        for index, value in enumerate(values):
            if not _is_int64(value):
                yield invalid((*path, index), value, "for 'Gt', 'Lt' operators, the value must be an integer")


def _is_int64(text: str) -> bool:
    return _INT64.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63
