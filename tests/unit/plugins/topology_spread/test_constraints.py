"""Constraints: what is read from a pod, and what is kept between attempts."""

import msgspec
import pytest

from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.plugins.topology_spread import constraints as module
from scheduler.plugins.topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Constraint,
    ConstraintError,
    OwnConstraints,
    read_constraints,
)
from scheduler.testing import pod

FOO = {"foo": ""}


def read(made, action=DO_NOT_SCHEDULE):
    obj = made.obj()
    return read_constraints(obj.spec.topology_spread_constraints, obj.labels, action)


def test_defaults_of_a_constraint():
    """Affinity is honored, taints are not, one domain is enough."""
    assert read(pod().spread("zone", FOO, max_skew=2)) == (
        Constraint(2, "zone", LabelSelector(FOO), 1, honors_affinity=True, honors_taints=False),
    )


def test_everything_given():
    """All fields find their place."""
    made = (
        pod()
        .labels(v="1")
        .spread(
            "zone", FOO, minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor", matchLabelKeys=["v", "w"]
        )
    )
    selector = LabelSelector(FOO, (LabelSelectorRequirement("v", "In", ("1",)),))
    assert read(made) == (Constraint(1, "zone", selector, 3, honors_affinity=False, honors_taints=True),)


def test_only_the_wanted_kind():
    """Hard and soft ones are read apart, in their order."""
    made = pod().spread("a", FOO).spread("b", FOO, when=SCHEDULE_ANYWAY).spread("c", FOO)
    assert [each.topology_key for each in read(made)] == ["a", "c"]
    assert [each.topology_key for each in read(made, SCHEDULE_ANYWAY)] == ["b"]


def test_keys_narrow_an_empty_selector_but_not_a_missing_one():
    """No selector matches nothing, whatever is added to it."""
    made = pod().labels(v="1").spread("a", {}, matchLabelKeys=["v"]).spread("b", matchLabelKeys=["v"])
    empty, missing = read(made)

    assert empty.counted_selector == LabelSelector({}, (LabelSelectorRequirement("v", "In", ("1",)),))
    assert missing.selector is None


def test_keys_have_no_meaning_while_their_gate_is_off():
    """An API server without the gate has dropped them; a scheduler without it does not look."""
    waiting = pod().labels(v="1").spread("a", FOO, matchLabelKeys=["v"]).obj()
    (constraint,) = OwnConstraints(use_label_keys=False).of(waiting, DO_NOT_SCHEDULE)
    assert constraint.selector == LabelSelector(FOO)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param({"matchLabels": {"-": ""}}, "key: Invalid value", id="key"),
        pytest.param({"matchLabels": {"a": "b c"}}, "values[0][a]: Invalid value", id="value"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            '"Gt" is not a valid',
            id="operator",
        ),
    ],
)
def test_bad_selectors(selector, text):
    """They are an error of the pod."""
    with pytest.raises(ConstraintError) as error:
        read(pod().spread("zone", selector))
    assert text in str(error.value)


def test_kept_until_the_pod_changes():
    """The same value is read once; new labels or constraints are read again."""
    own = OwnConstraints()
    waiting = pod("p").labels(v="1").spread("zone", FOO, matchLabelKeys=["v"]).obj()
    first = own.of(waiting, DO_NOT_SCHEDULE)
    assert own.of(waiting, DO_NOT_SCHEDULE) is first
    assert own.of(waiting.on_node("n"), DO_NOT_SCHEDULE) is first
    assert own.of(waiting, SCHEDULE_ANYWAY) == ()

    meta = msgspec.structs.replace(waiting.metadata, labels={"v": "2"})
    relabelled = own.of(msgspec.structs.replace(waiting, metadata=meta), DO_NOT_SCHEDULE)
    assert relabelled[0].selector.match_expressions == (LabelSelectorRequirement("v", "In", ("2",)),)


def test_what_is_kept_is_bounded(monkeypatch):
    """Thousands of pods come and go."""
    monkeypatch.setattr(module, "_MAX_KEPT", 2)
    own = OwnConstraints()
    for i in range(5):
        assert len(own.of(pod(f"p{i}").spread("zone", FOO).obj(), DO_NOT_SCHEDULE)) == 1
    assert len(own._kept) <= 2
