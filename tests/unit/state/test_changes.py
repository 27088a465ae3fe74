"""Changes: each property that scheduling reads has its event, and nothing else has one."""

import pytest

from scheduler.api import ActionType, ClusterEvent, EventResource
from scheduler.state import changes
from scheduler.state.changes import node_events, pod_events
from scheduler.testing import node, pod

WEB = pod("web").requests(cpu="2", memory="1Gi")
N1 = node("n1").capacity(cpu="4", memory="8Gi", pods="110")


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(WEB, WEB, [ActionType.UPDATE], id="nothing that scheduling reads is the general update"),
        pytest.param(WEB, WEB.annotation("a", "b"), [ActionType.UPDATE], id="annotations are the general update"),
        pytest.param(WEB, WEB.label("a", "b"), [ActionType.UPDATE_POD_LABEL], id="a label was added"),
        pytest.param(WEB.label("a", "b"), WEB, [ActionType.UPDATE_POD_LABEL], id="a label was removed"),
        pytest.param(WEB, WEB.requests(cpu="1"), [ActionType.UPDATE_POD_SCALE_DOWN], id="a request was lowered"),
        pytest.param(WEB, WEB.requests(cpu="1999m"), [ActionType.UPDATE_POD_SCALE_DOWN], id="lowered by a milli-core"),
        pytest.param(WEB, WEB.requests(cpu="3"), [ActionType.UPDATE], id="raising a request helps nobody"),
        pytest.param(WEB, WEB.requests(cpu="2000m"), [ActionType.UPDATE], id="the same amount in another spelling"),
        pytest.param(
            WEB.requests({"example.com/gpu": "1"}),
            WEB,
            [ActionType.UPDATE_POD_SCALE_DOWN],
            id="a requested resource is gone",
        ),
        pytest.param(
            WEB.gate("a"), WEB, [ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED], id="the last gate is gone"
        ),
        pytest.param(WEB.gate("a", "b"), WEB.gate("a"), [ActionType.UPDATE], id="one of two gates is gone"),
        pytest.param(WEB, WEB.toleration("k"), [ActionType.UPDATE_POD_TOLERATION], id="a toleration was added"),
        pytest.param(
            WEB,
            WEB.set("status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": "web-gpu"}]),
            [ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
            id="a claim was generated",
        ),
        pytest.param(
            WEB,
            WEB.set("status.extendedResourceClaimStatus", {"resourceClaimName": "web-ext"}),
            [ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
            id="a claim for extended resources was generated",
        ),
        pytest.param(
            WEB.gate("a"),
            WEB.label("a", "b").requests(cpu="1").toleration("k"),
            [
                ActionType.UPDATE_POD_LABEL,
                ActionType.UPDATE_POD_SCALE_DOWN,
                ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                ActionType.UPDATE_POD_TOLERATION,
            ],
            id="several at once come in upstream's order",
        ),
    ],
)
def test_pod_events(old, new, actions):
    """A waiting pod's changes, told apart."""
    expected = [ClusterEvent(EventResource.UNSCHEDULABLE_POD, action) for action in actions]
    assert pod_events(old.obj(), new.obj()) == expected


def test_pod_events_of_a_pod_with_a_node_are_about_assigned_pods():
    """The new version decides which kind of pod it is about."""
    old, new = WEB.obj(), WEB.on("n1").obj()
    assert pod_events(old, new) == [changes.ASSIGNED_POD_UPDATE]
    assert pod_events(new, WEB.on("n1").label("a", "b").obj()) == [
        ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
    ]


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(N1, N1, [], id="a heartbeat changes nothing"),
        pytest.param(N1.cordoned(), N1, [ActionType.UPDATE_NODE_TAINT], id="uncordoning counts as a taint removed"),
        pytest.param(N1, N1.cordoned(), [], id="cordoning helps nobody"),
        pytest.param(N1, N1.allocatable(cpu="5"), [ActionType.UPDATE_NODE_ALLOCATABLE], id="allocatable grew"),
        pytest.param(N1, N1.allocatable(cpu="3"), [ActionType.UPDATE_NODE_ALLOCATABLE], id="allocatable shrank"),
        pytest.param(N1, N1.allocatable(cpu="4000m"), [], id="the same allocatable in another spelling"),
        pytest.param(N1, N1.label("a", "b"), [ActionType.UPDATE_NODE_LABEL], id="a label was added"),
        pytest.param(N1, N1.taint("a"), [ActionType.UPDATE_NODE_TAINT], id="a taint was added"),
        pytest.param(N1, N1.condition("Ready"), [ActionType.UPDATE_NODE_CONDITION], id="a condition appeared"),
        pytest.param(
            N1.condition("Ready", "True"),
            N1.condition("Ready", "False"),
            [ActionType.UPDATE_NODE_CONDITION],
            id="a condition's status changed",
        ),
        pytest.param(
            N1.condition("Ready", message="a"), N1.condition("Ready", message="b"), [], id="only a message changed"
        ),
        pytest.param(N1, N1.annotation("a", "b"), [ActionType.UPDATE_NODE_ANNOTATION], id="an annotation was added"),
        pytest.param(N1, N1.declares("f"), [ActionType.UPDATE_NODE_DECLARED_FEATURE], id="a feature was declared"),
        pytest.param(
            N1.cordoned().taint("a"),
            N1.label("a", "b"),
            [ActionType.UPDATE_NODE_TAINT, ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT],
            id="uncordoned, labelled and untainted at once, in upstream's order",
        ),
    ],
)
def test_node_events(old, new, actions):
    """A node's changes, told apart; only what may help a pod has an event."""
    assert node_events(old.obj(), new.obj()) == [ClusterEvent(EventResource.NODE, action) for action in actions]


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (changes.ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (changes.ASSIGNED_POD_UPDATE, "AssignedPodUpdate"),
        (changes.ASSIGNED_POD_DELETE, "AssignedPodDelete"),
        (changes.UNSCHEDULABLE_POD_ADD, "UnschedulablePodAdd"),
        (changes.UNSCHEDULABLE_POD_UPDATE, "UnschedulablePodUpdate"),
        (changes.UNSCHEDULABLE_POD_DELETE, "UnschedulablePodDelete"),
        (changes.NODE_ADD, "NodeAdd"),
        (changes.NODE_DELETE, "NodeDelete"),
        (changes.UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (changes.FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_labels_are_those_of_upstreams_metrics(event, label):
    """Dashboards go by these names."""
    assert event.label == label
