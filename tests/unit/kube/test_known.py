"""Bookkeeping of what was told: what intake believes is what the server has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kube.known import Known, is_older
from scheduler.model.delta import Added, Changed, Rejected, Removed
from scheduler.model.meta import ObjectMeta
from scheduler.model.node import Node


def node(name, uid, version):
    return Node(metadata=ObjectMeta(name=name, uid=uid, resource_version=str(version)))


@pytest.mark.parametrize(
    ("version", "than", "expected"),
    [
        pytest.param("9", "10", True, id="fewer digits"),
        pytest.param("11", "12", True, id="same digits"),
        pytest.param("12", "12", False, id="equal"),
        pytest.param("13", "12", False, id="newer"),
        pytest.param("", "12", False, id="no version says nothing"),
        pytest.param("a1", "b1", False, id="opaque versions say nothing"),
    ],
)
def test_is_older(version, than, expected):
    """Versions are compared as numbers, or not at all."""
    assert is_older(version, than) is expected


class Believer:
    """Applies deltas strictly, as intake would."""

    def __init__(self):
        self.objects = {}

    def __call__(self, delta):
        match delta:
            case Added(obj):
                assert obj.name not in self.objects
                self.objects[obj.name] = obj
            case Changed(old, obj):
                assert self.objects[obj.name] == old
                assert old.uid == obj.uid
                self.objects[obj.name] = obj
            case Removed(obj):
                assert self.objects.pop(obj.name).uid == obj.uid


NAMES = "abc"
ACTIONS = st.sampled_from(["write", "delete", "recreate", "lose", "relist", "repeat"])


@given(st.lists(st.tuples(ACTIONS, st.sampled_from(NAMES)), max_size=40))
def test_belief_equals_truth_after_a_list(history):
    """Whatever events are lost or repeated: deltas are consistent, and a list repairs all."""
    believer = Believer()
    known = Known(believer)
    truth, sent, version = {}, [], 0
    for action, name in [*history, ("relist", "a")]:
        version += 1
        if action == "relist":
            known.begin_list()
            for obj in truth.values():
                known.put(obj)
            known.finish_list()
            assert believer.objects == truth
            continue
        if action == "repeat":
            for kind, obj in sent[-2:]:
                known.put(obj) if kind == "put" else known.remove(obj)
            continue
        is_lost = action in {"lose", "recreate"}
        if action == "delete":
            if name not in truth:
                continue
            event = ("remove", node(name, truth.pop(name).uid, version))
        else:
            uid = f"u{version}" if action == "recreate" or name not in truth else truth[name].uid
            truth[name] = node(name, uid, version)
            event = ("put", truth[name])
        sent.append(event)
        if not is_lost or action == "recreate":
            known.put(event[1]) if event[0] == "put" else known.remove(event[1])


def test_deletion_of_a_rejected_version_removes_the_known_one():
    """The last state that we understood is told as stale."""
    told = []
    known = Known(told.append)
    known.put(node("a", "u", 1))
    assert known.remove(Rejected(Node, "", "a", "u", "2", "bad"))
    assert told[1:] == [Removed(node("a", "u", 1), is_stale=True)]


def test_rejected_object_of_a_new_uid_ends_the_old_one():
    """The name belongs to someone else now, even if we cannot understand who."""
    told = []
    known = Known(told.append)
    known.put(node("a", "u1", 1))
    bad = Rejected(Node, "", "a", "u2", "2", "bad")
    assert known.reject(bad)
    assert not known.reject(bad)
    assert told[1:] == [Removed(node("a", "u1", 1), is_stale=True), bad]
