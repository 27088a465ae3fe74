"""Affinity terms: which namespaces a term means, what equals what, what is void."""

import pytest

from scheduler.model.affinity import NO_TERMS
from scheduler.testing import pod
from scheduler.testing.builders import in_

WEB = {"app": "web"}


def term_of(made):
    return made.obj().affinity_terms.required_affinity[0]


@pytest.mark.parametrize(
    ("fields", "namespaces"),
    [
        pytest.param({}, {"shop"}, id="the pod's own by default"),
        pytest.param({"namespaces": ["a", "b"]}, {"a", "b"}, id="those that are named"),
        pytest.param({"namespaceSelector": {}}, set(), id="a selector alone names none"),
        pytest.param({"namespaces": ["a"], "namespaceSelector": {}}, {"a"}, id="named ones beside a selector"),
    ],
)
def test_namespaces(fields, namespaces):
    """The pod's own namespace counts only if the term says nothing about namespaces."""
    assert term_of(pod().in_ns("shop").pod_affinity("zone", WEB, **fields)).namespaces == namespaces


@pytest.mark.parametrize(
    ("made", "matches"),
    [
        pytest.param(pod().pod_affinity("zone", WEB), True, id="namespace and labels"),
        pytest.param(pod().in_ns("other").pod_affinity("zone", WEB), False, id="another namespace"),
        pytest.param(pod().pod_affinity("zone", {"app": "db"}), False, id="other labels"),
        pytest.param(pod().pod_affinity("zone"), False, id="no selector selects nothing"),
        pytest.param(pod().pod_affinity("zone", {}), True, id="an empty selector selects everything"),
        pytest.param(
            pod().in_ns("other").pod_affinity("zone", WEB, namespaceSelector={"matchLabels": {"team": "red"}}),
            True,
            id="a namespace by its labels",
        ),
        pytest.param(
            pod().pod_affinity("zone", WEB, namespaceSelector={"matchLabels": {"team": "blue"}}),
            False,
            id="the selector leaves the namespace out",
        ),
        pytest.param(
            pod().pod_affinity(
                "zone", WEB, namespaces=["default"], namespaceSelector={"matchLabels": {"team": "blue"}}
            ),
            True,
            id="named although the selector leaves it out",
        ),
    ],
)
def test_matches(made, matches):
    """A term looks at the namespace by name or labels, and at the pod's labels."""
    assert term_of(made).matches("default", WEB, {"team": "red"}) is matches


def test_terms_that_mean_the_same_are_equal():
    """Replicas carry one and the same term, in whatever order their selector names the labels."""
    one = term_of(pod("a").pod_affinity("zone", {"app": "web", "tier": "x"}))
    same = term_of(pod("b").pod_affinity("zone", {"tier": "x", "app": "web"}, namespaces=["default"]))
    assert one == same
    assert hash(one) == hash(same)
    for other in (
        pod().pod_affinity("rack", {"app": "web", "tier": "x"}),
        pod().pod_affinity("zone", {"app": "web"}),
        pod().in_ns("b").pod_affinity("zone", {"app": "web", "tier": "x"}),
        pod().pod_affinity("zone", {"app": "web", "tier": "x"}, namespaces=["default"], namespaceSelector={}),
    ):
        assert one != term_of(other)
    assert one != "a term"


def test_weights_and_kinds():
    """The four lists stay apart and preferences keep their weights."""
    made = pod().pod_affinity("a", WEB).pod_affinity("b", WEB, weight=7)
    terms = made.pod_anti_affinity("c", WEB).pod_anti_affinity("d", WEB, weight=9).obj().affinity_terms
    assert [t.topology_key for t in terms.required_affinity] == ["a"]
    assert [(t.term.topology_key, t.weight) for t in terms.preferred_affinity] == [("b", 7)]
    assert [t.topology_key for t in terms.required_anti_affinity] == ["c"]
    assert [(t.term.topology_key, t.weight) for t in terms.preferred_anti_affinity] == [("d", 9)]
    assert terms.problem is None


def test_pods_without_affinity_have_no_terms():
    """Nothing is made for them."""
    assert pod().obj().affinity_terms is NO_TERMS
    assert pod().requires_node(in_("a", "b")).obj().affinity_terms is NO_TERMS


def test_a_bad_selector_makes_its_list_void():
    """The other lists stay; the problem is told in upstream's words."""
    bad = {"key": "app", "operator": "Sometimes"}
    made = pod().pod_affinity("zone", WEB).pod_affinity("zone", [bad]).pod_anti_affinity("zone", WEB)
    terms = made.obj().affinity_terms
    assert terms.required_affinity == ()
    assert len(terms.required_anti_affinity) == 1
    assert terms.problem == 'requiredAffinityTerms: "Sometimes" is not a valid label selector operator'


def test_several_problems_are_listed():
    """Namespace selectors are read too; equal problems of different lists are told apart by the list's name."""
    bad = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    made = pod().pod_affinity("zone", bad, weight=1).pod_anti_affinity("zone", WEB, namespaceSelector=bad, weight=1)
    text = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    problem = made.obj().affinity_terms.problem
    assert problem == f"[preferredAffinityTerms: {text}, preferredAntiAffinityTerms: {text}]"
