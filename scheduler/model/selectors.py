"""Label selectors and node selectors: which labels, which nodes they match (spec §4.6).

A selector that cannot be understood (unknown operator, ``Gt`` of a word, …) matches nothing; the ``validate_*``
functions say what is wrong with it in upstream's words, for plugins that must answer with an error. Node selector
terms are ORed, and a bad term does not keep the others from matching.

Terms and expressions are compiled on first use and the result is kept with them, so that matching one term against
thousands of nodes costs one dictionary look-up and one set look-up each.

Source: ``apimachinery/pkg/labels/selector.go``, ``pkg/apis/meta/v1/helpers.go``,
``component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from scheduler.model.label_syntax import label_key_problems, label_value_problems
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.quantity import MAX_INT64, MIN_INT64

if TYPE_CHECKING:
    from scheduler.model.node import Node
    from scheduler.model.pod import (
        NodeSelector,
        NodeSelectorRequirement,
        NodeSelectorTerm,
        Pod,
        PreferredSchedulingTerm,
    )

__all__ = [
    "FIELD_NAME",
    "label_selector_matches",
    "labels_match",
    "node_selector_matches",
    "node_selector_term_matches",
    "node_selector_term_matches_labels",
    "parse_int64",
    "required_node_affinity_matches",
    "requirement_matches",
    "validate_label_selector",
    "validate_node_selector_term",
    "validate_preferred_terms",
    "value_predicate",
]

FIELD_NAME = "metadata.name"
"""The only field of a node that a node selector can name."""

Labels = Mapping[str, str]
TermsByLabel = dict[tuple[str, str | None] | None, list["NodeSelectorTerm"]]
ValuePredicate = Callable[[str | None], bool]  # what a key's value must be; None: the key is missing

_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_NEED_KEY = frozenset({"Exists", "Gt", "Lt"})
_FEW_TERMS = 8
_MAX_SHARED_VALUES = 256
_INTEGER = re.compile(r"[+-]?0*([0-9]{1,19})")


def labels_match(wanted: Labels, labels: Labels) -> bool:
    """Say whether ``labels`` has every key of ``wanted`` with the same value."""
    for key, value in wanted.items():  # noqa: SIM110  a loop costs half of all(): this is asked for pods times pods
        if labels.get(key) != value:
            return False
    return True


def label_selector_matches(selector: LabelSelector | None, labels: Labels) -> bool:
    """Say whether the selector matches: None matches nothing, an empty selector everything, a bad one nothing."""
    if selector is None:
        return False
    if not labels_match(selector.match_labels, labels):
        return False
    return not selector.match_expressions or all(
        requirement.operator in _LABEL_OPERATORS and value_predicate(requirement)(labels.get(requirement.key))
        for requirement in selector.match_expressions
    )


def requirement_matches(requirement: LabelSelectorRequirement | NodeSelectorRequirement, value: str | None) -> bool:
    """Say whether ``value`` (None: the key is missing) satisfies the requirement; a bad requirement is not satisfied.

    ``NotIn`` and ``DoesNotExist`` are satisfied by a missing key. ``Gt`` and ``Lt`` compare int64 numbers.
    """
    return value_predicate(requirement)(value)


def node_selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Say whether one of the terms matches the node; without terms nothing matches."""
    terms = selector.node_selector_terms
    if len(terms) > _FEW_TERMS:
        return any(node_selector_term_matches(term, node) for term in _candidate_terms(selector, node))
    return any(node_selector_term_matches(term, node) for term in terms)


def _candidate_terms(selector: NodeSelector, node: Node) -> Iterator[NodeSelectorTerm]:
    """Yield the terms that may match the node: those that want a label it has, and those that want none."""
    kept = selector.__dict__
    if "by_label" not in kept:
        kept["by_label"] = _by_wanted_label(selector.node_selector_terms)
    by_label: TermsByLabel = kept["by_label"]
    yield from by_label.get(None, ())
    for key, value in node.metadata.labels.items():
        yield from by_label.get((key, value), ())
        yield from by_label.get((key, None), ())


def _by_wanted_label(terms: Iterable[NodeSelectorTerm]) -> TermsByLabel:
    """Put each term under label pairs, or else a key, one of which a node must have; under None if it needs none."""
    by_label: TermsByLabel = {}
    for term in terms:
        places: Iterable[tuple[str, str | None] | None] = (None,)
        for requirement in term.match_expressions:
            if requirement.operator == "In":
                places = [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
                break
            if requirement.operator in _NEED_KEY:
                places = ((requirement.key, None),)
        for place in places:
            by_label.setdefault(place, []).append(term)
    return by_label


def node_selector_term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Say whether all expressions and fields of the term hold; an empty or a bad term matches nothing."""
    compiled = _compiled_term(term)
    if compiled is None:
        return False
    expressions, fields = compiled
    labels = node.metadata.labels
    if not all(predicate(labels.get(key)) for key, predicate in expressions):
        return False
    name = node.metadata.name
    # parity: a field other than the name is the empty text; a node without a name satisfies all fields
    return not name or all(predicate(name if key == FIELD_NAME else "") for key, predicate in fields)


def node_selector_term_matches_labels(term: NodeSelectorTerm, labels: Labels) -> bool:
    """Say whether all expressions of the term hold for these labels, as of a node without a name: its fields hold."""
    compiled = _compiled_term(term)
    return compiled is not None and all(predicate(labels.get(key)) for key, predicate in compiled[0])


def required_node_affinity_matches(pod: Pod, node: Node) -> bool:
    """Say whether the node satisfies both ``nodeSelector`` and the required node affinity of the pod."""
    spec = pod.spec
    if spec.node_selector and not labels_match(spec.node_selector, node.metadata.labels):
        return False
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return True
    return node_selector_matches(affinity.node_affinity.required, node)


def validate_label_selector(selector: LabelSelector | None) -> str | None:
    """Return the first thing that is wrong with the selector, in upstream's words; None if it is good."""
    if selector is None:
        return None
    for key, value in selector.match_labels.items():
        problems = [*_key_problems("", key), *_value_problems("", key, [value])]
        if problems:
            return _aggregate(problems)
    for requirement in selector.match_expressions:
        if requirement.operator not in _LABEL_OPERATORS:
            return f"{_quote(requirement.operator)} is not a valid label selector operator"
        problems = _problems_of(requirement)
        if problems:
            return _aggregate(problems)
    return None


def validate_node_selector_term(term: NodeSelectorTerm, path: str = "") -> str | None:
    """Return what is wrong with the term, in upstream's words with ``path`` in front of fields; None if it is good."""
    problems = _term_problems(term, path)
    return _aggregate(problems) if problems else None


def validate_preferred_terms(terms: Sequence[PreferredSchedulingTerm]) -> str | None:
    """Return what is wrong with node preferences, in upstream's words; None if they are good.

    parity: a term whose weight is 0 is not looked at.
    """
    problems = [p for i, term in enumerate(terms) if term.weight for p in _term_problems(term.preference, f"[{i}]")]
    return _aggregate(problems) if problems else None


def _term_problems(term: NodeSelectorTerm, path: str) -> list[str]:
    problems: list[str] = []
    for i, requirement in enumerate(term.match_expressions):
        at = _join(path, f"matchExpressions[{i}]")
        if requirement.operator not in _NODE_OPERATORS:
            problems.append(_unsupported(_join(at, "operator"), requirement.operator, _NODE_OPERATORS))
        else:
            problems.extend(_requirement_problems(at, requirement))
    for i, requirement in enumerate(term.match_fields):
        problems.extend(_field_problems(_join(path, f"matchFields[{i}]"), requirement))
    return problems


def parse_int64(text: str) -> int | None:
    """Read a decimal integer as Go's ``strconv.ParseInt(text, 10, 64)`` does; None if it is none."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = -int(match[1]) if text[0] == "-" else int(match[1])
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def value_predicate(requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> ValuePredicate:
    """Return the test of `requirement_matches` for many values."""
    # Kept with the value: a cache of any size is useless to somebody who goes round more requirements than it holds.
    kept = requirement.__dict__
    predicate: ValuePredicate | None = kept.get("predicate")
    if predicate is None:
        predicate = kept["predicate"] = _shared_predicate(requirement)
    return predicate


def _shared_predicate(requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> ValuePredicate:
    """Compile; equal requirements of many pods share the result, unless they are too long to be kept."""
    is_long = len(requirement.values) > _MAX_SHARED_VALUES
    return _compile_requirement(requirement) if is_long else _compile_short_requirement(requirement)


@functools.lru_cache(maxsize=4096)
def _compile_short_requirement(requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> ValuePredicate:
    return _compile_requirement(requirement)


def _compile_requirement(requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> ValuePredicate:
    if requirement.operator not in _NODE_OPERATORS or _problems_of(requirement):
        return _never
    return _value_predicate(requirement.operator, requirement.values)


def _value_predicate(operator: str, values: Sequence[str]) -> ValuePredicate:
    allowed = frozenset(values)
    match operator:
        case "In":
            return lambda value: value in allowed
        case "NotIn":
            return lambda value: value not in allowed
        case "Exists":
            return lambda value: value is not None
        case "DoesNotExist":
            return lambda value: value is None
        case "Gt":
            return lambda value: _is_beyond(value, values[0], 1)
        case _:
            return lambda value: _is_beyond(value, values[0], -1)


def _is_beyond(value: str | None, bound: str, direction: int) -> bool:
    number, limit = None if value is None else parse_int64(value), parse_int64(bound)
    return number is not None and limit is not None and number * direction > limit * direction


def _never(_value: str | None) -> bool:
    return False


CompiledTerm = tuple[tuple[tuple[str, ValuePredicate], ...], tuple[tuple[str, ValuePredicate], ...]]


def _compiled_term(term: NodeSelectorTerm) -> CompiledTerm | None:
    kept = term.__dict__
    if "compiled" not in kept:
        values = sum(len(r.values) for r in (*term.match_expressions, *term.match_fields))
        kept["compiled"] = _compile_term(term) if values > _MAX_SHARED_VALUES else _compile_short_term(term)
    compiled: CompiledTerm | None = kept["compiled"]
    return compiled


@functools.lru_cache(maxsize=4096)
def _compile_short_term(term: NodeSelectorTerm) -> CompiledTerm | None:
    return _compile_term(term)


def _compile_term(term: NodeSelectorTerm) -> CompiledTerm | None:
    """Return (key, predicate) pairs for labels and for fields; None for a term that matches nothing."""
    if not (term.match_expressions or term.match_fields) or validate_node_selector_term(term) is not None:
        return None
    expressions = tuple((r.key, _value_predicate(r.operator, r.values)) for r in term.match_expressions)
    return expressions, tuple((r.key, _value_predicate(r.operator, r.values)) for r in term.match_fields)


def _problems_of(requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> list[str]:
    kept = requirement.__dict__
    if "problems" not in kept:
        kept["problems"] = _requirement_problems("", requirement)
    problems: list[str] = kept["problems"]
    return problems


def _requirement_problems(path: str, requirement: LabelSelectorRequirement | NodeSelectorRequirement) -> list[str]:
    key, values = requirement.key, requirement.values
    return [
        *_key_problems(path, key),
        *_count_problems(_join(path, "values"), requirement.operator, values),
        *_value_problems(path, key, values),
    ]


def _count_problems(path: str, operator: str, values: Sequence[str]) -> list[str]:
    shown = _show(values)
    match operator:
        case "In" | "NotIn" if not values:
            return [f"{path}: Invalid value: {shown}: for 'in', 'notin' operators, values set can't be empty"]
        case "Exists" | "DoesNotExist" if values:
            return [f"{path}: Invalid value: {shown}: values set must be empty for exists and does not exist"]
        case "Gt" | "Lt":
            count = (
                []
                if len(values) == 1
                else [f"{path}: Invalid value: {shown}: for 'Gt', 'Lt' operators, exactly one value is required"]
            )
            return count + [
                f"{path}[{i}]: Invalid value: {_quote(v)}: for 'Gt', 'Lt' operators, the value must be an integer"
                for i, v in enumerate(values)
                if parse_int64(v) is None
            ]
        case _:
            return []


def _key_problems(path: str, key: str) -> list[str]:
    problems = label_key_problems(key)
    return [f"{_join(path, 'key')}: Invalid value: {_quote(key)}: {'; '.join(problems)}"] if problems else []


def _value_problems(path: str, key: str, values: Sequence[str]) -> list[str]:
    at = _join(path, "values")
    return [
        f"{at}[{i}][{key}]: Invalid value: {_quote(value)}: {'; '.join(problems)}"
        for i, value in enumerate(values)
        if (problems := label_value_problems(value))
    ]


def _field_problems(path: str, requirement: NodeSelectorRequirement) -> list[str]:
    if requirement.operator not in ("In", "NotIn"):
        return [_unsupported(_join(path, "operator"), requirement.operator, ("In", "NotIn"))]
    if len(requirement.values) != 1:
        return [f"{_join(path, 'values')}: Invalid value: {_show(requirement.values)}: must have one element"]
    return []


def _unsupported(path: str, operator: str, supported: Sequence[str]) -> str:
    names = ", ".join(f'"{name}"' for name in supported)
    return f"{path}: Unsupported value: {_quote(operator)}: supported values: {names}"


def _aggregate(problems: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _join(path: str, child: str) -> str:
    return f"{path}.{child}" if path else child


def _show(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":")) if values else "null"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
