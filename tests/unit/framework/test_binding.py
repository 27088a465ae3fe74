"""PreBind with pre-flight, Bind, PostBind: async or plain, first that handles, faults."""

import asyncio
from collections.abc import Awaitable

import pytest

from scheduler.api import BindPlugin, Code, CycleState, PostBindPlugin, PreBindPlugin, Status
from scheduler.framework.binding import BindingPoints
from scheduler.framework.calls import Calls
from scheduler.framework.guard import Guard
from scheduler.testing.builders import pod

WEB = pod("web").obj()


class Pre(PreBindPlugin):
    def __init__(self, name, flight=None, answer=None):
        self.name = name
        self.flight = flight
        self.answer = answer
        self.calls = 0

    def pre_bind_pre_flight(self, state, pod, node_name):
        return self.flight

    async def pre_bind(self, state, pod, node_name):
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("flights", "status", "skipped"),
    [
        pytest.param([], Status.skip(), set(), id="no plugin: nothing to do"),
        pytest.param([Status.skip(), Status.skip()], Status.skip(), {"P0", "P1"}, id="all skip"),
        pytest.param([Status.skip(), None], None, {"P0"}, id="one has work"),
        pytest.param(
            [Status.error("boom")], Status.error('running PreBindPreFlight "P0": boom').by("P0"), set(), id="error"
        ),
        pytest.param(
            [Status.unschedulable("no")],
            Status.error(
                'PreBindPreFlight P0 returned "Unschedulable", which is unsupported. '
                "It is supposed to return Success, Skip, or Error status"
            ).by("P0"),
            set(),
            id="a rejection is not allowed",
        ),
    ],
)
def test_pre_flight(framework_of, flights, status, skipped):
    """The pre-flight says whether PreBind will take time."""
    plugins = [Pre(f"P{i}", flight) for i, flight in enumerate(flights)]
    state = CycleState()
    assert framework_of(pre_bind=plugins).run_pre_bind_pre_flight(state, WEB, "n1") == status
    assert state.skip_pre_bind_plugins == skipped


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(None, None, id="success"),
        pytest.param(Status.unschedulable("gone"), Status.unschedulable("gone").by("P"), id="rejection"),
        pytest.param(Status.error("boom"), Status.error('running PreBind plugin "P": boom').by("P"), id="error"),
        pytest.param(Status.skip(), Status.error('running PreBind plugin "P": ').by("P"), id="skip comes too late"),
    ],
)
def test_pre_bind(framework_of, metrics, answer, status):
    """The first objection ends PreBind."""
    last = Pre("Last")
    framework = framework_of(pre_bind=[Pre("P", answer=answer), last])
    assert asyncio.run(framework.run_pre_bind(CycleState(), WEB, "n1")) == status
    assert last.calls == (1 if status is None else 0)
    assert metrics.points == [("PreBind", "Success" if status is None else str(status.code))]


def test_pre_bind_keeps_the_cause(framework_of):
    """An exception in a plugin is the cause of the Error."""
    error = TimeoutError("volume")
    status = asyncio.run(framework_of(pre_bind=[Pre("P", answer=error)]).run_pre_bind(CycleState(), WEB, "n1"))
    assert status == Status(Code.ERROR, ('running PreBind plugin "P": TimeoutError: volume',), "P", error)


def test_skipped_pre_bind_plugins_do_not_run(framework_of):
    """What skipped the pre-flight is left out."""
    plugin = Pre("P", answer=Status.error("boom"))
    state = CycleState()
    state.skip_pre_bind_plugins = {"P"}
    assert asyncio.run(framework_of(pre_bind=[plugin]).run_pre_bind(state, WEB, "n1")) is None
    assert plugin.calls == 0


class AsyncBind(BindPlugin):
    def __init__(self, name, answer):
        self.name = name
        self.answer = answer

    async def bind(self, state, pod, node_name):
        return self.answer


class AwaitableBind(AsyncBind):
    def bind(self, state, pod, node_name) -> Awaitable[Status | None]:
        return super().bind(state, pod, node_name)


class PlainBind(AsyncBind):
    def bind(self, state, pod, node_name):
        return self.answer


@pytest.mark.parametrize("kind", [AsyncBind, AwaitableBind, PlainBind])
@pytest.mark.parametrize(
    ("answers", "status"),
    [
        pytest.param([], Status.skip(), id="nobody binds"),
        pytest.param([Status.skip(), Status.skip()], Status.skip(), id="all skip"),
        pytest.param([Status.skip(), None, Status.error("x")], None, id="the first that handles decides"),
        pytest.param(
            [Status.error("conflict"), None],
            Status.error('running Bind plugin "B0": conflict').by("B0"),
            id="an error is final",
        ),
        pytest.param([Status.unschedulable("no")], Status.unschedulable("no").by("B0"), id="a rejection is final"),
    ],
)
def test_bind(framework_of, kind, answers, status):
    """Bind plugins are asked until one does not skip, whatever their form."""
    plugins = [kind(f"B{i}", answer) for i, answer in enumerate(answers)]
    assert asyncio.run(framework_of(bind=plugins).run_bind(CycleState(), WEB, "n1")) == status


def test_bind_errors_keep_their_cause(framework_of):
    """The core reads the bind's outcome from the cause."""
    error = RuntimeError("lost")
    framework = framework_of(bind=[AsyncBind("B", Status.error("lost", error))])
    assert asyncio.run(framework.run_bind(CycleState(), WEB, "n1")).cause is error


def test_plain_methods_run_where_they_may_block(metrics):
    """Only plain methods go to the pool; async ones and declared awaitables stay on the loop."""
    pooled = []

    async def run_blocking(function):
        pooled.append(True)
        return function()

    calls = Calls("p", Guard(metrics, lambda: 0.0), metrics, lambda: 0.0)
    skip = Status.skip()
    plugins = [AsyncBind("A", skip), AwaitableBind("B", skip), PlainBind("C", None)]
    points = BindingPoints([], plugins, [], calls, run_blocking)
    assert asyncio.run(points.run_bind(CycleState(), WEB, "n1")) is None
    assert pooled == [True]


class Post(PostBindPlugin):
    def __init__(self, name, told, error=None):
        self.name = name
        self.told = told
        self.error = error

    def post_bind(self, state, pod, node_name):
        self.told.append(self.name)
        if self.error is not None:
            raise self.error


def test_post_bind_reaches_all(framework_of, metrics):
    """The pod is bound; a raising plugin changes nothing for the others."""
    told = []
    framework = framework_of(post_bind=[Post("A", told, OSError("x")), Post("B", told)])
    asyncio.run(framework.run_post_bind(CycleState(record_plugin_metrics=True), WEB, "n1"))
    assert told == ["A", "B"]
    assert metrics.faults == [("A", "PostBind", "exception")]
    assert metrics.durations == [("PostBind", "B", "Success")]
