"""Label keys: labels that a selector matches offer something that it demands, and as little as can be demands little."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.shared.label_keys import ANY, changed_keys, demanded, offered
from scheduler.testing.builders import absent, exists, in_, not_in, pod

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from(["1", "2", "3", ""])
LABELS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.one_of(
    st.builds(lambda key, values: in_(key, *values), KEYS, st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(lambda key: in_(key, "1", *(f"v{i}" for i in range(20))), KEYS),
    st.builds(lambda key, values: not_in(key, *values), KEYS, st.lists(VALUES, min_size=1, max_size=3)),
    st.builds(exists, KEYS),
    st.builds(absent, KEYS),
)


def made(wanted):
    return pod().spread("zone", wanted).obj().spec.topology_spread_constraints[0].label_selector


@given(st.dictionaries(KEYS, VALUES, max_size=2), st.lists(REQUIREMENTS, max_size=2), LABELS)
@settings(deadline=None, max_examples=300)
def test_labels_that_match_offer_what_is_demanded(pairs, requirements, labels):
    """Or a waiting pod would not be found by the pod that it waits for."""
    wanted = made({"matchLabels": pairs, "matchExpressions": requirements})
    if label_selector_matches(wanted, labels):
        assert set(demanded(wanted)) & set(offered(labels))


@pytest.mark.parametrize(
    ("wanted", "demands"),
    [
        pytest.param({"app": "web"}, [("app", "web")], id="a pair"),
        pytest.param({"managed-by": "Helm", "app": "checkout"}, [("app", "checkout")], id="the longer value"),
        pytest.param([in_("app", "a", "b"), in_("tier", "x")], [("tier", "x")], id="few values before many"),
        pytest.param([exists("tier"), in_("app", "a", "b")], [("app", "a"), ("app", "b")], id="pairs before a key"),
        pytest.param([not_in("app", "a"), exists("tier")], ["tier"], id="a key before nothing"),
        pytest.param([in_("app", *map(str, range(99)))], ["app"], id="too many values"),
        pytest.param([not_in("app", "a"), absent("tier")], [ANY], id="only what must not be"),
        pytest.param({}, [ANY], id="an empty selector"),
    ],
)
def test_the_rarest_is_demanded(wanted, demands):
    """The fewer labels offer it, the fewer events ask about the pod."""
    assert list(demanded(made(wanted))) == demands


def test_a_missing_selector_demands_nothing():
    """It matches nothing."""
    assert not demanded(None)


@given(LABELS, LABELS)
def test_changed_keys(before, after):
    """Keys that came, went or have another value."""
    assert changed_keys(before, after) == {key for key in "abc" if before.get(key) != after.get(key)}
