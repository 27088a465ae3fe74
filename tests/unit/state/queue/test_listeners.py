"""Listeners: pods by what they want; the laws of the indexes themselves are in tests/properties/test_waiting_index.py."""

import pytest

from scheduler.api.events import HintIndex
from scheduler.state.queue.listeners import Listeners
from scheduler.testing import pod


def listeners_to(offered):
    """Pods want what their labels name, by namespace; without labels anything."""
    return Listeners(
        HintIndex(
            wanted=lambda waiting: [(waiting.namespace, what) for what in waiting.labels] or None,
            offered=lambda old, new: offered,
        )
    )


def waiting(name, *wanted):
    return pod(name).labels(dict.fromkeys(wanted, "")).obj()


def put(listeners, *pods):
    for each in pods:
        listeners.put(each.pod_key, each)
    return listeners


@pytest.mark.parametrize(
    ("offered", "found"),
    [
        pytest.param([("default", ["a"])], {"one", "both", "any"}, id="what some want"),
        pytest.param(
            [("default", ["a", "b"]), ("shop", ["a"])], {"one", "both", "any", "elsewhere"}, id="here and there"
        ),
        pytest.param([("default", ["a", "b"])], {"one", "both", "any"}, id="each pod once"),
        pytest.param([("default", ["x"]), ("nowhere", ["a"])], {"any"}, id="what nobody wants"),
        pytest.param([], {"any"}, id="nothing"),
        pytest.param(None, {"one", "both", "any", "elsewhere"}, id="it cannot be said"),
    ],
)
def test_an_event_finds_those_who_want_what_it_offers(offered, found):
    """A key has two halves, and both must be equal."""
    elsewhere = pod("elsewhere").in_ns("shop").labels({"a": ""}).obj()
    listeners = put(listeners_to(offered), waiting("one", "a"), waiting("both", "a", "b"), waiting("any"), elsewhere)
    assert {name.split("/")[1] for name in listeners.concerned(None, None)} == found


def test_whoever_leaves_leaves_nothing():
    """The last one takes the key along."""
    one, both, any_ = waiting("one", "a"), waiting("both", "a", "b"), waiting("any")
    listeners = put(listeners_to([("default", ["a", "b"])]), one, both, any_)
    assert len(listeners) == 3
    for each in (both, any_, one):
        listeners.remove(each.pod_key)
    assert len(listeners) == 0
    assert not listeners.concerned(None, None)
    assert listeners._by_key == {}


def test_nothing_is_asked_of_an_event_that_nobody_waits_for():
    """Pods that want anything are found without a look at the event."""
    looked_at = []
    index = HintIndex(wanted=lambda waiting: None, offered=lambda old, new: looked_at.append(new) or [])
    listeners = put(Listeners(index), waiting("any"))
    assert list(listeners.concerned(None, None)) == ["default/any"]
    assert looked_at == []


def test_an_index_that_fails_finds_everybody():
    """A bug may cost vain questions, but it never strands a pod."""

    def fails(*_args):
        raise ValueError("bug")

    def fails_later(_old, _new):
        yield "default", ["a"]
        raise ValueError("bug")

    one, two = waiting("one", "a"), waiting("two", "b")
    wanted = listeners_to([])._index.wanted
    for index in (HintIndex(fails, lambda old, new: []), HintIndex(wanted, fails), HintIndex(wanted, fails_later)):
        assert set(put(Listeners(index), one, two).concerned(None, None)) == {"default/one", "default/two"}


def test_an_event_that_cannot_be_read_finds_those_who_want_nothing():
    """A pod that no key helps may yet be helped by what the index does not know."""
    index = HintIndex(wanted=lambda waiting: (), offered=lambda old, new: new)
    listeners = put(Listeners(index), waiting("nothing"))
    assert list(listeners.concerned(None, None)) == ["default/nothing"]
    assert list(listeners.concerned(None, [("default", ["a"])])) == []
