"""The last look at the node: only what became worse since the decision counts."""

import pytest

from scheduler.binding.node_check import NodeCheck
from scheduler.state.cache.cache import Cache
from scheduler.testing.builders import node, pod

NODE = node("n").uid("1").capacity(cpu="4", memory="8Gi", pods="3")
POD = pod("p").requests(cpu="2").on("n")
REST = ", so the binding was not sent"


class Decided:
    """A cache in which a pod was just decided for the node."""

    def __init__(self, before=NODE, decided=POD):
        self.cache = Cache()
        self.node = before.obj()
        self.cache.add_node(self.node)
        self.pod = decided.obj()
        self.cache.assume_pod(self.pod)
        self.check = NodeCheck(self.cache)
        self.check.decided(self.pod, "n")

    def becomes(self, builder):
        self.cache.update_node(builder.obj())
        return self.check.objection(self.pod, "n")


def shrunk(**capacity):
    return node("n").uid("1").capacity(**{"cpu": "4", "memory": "8Gi", "pods": "3"} | capacity)


def fresh():
    return node("n").uid("1").capacity(cpu="4", memory="8Gi", pods="3")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(fresh().cordoned(), "was cordoned", id="cordoned"),
        pytest.param(fresh().taint("out"), "got the taint out", id="a new taint"),
        pytest.param(fresh().taint("out", effect="NoExecute"), "got the taint out", id="a new taint that evicts"),
        pytest.param(fresh().taint("out", effect="PreferNoSchedule"), None, id="a taint that is a mere wish"),
        pytest.param(shrunk(cpu="1"), "shrank and lacks cpu", id="too small"),
        pytest.param(shrunk(cpu="2"), None, id="smaller, but large enough"),
        pytest.param(shrunk(pods="0"), "shrank and lacks pods", id="no place for another pod"),
        pytest.param(shrunk(memory="0"), None, id="nothing left of what the pod does not ask for"),
        pytest.param(shrunk(cpu="8").label("a", "b"), None, id="larger, with another label"),
        pytest.param(node("n").uid("2").capacity(cpu="9", pods="9"), "was replaced", id="another node of that name"),
    ],
)
def test_what_became_known_since_the_decision(after, expected):
    """The reason says what happened and to which node."""
    objection = Decided().becomes(after)
    assert objection == (expected and f"node n {expected} in the meantime{REST}")


def test_a_node_that_is_gone():
    """Its placeholder, kept by the pod itself, is no node."""
    decided = Decided()
    decided.cache.remove_node("n")
    assert decided.check.objection(decided.pod, "n") == f"node n was deleted in the meantime{REST}"


def test_a_node_that_did_not_change_is_not_judged():
    """The profile has allowed more than these rules would, for example overcommitment."""
    decided = Decided(before=shrunk(cpu="1").cordoned().taint("out"))
    assert decided.check.objection(decided.pod, "n") is None


def test_what_was_so_before_is_no_news():
    """The node changes, but not for the worse: taint, cordon and overcommitment were there at the decision."""
    decided = Decided(before=shrunk(cpu="1").cordoned().taint("out"))
    assert decided.becomes(shrunk(cpu="1").cordoned().taint("out").label("a", "b")) is None


@pytest.mark.parametrize("after", [fresh().cordoned(), fresh().taint("out")], ids=["cordoned", "tainted"])
def test_a_pod_that_tolerates_it_stays(after):
    """Daemons go to cordoned nodes."""
    assert Decided(decided=pod("p").toleration(operator="Exists").on("n")).becomes(after) is None


def test_others_pods_take_room_too():
    """What counts is what all pods on the node ask for."""
    decided = Decided()
    decided.cache.assume_pod(pod("q").requests(cpu="2").on("n").obj())
    assert decided.becomes(shrunk(cpu="3")) == f"node n shrank and lacks cpu in the meantime{REST}"


def test_ended_decisions_are_forgotten():
    """Nothing is kept for a pod that is bound or was undone."""
    decided = Decided()
    decided.check.ended(decided.pod)
    assert len(decided.check) == 0
    decided.check.ended(decided.pod)
