"""The guard turns whatever a plugin does wrong into an Error that names it."""

import asyncio

import pytest

from scheduler.api import Code, Status
from scheduler.framework.guard import Guard, PluginFault
from scheduler.framework.metrics import FAULT_BAD_ANSWER, FAULT_EXCEPTION, FAULT_OVERRUN


class BrokenError(Exception):
    def __str__(self):
        raise RuntimeError("even the text is broken")


def raising(error):
    def function():
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ValueError("bad zone"), "ValueError: bad zone", id="text of the exception is kept"),
        pytest.param(KeyError(), "KeyError", id="an exception without text shows its type"),
        pytest.param(BrokenError(), "BrokenError: (no text: its __str__ raised)", id="broken exceptions are survived"),
        pytest.param(
            RecursionError("deep"), "RecursionError: deep", id="runaway recursion is an exception like others"
        ),
    ],
)
def test_exceptions_become_faults(metrics, error, text):
    """An exception becomes a fault, counted, whose status names plugin and point."""
    guard = Guard(metrics, lambda: 0.0)
    with pytest.raises(PluginFault) as caught:
        guard.call("Zones", "Filter", raising(error))
    status = caught.value.status('running "%s" filter plugin')
    assert status == Status(Code.ERROR, (f'running "Zones" filter plugin: {text}',), plugin="Zones", cause=error)
    assert metrics.faults == [("Zones", "Filter", FAULT_EXCEPTION)]


def test_interrupts_pass_through(metrics):
    """Only Exceptions are the plugin's; an interrupt is for the process."""
    guard = Guard(metrics, lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        guard.call("Zones", "Filter", raising(KeyboardInterrupt()))
    assert metrics.faults == []


def test_awaited_exceptions_become_faults(metrics):
    """The binding cycle's plugins are guarded in the same way."""
    guard = Guard(metrics, lambda: 0.0)

    async def bind():
        raise OSError("refused")

    with pytest.raises(PluginFault, match="OSError: refused"):
        asyncio.run(guard.call_async("Mine", "Bind", bind))
    assert metrics.faults == [("Mine", "Bind", FAULT_EXCEPTION)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(True, "returned bool (True) where", id="a bool is no status"),
        pytest.param("no room", "returned str ('no room') where", id="a text is no status"),
        pytest.param((None, None), "returned tuple where", id="a pair is no status"),
        pytest.param(Status(Code.ERROR, "text"), "returned Status where", id="reasons must be a tuple"),
        pytest.param(Status(Code.ERROR, (1,)), "returned Status where", id="reasons must be texts"),
        pytest.param(Status(7), "returned Status where", id="the code must be a Code"),
    ],
)
def test_nonsense_answers_are_faults(metrics, answer, text):
    """What is no Status is a fault, not a verdict."""
    guard = Guard(metrics, lambda: 0.0)
    with pytest.raises(PluginFault) as caught:
        guard.status("Zones", "Filter", answer)
    assert text in str(caught.value)
    assert metrics.faults == [("Zones", "Filter", FAULT_BAD_ANSWER)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(None, None, id="None is success"),
        pytest.param(Status(Code.SUCCESS), None, id="an explicit success is success"),
        pytest.param(Status.skip(), Status.skip(), id="skip stays"),
        pytest.param(Status.unschedulable("no"), Status.unschedulable("no"), id="a rejection stays"),
    ],
)
def test_proper_answers_pass(metrics, answer, expected):
    """Success has one form afterwards: None."""
    assert Guard(metrics, lambda: 0.0).status("Zones", "Filter", answer) == expected


def test_plugins_with_a_budget_of_their_own(metrics):
    """A shorter one does not hold for others; who asked is told, and whether it was logged."""
    times = iter([0.0, 0.2, 1.0, 1.2, 2.0, 2.2, 3.0, 3.2])
    told = []
    guard = Guard(metrics, lambda: next(times), budget_s=5.0)
    guard.watch("Slow", 0.1, lambda point, seconds, is_told: told.append((point, round(seconds, 6), is_told)))
    guard.call("Other", "Score", lambda: 42)
    for _ in range(3):
        guard.call("Slow", "Score", lambda: 42)
    assert metrics.faults == [("Slow", "Score", FAULT_OVERRUN)] * 3
    assert told == [("Score", 0.2, True), ("Score", 0.2, True), ("Score", 0.2, False)]


def test_faults_that_are_booked_already_pass_through(metrics):
    """The shield has counted them under the plugin's own name."""
    fault = PluginFault("Mine", "Filter", "odd")
    guard = Guard(metrics, lambda: 0.0)
    with pytest.raises(PluginFault) as caught:
        guard.call("", "Filter", raising(fault))
    assert caught.value is fault

    async def bind():
        raise fault

    with pytest.raises(PluginFault):
        asyncio.run(guard.call_async("Mine", "Bind", bind))
    assert metrics.faults == []


def test_overruns_are_counted_and_answers_stand(metrics):
    """A slow plugin is counted each time; its answer counts as well."""
    times = iter([0.0, 0.2, 1.0, 1.05, 2.0, 2.3])
    guard = Guard(metrics, lambda: next(times), budget_s=0.1)
    answers = [guard.call("Slow", "Score", lambda: 42) for _ in range(3)]
    assert answers == [42, 42, 42]
    assert metrics.faults == [("Slow", "Score", FAULT_OVERRUN)] * 2
    assert guard.last_s == pytest.approx(0.3)
