"""Extenders with the preempt verb."""

import pytest

from scheduler.api import ExtenderError, Status, Victims
from scheduler.plugins.default_preemption.consent import ask_extenders
from scheduler.testing import pod

POD = pod("p").obj()
ON_A, ON_B = Victims((pod("v1").obj(),)), Victims((pod("v2").obj(),), 1)
BOTH = {"a": ON_A, "b": ON_B}


class Extender:
    """Answers as told; keeps what it was asked."""

    def __init__(self, answer, *, ignorable=False, supports=True, interested=True):
        self.name = "http://x"
        self.answer, self.asked = answer, []
        self.is_ignorable, self.supports_preemption, self.interested = ignorable, supports, interested

    def is_interested(self, pod):
        return self.interested

    def preempt(self, pod, victims, nodes):
        self.asked.append(victims)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def ask(*extenders, candidates=BOTH):
    return ask_extenders(extenders, POD, dict(candidates), None)


def test_each_sees_what_the_one_before_left():
    """Candidates are struck off one extender after the other."""
    first, second = Extender({"a": ON_A}), Extender({"a": ON_B})
    assert ask(first, second) == {"a": ON_B}
    assert (first.asked, second.asked) == ([BOTH], [{"a": ON_A}])


@pytest.mark.parametrize(
    "skipped",
    [
        pytest.param(Extender({}, supports=False), id="without the verb"),
        pytest.param(Extender({}, interested=False), id="not interested"),
        pytest.param(Extender(ExtenderError("down"), ignorable=True), id="broken but ignorable"),
    ],
)
def test_who_has_no_say(skipped):
    """The candidates stay as they were."""
    assert ask(skipped) == BOTH


def test_nobody_left():
    """Once no candidate is left, nobody is asked any more."""
    after = Extender(BOTH)
    assert ask(Extender({}), after) == {}
    assert after.asked == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(ExtenderError("down"), "down", id="the call fails"),
        pytest.param(
            {"a": ON_A, "b": Victims(())}, 'expected at least one victim pod on node "b"', id="a node without victims"
        ),
    ],
)
def test_errors_end_the_preemption(answer, text):
    """Without its consent nobody is evicted."""
    status = ask(Extender(answer))
    assert isinstance(status, Status)
    assert status.message == text


def test_ignorable_extender_without_victims():
    """The node is left out instead."""
    assert ask(Extender({"a": ON_A, "b": Victims(())}, ignorable=True)) == {"a": ON_A}
