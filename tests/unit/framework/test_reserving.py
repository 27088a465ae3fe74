"""Reserve in order, Unreserve in reverse, Permit with capped waits."""

import math

import pytest

from scheduler.api import Code, CycleState, PermitPlugin, ReservePlugin, Status
from scheduler.testing.builders import pod

WEB = pod("web").obj()


class Fake(ReservePlugin):
    def __init__(self, name, answer, calls):
        self.name = name
        self.answer = answer
        self.calls = calls

    def reserve(self, state, pod, node_name):
        self.calls.append(f"+{self.name}")
        return self.answer

    def unreserve(self, state, pod, node_name):
        self.calls.append(f"-{self.name}")
        if self.answer == "raise":
            raise OSError


def test_reserve_stops_at_the_first_objection(framework_of):
    """Later plugins are not asked; unreserve reaches all, in reverse order."""
    calls = []
    plugins = [Fake("A", None, calls), Fake("B", Status.unschedulable("full"), calls), Fake("C", None, calls)]
    framework = framework_of(reserve=plugins)
    assert framework.run_reserve(CycleState(), WEB, "n1") == Status.unschedulable("full").by("B")
    framework.run_unreserve(CycleState(), WEB, "n1")
    assert calls == ["+A", "+B", "-C", "-B", "-A"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(Status.error("boom"), 'running Reserve plugin "A": boom', id="error"),
        pytest.param(Status.skip(), 'running Reserve plugin "A": ', id="skip is no answer here"),
        pytest.param(
            {}, 'running Reserve plugin "A": returned dict where a Status or None was expected', id="nonsense"
        ),
    ],
)
def test_reserve_faults(framework_of, answer, text):
    """Whatever is no rejection is an Error in upstream's words."""
    status = framework_of(reserve=[Fake("A", answer, [])]).run_reserve(CycleState(), WEB, "n1")
    assert (status.code, status.message, status.plugin) == (Code.ERROR, text, "A")


def test_a_raising_unreserve_does_not_stop_the_others(framework_of, metrics):
    """Everybody gets the chance to give back."""
    calls = []
    framework = framework_of(reserve=[Fake("A", None, calls), Fake("B", "raise", calls)])
    framework.run_unreserve(CycleState(), WEB, "n1")
    assert calls == ["-B", "-A"]
    assert metrics.faults == [("B", "Unreserve", "exception")]
    assert metrics.points == [("Unreserve", "Success")]


class Permits(PermitPlugin):
    def __init__(self, name, answer):
        self.name = name
        self.answer = answer

    def permit(self, state, pod, node_name):
        return self.answer


WAITED = "one or more plugins asked to wait and no plugin rejected pod"


@pytest.mark.parametrize(
    ("answers", "status", "waits"),
    [
        pytest.param([(None, 0)], None, {}, id="allowed"),
        pytest.param([(Status.wait(), 10)], Status.wait(WAITED), {"P0": 10.0}, id="one waits"),
        pytest.param(
            [(Status.wait("gang"), 10), (None, 0), (Status.wait(), 3600)],
            Status.wait(WAITED),
            {"P0": 10.0, "P2": 900.0},
            id="two wait, the longer wait is capped at 15 minutes",
        ),
        pytest.param(
            [(Status.wait(), 10), (Status.unschedulable("no"), 0), (None, 0)],
            Status.unschedulable("no").by("P1"),
            {"P0": 10.0},
            id="a rejection beats a wait",
        ),
        pytest.param(
            [(Status.error("boom"), 0)],
            Status.error('running Permit plugin "P0": boom').by("P0"),
            {},
            id="an error ends it",
        ),
        pytest.param(
            [None],
            Status.error(
                'running Permit plugin "P0": returned NoneType where a pair (Status or None, seconds) was expected'
            ).by("P0"),
            {},
            id="nonsense: no pair",
        ),
        pytest.param(
            [(Status.wait(), math.nan)],
            Status.error('running Permit plugin "P0": returned float (nan) where a number of seconds was expected').by(
                "P0"
            ),
            {},
            id="nonsense: not a number of seconds",
        ),
    ],
)
def test_permit(framework_of, answers, status, waits):
    """The answers become one status, waits are kept by plugin."""
    plugins = [Permits(f"P{i}", answer) for i, answer in enumerate(answers)]
    got, got_waits = framework_of(permit=plugins).run_permit(CycleState(), WEB, "n1")
    if got is not None and got.cause is not None:
        got = Status(got.code, got.reasons, got.plugin)
    assert (got, got_waits) == (status, waits)


def test_end_of_a_wait(framework_of, metrics, clock):
    """The result of the wait is handed out once, its length observed."""
    framework = framework_of()
    held = framework.hold(WEB, {"P": 60})
    assert framework.waiting.get(WEB.uid) is held
    clock.advance(5)
    held.reject("P", "no gang")
    assert framework.end_wait(WEB, clock.now()) == Status.unschedulable("no gang").by("P")
    assert framework.end_wait(WEB, clock.now()) is None
    assert metrics.waits == [("Unschedulable", 5.0)]
