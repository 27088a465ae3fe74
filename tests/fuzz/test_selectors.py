"""Selectors of any kind never raise; a bad one matches nothing; good ones agree with the plainest reading of the rules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from scheduler.model.node import Node
from scheduler.model.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.model.selectors import (
    label_selector_matches,
    node_selector_matches,
    node_selector_term_matches,
    parse_int64,
    validate_label_selector,
    validate_node_selector_term,
)
from scheduler.model.visible_labels import SelectorSet
from tests.fuzz.regressions import fuzzed

keys = st.sampled_from(["a", "b", "example.com/c", "", "a b", "\u00fc", "x" * 64, "metadata.name"])
values = st.sampled_from(["", "1", "-1", "v", "w", "+7", "9" * 30, "\u0661", "a b", "x" * 64, "1.5"]) | st.text(
    max_size=4
)
labels = st.dictionaries(keys, values, max_size=4)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "in", "Like"])
requirements = st.tuples(keys, operators, st.lists(values, max_size=3).map(tuple))
selectors = st.builds(
    LabelSelector, labels, st.lists(requirements.map(lambda r: LabelSelectorRequirement(*r)), max_size=3).map(tuple)
)
terms = st.builds(
    NodeSelectorTerm,
    st.lists(requirements.map(lambda r: NodeSelectorRequirement(*r)), max_size=3).map(tuple),
    st.lists(requirements.map(lambda r: NodeSelectorRequirement(*r)), max_size=1).map(tuple),
)


def plainly(requirement: LabelSelectorRequirement | NodeSelectorRequirement, found: dict[str, str]) -> bool:
    """Read one requirement word by word."""
    value = found.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    number, limit = parse_int64(value or ""), parse_int64(requirement.values[0])
    if number is None or limit is None:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit


@fuzzed
@given(selectors, labels)
def test_label_selectors(selector: LabelSelector, found: dict[str, str]) -> None:
    """Matching agrees with the rules, and a selector that is not valid is not matched by its bad part."""
    matches = label_selector_matches(selector, found)
    if validate_label_selector(selector) is None:
        wanted = all(found.get(key) == value for key, value in selector.match_labels.items())
        assert matches == (wanted and all(plainly(each, found) for each in selector.match_expressions))
    elif any(validate_label_selector(LabelSelector({}, (each,))) for each in selector.match_expressions):
        assert not matches


@fuzzed
@given(st.lists(selectors.filter(lambda s: validate_label_selector(s) is None), max_size=6), labels)
def test_many_selectors_at_once(many: list[LabelSelector], found: dict[str, str]) -> None:
    """What is reduced to the visible labels answers as each selector alone."""
    expected = sum(1 << i for i, selector in enumerate(many) if label_selector_matches(selector, found))
    asked = SelectorSet(many)
    assert asked.matching(found) == expected == asked.matching(found)


@fuzzed
@given(terms, labels, st.sampled_from(["n1", "", "v"]))
def test_node_selector_terms(term: NodeSelectorTerm, found: dict[str, str], name: str) -> None:
    """A bad or an empty term matches nothing."""
    node = Node(ObjectMeta(name=name, labels=found))
    matches = node_selector_term_matches(term, node)
    if validate_node_selector_term(term) is not None or not (term.match_expressions or term.match_fields):
        assert not matches
    elif not term.match_fields:
        assert matches == all(plainly(each, found) for each in term.match_expressions)


@fuzzed
@given(st.lists(terms, max_size=12), labels)
def test_node_selectors(many: list[NodeSelectorTerm], found: dict[str, str]) -> None:
    """However many terms there are, they are ORed."""
    node = Node(ObjectMeta(name="n1", labels=found))
    expected = any(node_selector_term_matches(term, node) for term in many)
    assert node_selector_matches(NodeSelector(tuple(many)), node) == expected


@fuzzed
@given(st.text(max_size=30) | st.integers().map(str))
def test_integers_are_read_as_go_reads_them(text: str) -> None:
    """ASCII digits with at most one sign, within int64."""
    number = parse_int64(text)
    is_go = text.isascii() and text.lstrip("+-").isdigit() and len(text) - len(text.lstrip("+-")) <= 1
    assert number == (int(text) if is_go and -(2**63) <= int(text) < 2**63 else None)
