"""Binding through an extender: who is asked, and what is made of what it says."""

import asyncio

import pytest

from scheduler.api import CycleState, ExtenderError, QueuedPodInfo
from scheduler.binding.extender_bind import ExtenderBinding
from scheduler.framework.binding import run_inline
from scheduler.kube.errors import TransportError
from scheduler.kube.writes import Assignment
from scheduler.state.outbox import StartBinding
from scheduler.state.outcome import BindFailure, BindOutcome
from scheduler.testing import pod

POD = pod("p").uid("u").obj().on_node("n1")
OURS, OPEN, THEIRS, OTHER = Assignment("u", "n1"), Assignment("u", ""), Assignment("u", "n9"), Assignment("x", "n1")
NO_ANSWER = TransportError("cut", sent=True)


class Extender:
    """Binds as told."""

    def __init__(self, error=None, *, is_binder=True, interested=True, ignorable=False):
        self.name = "http://x"
        self.error, self.asked = error, 0
        self.is_binder, self.interested, self.is_ignorable = is_binder, interested, ignorable

    def is_interested(self, pod):
        return self.interested

    def bind(self, pod, node_name):
        self.asked += 1
        assert (pod, node_name) == (POD, "n1")
        if self.error is not None:
            raise self.error


def offer(*extenders, reads=(OURS,), may_write=lambda _within_s: True, known=lambda _pod: None):
    """Return whether the pod was taken, its status, and how long it took."""
    left, slept = list(reads), []

    async def read(pod):
        step = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(step, Exception):
            raise step
        return step

    async def sleep(seconds):
        slept.append(seconds)

    hook = ExtenderBinding(extenders, run_blocking=run_inline, read=read, may_write=may_write, known=known, sleep=sleep)
    job = StartBinding(None, CycleState(), QueuedPodInfo(POD, 0.0), POD, "n1", 0.0)
    taken, status = asyncio.run(hook(job))
    return taken, status, sum(slept)


@pytest.mark.parametrize(
    "extenders",
    [
        pytest.param([], id="no extenders"),
        pytest.param([Extender(is_binder=False)], id="none that binds"),
        pytest.param([Extender(interested=False)], id="none that is interested"),
        pytest.param([Extender(ExtenderError("down"), ignorable=True)], id="one that fails and may be ignored"),
    ],
)
def test_not_taken(extenders):
    """The Bind plugins are asked instead."""
    assert offer(*extenders) == (False, None, 0)


def test_first_interested_extender_decides():
    """Nobody else is asked after it."""
    first, second = Extender(), Extender()
    assert offer(Extender(ExtenderError("down"), ignorable=True), first, second) == (True, None, 0.0)
    assert (first.asked, second.asked) == (1, 0)


@pytest.mark.parametrize(
    ("error", "reads", "waited_s", "text"),
    [
        pytest.param(None, [OPEN, OPEN, OURS], 1.2, None, id="bound a little later"),
        pytest.param(
            None,
            [OPEN],
            4.2,
            "extender http://x says that it bound the pod, but it is not bound to n1",
            id="a lie",
        ),
        pytest.param(None, [NO_ANSWER], 4.2, None, id="nobody can say otherwise"),
        pytest.param(ExtenderError("timeout"), [OURS], 0.0, None, id="only its answer was lost"),
        pytest.param(ExtenderError("timeout"), [NO_ANSWER, OURS], 1.0, None, id="read at the second try"),
        pytest.param(ExtenderError("refused"), [OPEN], 1.0, "refused", id="failed"),
        pytest.param(ExtenderError("refused"), [*[NO_ANSWER] * 5, OPEN], 9.0, "refused", id="failed, as is known late"),
        pytest.param(ExtenderError("timeout"), [*[NO_ANSWER] * 5, OURS], 9.0, None, id="bound, as is known late"),
    ],
)
def test_what_is_true(error, reads, waited_s, text):
    """The pod is read back; what is there counts, not what the extender says."""
    taken, status, slept_s = offer(Extender(error), reads=reads)
    assert taken
    assert slept_s == pytest.approx(waited_s)
    assert (None if status is None else status.message) == text


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [
        pytest.param(POD, None, id="on our node"),
        pytest.param(POD.on_node("n9"), BindOutcome.LOST, id="on another node"),
        pytest.param(pod("p").uid("x").obj(), BindOutcome.GONE, id="created anew"),
    ],
)
def test_what_the_watch_shows_ends_the_wait_for_an_api_server_that_does_not_answer(shown, outcome):
    """It may be that we are not allowed to read pods, only to watch them."""
    versions = iter([None, pod("p").uid("u").obj()])
    taken, status, _ = offer(Extender(ExtenderError("down")), reads=[NO_ANSWER], known=lambda _: next(versions, shown))
    assert taken
    assert status is None if outcome is None else status.cause.outcome is outcome


@pytest.mark.parametrize(
    ("reads", "unknown"),
    [
        pytest.param([OPEN, OURS], [0, 0], id="read at once"),
        pytest.param([NO_ANSWER, NO_ANSWER, OURS], [0, 1, 1, 0], id="not read for a while"),
    ],
)
def test_pod_that_cannot_be_read_back_counts_as_unknown(reads, unknown):
    """It keeps its room and nothing more: were it a bind under way, a few of them would stop all decisions."""
    left, seen = list(reads), []

    async def read(_pod):
        seen.append(hook.unknown)
        step = left.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def sleep(_seconds):
        pass

    hook = ExtenderBinding([Extender(ExtenderError("timeout"))], run_blocking=run_inline, read=read, sleep=sleep)
    job = StartBinding(None, CycleState(), QueuedPodInfo(POD, 0.0), POD, "n1", 0.0)
    assert asyncio.run(hook(job)) == (True, None)
    assert [*seen, hook.unknown][: len(unknown)] == unknown
    assert hook.unknown == 0


def test_extender_is_asked_when_nothing_more_is_being_said_about_the_pod():
    """What is said later would deny the binding."""
    extender, silent_when_asked = Extender(), []

    async def fall_silent(silent):
        assert silent == POD
        silent_when_asked.append(extender.asked)

    hook = ExtenderBinding([extender], run_blocking=run_inline, read=_ours, fall_silent=fall_silent)
    job = StartBinding(None, CycleState(), QueuedPodInfo(POD, 0.0), POD, "n1", 0.0)
    assert asyncio.run(hook(job)) == (True, None)
    assert (silent_when_asked, extender.asked) == ([0], 1)


async def _ours(_pod):
    return OURS


def test_without_the_lease_nobody_is_asked():
    """Another leader may have decided meanwhile."""
    extender = Extender()
    taken, status, _ = offer(extender, may_write=lambda _within_s: False)
    assert (taken, extender.asked) == (True, 0)
    assert status.cause.outcome is BindOutcome.UNREACHABLE


@pytest.mark.parametrize(
    ("reading", "outcome"),
    [
        pytest.param(THEIRS, BindOutcome.LOST, id="another node"),
        pytest.param(OTHER, BindOutcome.GONE, id="another pod of that name"),
        pytest.param(None, BindOutcome.GONE, id="no pod"),
    ],
)
def test_final_outcomes(reading, outcome):
    """Nothing is left to do for the pod; it is dropped, not retried."""
    _, status, _ = offer(Extender(), reads=[reading])
    assert isinstance(status.cause, BindFailure)
    assert status.cause.outcome is outcome
