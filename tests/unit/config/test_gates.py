"""Feature gates: names, defaults and the flag, with kube-scheduler's texts."""

import pytest

from scheduler.config.errors import UsageError
from scheduler.config.gates import DEFAULT_GATES, FeatureGates, parse_feature_gates


@pytest.mark.parametrize(
    ("name", "is_on"),
    [
        ("NodeDeclaredFeatures", True),
        ("DynamicResourceAllocation", True),
        ("SchedulerPopFromBackoffQ", True),
        ("SchedulerAsyncPreemption", True),
        ("OpportunisticBatching", True),
        ("SchedulerAsyncAPICalls", False),
        ("GangScheduling", False),
        ("StorageCapacityScoring", False),
        ("TaintTolerationComparisonOperators", False),
        ("VolumeLimitScaling", False),
        ("CoordinatedLeaderElection", False),
        ("DRAPrioritizedList", True),
        ("InPlacePodVerticalScaling", True),
    ],
)
def test_defaults(name, is_on):
    """The defaults of 1.36."""
    assert DEFAULT_GATES.enabled(name) is is_on


def test_parse():
    """Lists, prefixes, spaces; the last setting wins."""
    gates = parse_feature_gates(["NodeDeclaredFeatures=false, kube:GangScheduling=1", "NodeDeclaredFeatures=t"])

    assert gates == FeatureGates({"NodeDeclaredFeatures": True, "GangScheduling": True})
    assert list(gates.without_effect()) == ["GangScheduling"]
    assert parse_feature_gates([""]) == DEFAULT_GATES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("Foo=true", "unrecognized feature gate: Foo", id="unknown gate"),
        pytest.param("NodeDeclaredFeatures", "missing bool value for NodeDeclaredFeatures", id="no value"),
        pytest.param("NodeDeclaredFeatures=maybe", 'invalid value of NodeDeclaredFeatures=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax', id="no boolean"),
        pytest.param("DynamicResourceAllocation=false", "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true", id="locked"),
        pytest.param("other:Foo=true", "component not registered: other", id="another component"),
    ],
)  # fmt: skip
def test_refusals(text, message):
    """Usage errors with upstream's texts."""
    with pytest.raises(UsageError) as caught:
        parse_feature_gates([text])

    assert str(caught.value) == message


def test_asking_for_an_unknown_gate_is_a_mistake():
    """A misspelt gate in the code must not read as off."""
    with pytest.raises(KeyError):
        DEFAULT_GATES.enabled("NoSuchGate")


def test_locked_gates_may_be_set_to_what_they_are():
    """Old manifests do that."""
    assert parse_feature_gates(["DynamicResourceAllocation=true"]).enabled("DynamicResourceAllocation")
