"""NodeDeclaredFeatures: facts of upstream's nodedeclaredfeatures_test.go and of its feature registry in v1.36."""

import pytest

from scheduler.api import ActionType, ClusterEvent, Code, EventResource, QueueingHint
from scheduler.plugins.node_declared_features import NAME, REASON_MISSING_FEATURES, required_features
from scheduler.state.changes import NODE_ADD, UNSCHEDULABLE_POD_UPDATE
from scheduler.testing import node, pod

RESTART, USERNS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
NODE_FEATURE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE)
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
PLAIN = pod("p")
SHARING = PLAIN.set("spec.hostNetwork", True).set("spec.hostUsers", False)
RESTARTING = PLAIN.container(restartPolicyRules=RULES)


@pytest.mark.parametrize(
    ("waiting", "features"),
    [
        pytest.param(PLAIN, set(), id="a plain pod"),
        pytest.param(SHARING, {USERNS}, id="host network in a user namespace"),
        pytest.param(PLAIN.set("spec.hostNetwork", True), set(), id="host network alone"),
        pytest.param(PLAIN.set("spec.hostUsers", False), set(), id="user namespace alone"),
        pytest.param(SHARING.set("spec.hostUsers", True), set(), id="host users"),
        pytest.param(RESTARTING, {RESTART}, id="a container restarts all"),
        pytest.param(PLAIN.init_container(restartPolicyRules=RULES), {RESTART}, id="an init container restarts all"),
        pytest.param(PLAIN.container(restartPolicyRules=[{"action": "Restart"}]), set(), id="restarts itself only"),
        pytest.param(SHARING.container(restartPolicyRules=RULES), {RESTART, USERNS}, id="both"),
    ],
)
def test_required_features(waiting, features):
    """Which fields need which feature."""
    assert required_features(waiting.obj()) == features


def test_filter(bench):
    """A node must declare everything that the pod needs; plain pods are not looked at."""
    bench.cluster([node("old"), node("half").declares(USERNS), node("new").declares(RESTART, USERNS, "Other")])
    plugin = bench.make(NAME)
    assert bench.verdicts(plugin, PLAIN.obj()) == "Skip"
    verdicts = bench.verdicts(plugin, SHARING.container(restartPolicyRules=RULES).obj())
    assert verdicts["new"] is None
    for name in ("old", "half"):
        assert verdicts[name].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert verdicts[name].reasons == (REASON_MISSING_FEATURES,)


@pytest.mark.parametrize(
    ("event", "old", "new", "answer"),
    [
        pytest.param(NODE_ADD, None, node("n").obj(), "Queue", id="a new node"),
        pytest.param(NODE_FEATURE, node("n").obj(), node("n").declares("A").obj(), "Queue", id="other features"),
        pytest.param(NODE_FEATURE, node("n").obj(), node("n").obj(), "QueueSkip", id="the same features"),
        pytest.param(UNSCHEDULABLE_POD_UPDATE, SHARING.obj(), PLAIN.obj(), "Queue", id="own pod needs other features"),
        pytest.param(UNSCHEDULABLE_POD_UPDATE, SHARING.obj(), SHARING.obj(), "QueueSkip", id="own pod needs the same"),
        pytest.param(
            UNSCHEDULABLE_POD_UPDATE,
            pod("q").obj(),
            pod("q").set("spec.hostNetwork", True).obj(),
            "QueueSkip",
            id="another pod",
        ),
    ],
)
def test_hints(bench, event, old, new, answer):
    """Nodes that declare other features, and the pod's own changes."""
    assert bench.hint(bench.make(NAME), event, SHARING.obj(), old, new) is QueueingHint(answer)


def test_events(bench):
    """Nodes' features, and any update of the pod."""
    assert bench.registered(bench.make(NAME)) == {
        ("Node", ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE),
        ("Pod", ActionType.UPDATE),
    }
