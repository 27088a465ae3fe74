"""Barrier: no decision before everything that must be known is known."""

import pytest

from scheduler.intake.barrier import Barrier
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.storage import CSINode


@pytest.fixture
def barrier():
    return Barrier([Pod, Node], [CSINode])


def test_opens_when_all_kinds_are_delivered(barrier):
    """In any order; more than once is fine."""
    assert not barrier.is_open
    assert barrier.missing == ["CSINode", "Node", "Pod"]
    for kind in (Node, CSINode, Node):
        barrier.synced(kind)
    assert barrier.missing == ["Pod"]
    barrier.synced(Pod)
    assert barrier.is_open


def test_optional_kind_that_cannot_be_read_holds_up_nobody(barrier):
    """The reason is kept for health checks, until the kind can be read after all."""
    barrier.unreadable(CSINode, "403 Forbidden")
    assert barrier.missing == ["Node", "Pod"]
    assert barrier.unavailable == {CSINode: "403 Forbidden"}
    barrier.synced(CSINode)
    assert not barrier.unavailable


def test_required_kind_that_cannot_be_read_keeps_it_shut(barrier):
    """Deciding without pods or nodes would book nodes twice."""
    for kind in (CSINode, Node):
        barrier.synced(kind)
    barrier.unreadable(Pod, "403 Forbidden")
    assert not barrier.is_open
    assert barrier.missing == ["Pod"]


def test_stays_open(barrier):
    """A kind that becomes unreadable later does not stop decisions."""
    for kind in (Pod, Node, CSINode):
        barrier.synced(kind)
    barrier.unreadable(Pod, "500")
    assert barrier.is_open


def test_nothing_to_wait_for():
    """An empty barrier is open."""
    assert Barrier([]).is_open
