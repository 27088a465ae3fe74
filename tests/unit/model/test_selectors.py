"""Label selectors, node selectors and what is said about bad ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import selectors
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.model.selectors import (
    label_selector_matches,
    node_selector_matches,
    node_selector_term_matches,
    parse_int64,
    required_node_affinity_matches,
    validate_label_selector,
    validate_node_selector_term,
)
from scheduler.testing import (
    absent,
    all_of,
    exists,
    field_in,
    field_not_in,
    gt,
    in_,
    lt,
    node,
    not_in,
    pod,
    selector,
)

LABELS = {"app": "web", "tier": "front", "empty": ""}


def label_selector(wanted: Any) -> LabelSelector:
    return msgspec.convert(selector(wanted), LabelSelector)


def term_of(*parts: Any) -> NodeSelectorTerm:
    return msgspec.convert(all_of(*parts), NodeSelectorTerm)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({}, True, id="an empty selector matches everything"),
        pytest.param({"app": "web"}, True, id="equal"),
        pytest.param({"app": "db"}, False, id="other value"),
        pytest.param({"other": "web"}, False, id="missing key"),
        pytest.param({"missing": ""}, False, id="a missing key is not the empty value"),
        pytest.param({"empty": ""}, True, id="the empty value"),
        pytest.param({"app": "web", "tier": "back"}, False, id="all must hold"),
        pytest.param([in_("app", "db", "web")], True, id="In"),
        pytest.param([in_("missing", "x")], False, id="In on a missing key"),
        pytest.param([in_("app")], False, id="In without values is bad and matches nothing"),
        pytest.param([not_in("app", "db")], True, id="NotIn"),
        pytest.param([not_in("app", "web")], False, id="NotIn, but it is"),
        pytest.param([not_in("missing", "x")], True, id="NotIn on a missing key"),
        pytest.param([exists("app")], True, id="Exists"),
        pytest.param([exists("missing")], False, id="Exists on a missing key"),
        pytest.param([absent("missing")], True, id="DoesNotExist"),
        pytest.param([absent("app")], False, id="DoesNotExist on a present key"),
        pytest.param([exists("app"), absent("tier")], False, id="expressions are ANDed"),
        pytest.param([gt("app", 1)], False, id="Gt is no operator of label selectors"),
        pytest.param({"matchLabels": {"app": "web"}, "matchExpressions": [absent("tier")]}, False, id="both parts"),
    ],
)
def test_label_selectors(wanted: Any, expected: bool) -> None:
    """Labels must satisfy every part of the selector."""
    assert label_selector_matches(label_selector(wanted), LABELS) is expected


def test_no_selector_matches_nothing() -> None:
    """None is not an empty selector."""
    assert label_selector_matches(None, LABELS) is False


NODE = node("n1").labels({"zone": "a", "cores": "16", "odd": "many"}).obj()


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(term_of(), False, id="an empty term matches nothing"),
        pytest.param(term_of(in_("zone", "a", "b")), True, id="In"),
        pytest.param(term_of(not_in("missing", "x")), True, id="NotIn on a missing key"),
        pytest.param(term_of(absent("zone")), False, id="DoesNotExist"),
        pytest.param(term_of(gt("cores", 8)), True, id="Gt"),
        pytest.param(term_of(gt("cores", 16)), False, id="Gt is strict"),
        pytest.param(term_of(lt("cores", "017")), True, id="Lt reads numbers as Go does"),
        pytest.param(term_of(lt("odd", 1)), False, id="Lt of a label that is no number"),
        pytest.param(term_of(gt("missing", 1)), False, id="Gt on a missing key"),
        pytest.param(term_of(gt("cores", "many")), False, id="Gt with a bound that is no number"),
        pytest.param(term_of(lt("cores", 2**63)), False, id="Lt with a bound beyond int64"),
        pytest.param(term_of({"key": "zone", "operator": "Like", "values": ["a"]}), False, id="unknown operator"),
        pytest.param(term_of({"key": "zone", "operator": "Exists", "values": ["a"]}), False, id="Exists with values"),
        pytest.param(term_of(exists("bad key!")), False, id="bad key"),
        pytest.param(term_of(not_in("zone", "bad value!")), False, id="a bad value spoils the term"),
        pytest.param(term_of(field_in("n1")), True, id="by name"),
        pytest.param(term_of(field_in("n2")), False, id="by another name"),
        pytest.param(term_of(field_not_in("n2")), True, id="not by another name"),
        pytest.param(term_of(field_in("n1", "n2")), False, id="fields take one value"),
        pytest.param(term_of({"matchFields": [exists("metadata.name")]}), False, id="fields know In and NotIn only"),
        pytest.param(term_of({"matchFields": [in_("spec.x", "y")]}), False, id="another field is empty"),
        pytest.param(term_of(in_("zone", "a"), field_in("n2")), False, id="expressions and fields are ANDed"),
    ],
)
def test_node_selector_terms(term: NodeSelectorTerm, expected: bool) -> None:
    """A node must satisfy every expression and field of a term; a bad term matches nothing."""
    assert node_selector_term_matches(term, NODE) is expected


def test_terms_are_ored_and_a_bad_one_does_not_spoil_the_others() -> None:
    """Parse errors stay within their term."""
    bad, good = term_of(gt("cores", "many")), term_of(exists("zone"))
    assert node_selector_matches(NodeSelector((bad, good)), NODE) is True
    assert node_selector_matches(NodeSelector((bad,)), NODE) is False
    assert node_selector_matches(NodeSelector(), NODE) is False


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(pod(), True, id="nothing required"),
        pytest.param(pod().node_selector(zone="a"), True, id="selector holds"),
        pytest.param(pod().node_selector(zone="b"), False, id="selector does not hold"),
        pytest.param(pod().node_selector(zone="a").requires_node(in_("zone", "b")), False, id="both must hold"),
        pytest.param(pod().requires_node(in_("zone", "b"), exists("zone")), True, id="one term is enough"),
        pytest.param(pod().prefers_node(5, in_("zone", "b")), True, id="preferences do not bar"),
        pytest.param(pod().requires_node(), False, id="a required affinity without terms"),
    ],
)
def test_required_node_affinity(wanted: Any, expected: bool) -> None:
    """Node selector and required node affinity must both hold."""
    assert required_node_affinity_matches(wanted.obj(), NODE) is expected


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        pytest.param({"app": "web"}, None, id="good"),
        pytest.param([{"key": "a", "operator": "Gt"}], '"Gt" is not a valid label selector operator', id="operator"),
        pytest.param(
            [in_("a")],
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            [{"key": "a", "operator": "Exists", "values": ["x"]}],
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
            id="Exists with values",
        ),
        pytest.param(
            {"/a": "x"}, 'key: Invalid value: "/a": prefix part must be non-empty', id="key without its domain"
        ),
    ],
)
def test_problems_of_label_selectors_are_told_as_upstream_does(wanted: Any, problem: str | None) -> None:
    """The texts are apimachinery's."""
    assert validate_label_selector(label_selector(wanted)) == problem


def test_no_selector_is_good() -> None:
    """There is nothing to complain about."""
    assert validate_label_selector(None) is None


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        pytest.param(term_of(in_("zone", "a"), field_in("n1")), None, id="good"),
        pytest.param(
            term_of({"key": "a", "operator": "Like"}),
            'matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists", '
            '"DoesNotExist", "Gt", "Lt"',
            id="operator",
        ),
        pytest.param(
            term_of(exists("ok"), gt("a", "x")),
            "matchExpressions[1].values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            id="Gt of a word",
        ),
        pytest.param(
            term_of(field_in("a", "b")),
            'matchFields[0].values: Invalid value: ["a","b"]: must have one element',
            id="two names",
        ),
    ],
)
def test_problems_of_terms_are_told_as_upstream_does(term: NodeSelectorTerm, problem: str | None) -> None:
    """The texts are component-helpers'."""
    assert validate_node_selector_term(term) == problem


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("", None),
        ("-", None),
        ("1.0", None),
        (" 1", None),
        ("1\n", None),
        ("1_0", None),
        ("٣", None),
        ("9" * 100_000, None),
    ],
)
def test_int64_is_read_as_go_does(text: str, number: int | None) -> None:
    """strconv.ParseInt with base 10 and 64 bits."""
    assert parse_int64(text) == number


REQUIREMENTS = st.builds(
    NodeSelectorRequirement,
    st.sampled_from(("zone", "rack")),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Bad")),
    st.lists(st.sampled_from(("1", "2", "3")), max_size=2, unique=True).map(tuple),
)
TERMS = st.builds(
    NodeSelectorTerm,
    st.lists(REQUIREMENTS, max_size=2).map(tuple),
    st.lists(st.just(NodeSelectorRequirement("metadata.name", "In", ("n",))), max_size=1).map(tuple),
)


@given(st.lists(TERMS, max_size=20), st.dictionaries(st.sampled_from(("zone", "rack")), st.sampled_from("123")))
@settings(deadline=None)
def test_many_terms_match_as_each_of_them_does(terms, labels) -> None:
    """Looking only at the terms that a node's labels may satisfy misses none."""
    selector, on = NodeSelector(tuple(terms)), node("n").labels(labels).obj()
    assert node_selector_matches(selector, on) is any(node_selector_term_matches(term, on) for term in terms)


def test_expressions_are_compiled_once_however_many_there_are(monkeypatch) -> None:
    """More of them than any cache holds, gone round several times, are read once each."""
    compiled = []
    compile_one = selectors._compile_requirement
    monkeypatch.setattr(selectors, "_compile_requirement", lambda r: compiled.append(r) or compile_one(r))
    many = [LabelSelector({}, (LabelSelectorRequirement("a", "NotIn", (f"v{i}",)),)) for i in range(6_000)]
    for _ in range(3):
        assert all(selectors.label_selector_matches(each, {"a": "b"}) for each in many)
    assert len(compiled) == len(many)
