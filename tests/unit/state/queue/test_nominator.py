"""Nominator: which nomination counts when memory and the API server differ, and who is skipped."""

import pytest

from scheduler.state.queue.nominator import Nominator
from scheduler.state.store import Store
from scheduler.testing import pod

WEB = pod("web")


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def nominator(store):
    store.put(WEB.obj())
    return Nominator(store.get)


def test_a_node_given_by_name_wins_over_the_status(nominator):
    """What the cycle decided is newer than what the API server says."""
    nominator.add(WEB.nominated("old").obj(), "n1")
    assert nominator.node_of(WEB.obj().uid) == "n1"
    assert [p.name for p in nominator.pods_for("n1")] == ["web"]
    assert list(nominator.nodes) == ["n1"]


def test_without_a_name_the_status_counts(nominator):
    """A pod that was created with a nomination, or whose cycle has no opinion."""
    nominator.add(WEB.nominated("n2").obj(), None)
    assert list(nominator.nodes) == ["n2"]


@pytest.mark.parametrize(
    ("status_node", "given"),
    [
        pytest.param("", None, id="neither names a node"),
        pytest.param("n1", "", id="the cycle ends the nomination"),
    ],
)
def test_no_node_ends_a_nomination(nominator, status_node, given):
    """The old entry goes, and none comes."""
    nominator.add(WEB.obj(), "n1")
    nominator.add(WEB.nominated(status_node).obj(), given)
    assert len(nominator) == 0
    assert list(nominator.nodes) == []


def test_a_pod_is_nominated_to_one_node_at_a_time(nominator):
    """The last word counts."""
    nominator.add(WEB.obj(), "n1")
    nominator.add(WEB.obj(), "n2")
    assert list(nominator.nodes) == ["n2"]
    assert len(nominator.pods_for("n1")) == 0


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(None, id="the pod is gone"),
        pytest.param(WEB.on("n9").obj(), id="the pod is bound"),
        pytest.param(WEB.uid("other").obj(), id="another pod has its name"),
    ],
)
def test_pods_that_no_longer_wait_are_not_nominated(known):
    """A nomination for them would keep room free for nobody."""
    nominator = Nominator({}.get if known is None else {known.pod_key: known}.get)
    nominator.add(WEB.obj(), "n1")
    assert len(nominator) == 0


def test_without_a_store_everybody_is_taken_at_their_word():
    """Simulations have no watch."""
    nominator = Nominator(None)
    nominator.add(WEB.obj(), "n1")
    assert list(nominator.nodes) == ["n1"]


@pytest.mark.parametrize(
    ("old_node", "new_node", "expected"),
    [
        pytest.param("", "", "memory", id="the API server has not heard of it yet"),
        pytest.param("", "n1", "n1", id="the nomination arrived"),
        pytest.param("n1", "n2", "n2", id="the nomination changed"),
        pytest.param("n1", "", None, id="the nomination was taken back"),
    ],
)
def test_update(nominator, old_node, new_node, expected):
    """Memory wins only while neither version of the pod names a node."""
    nominator.add(WEB.obj(), "memory")
    new = WEB.nominated(new_node).label("new", "yes").obj()
    nominator.update(WEB.nominated(old_node).obj(), new)
    assert nominator.node_of(new.uid) == expected
    if expected is not None:
        assert list(nominator.pods_for(expected)) == [new]


def test_removing_an_unknown_pod_is_fine(nominator):
    """Deletions come for pods without a nomination, too."""
    nominator.remove(WEB.obj())
    assert len(nominator) == 0
