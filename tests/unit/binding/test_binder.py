"""Binder: the steps of the binding cycle in their order, and what the core is told."""

import asyncio

import pytest

from scheduler.api import BindPlugin, Code, CycleState, PostBindPlugin, PreBindPlugin, QueuedPodInfo, Status
from scheduler.binding.binder import Binder
from scheduler.framework.runtime import Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.state.outbox import StartBinding
from scheduler.testing import pod


class Volumes(PreBindPlugin):
    """A PreBind plugin with a script."""

    name = "Volumes"

    def __init__(self, diary, flight=None, answer=None):
        self.diary, self.flight, self.answer = diary, flight, answer

    def pre_bind_pre_flight(self, state, pod, node_name):
        self.diary.append("pre-flight")
        return self.flight

    async def pre_bind(self, state, pod, node_name):
        self.diary.append("pre-bind")
        await asyncio.sleep(0)
        return self.answer


class Writes(BindPlugin):
    """A Bind plugin with a script."""

    name = "Writes"

    def __init__(self, diary, answer=None):
        self.diary, self.answer = diary, answer

    async def bind(self, state, pod, node_name):
        self.diary.append(f"bind {pod.name} to {node_name}")
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Celebrates(PostBindPlugin):
    """A PostBind plugin."""

    name = "Celebrates"

    def __init__(self, diary):
        self.diary = diary

    def post_bind(self, state, pod, node_name):
        self.diary.append("post-bind")


class Bench:
    """A real framework with scripted plugins, and a core that keeps a diary."""

    def __init__(self, clock):
        self.clock = clock
        self.diary = []
        self.idle = 0
        self.nominate_fails = None
        self.extender = None
        self.waiting = WaitingPods(clock)
        self.failed_with = None

    def make(self, *, flight=None, pre_bind=None, bind=None, has_pre_bind=True):
        plugins = [Writes(self.diary, bind), Celebrates(self.diary)]
        points = {"bind": ["Writes"], "post_bind": ["Celebrates"]}
        if has_pre_bind:
            plugins.append(Volumes(self.diary, flight, pre_bind))
            points["pre_bind"] = ["Volumes"]
        self.framework = Framework(
            "default-scheduler",
            {plugin.name: plugin for plugin in plugins},
            points,
            waiting=self.waiting,
            perf_counter=self.clock.now,
        )
        options = {} if self.extender is None else {"extender_bind": self.extender}
        self.binder = Binder(self, clock=self.clock, nominate=self._nominate, on_idle=self._idle, **options)
        return self

    def job(self, name="p", *, waits=None):
        assumed = pod(name).obj().on_node("n1")
        if waits:
            self.framework.hold(assumed, waits)
        info = QueuedPodInfo(assumed, 0.0)
        return StartBinding(self.framework, CycleState(), info, assumed, "n1", 0.0, is_waiting=bool(waits))

    def play(self, *jobs, script=None):
        async def run():
            for job in jobs:
                self.binder.start(job)
            if script is not None:
                await script()
            await self.binder.drain(5.0)

        asyncio.run(run())
        assert self.binder.in_flight == 0
        return self.diary

    async def _nominate(self, pod, node_name):
        self.diary.append(f"nominate {node_name}")
        if self.nominate_fails:
            raise self.nominate_fails

    def _idle(self):
        self.idle += 1

    def permit_passed(self, job):
        self.diary.append("permit passed")

    def binding_succeeded(self, job):
        self.diary.append("succeeded")

    def binding_failed(self, job, status):
        self.failed_with = status
        self.diary.append("failed")

    def binding_ended(self, job):
        self.diary.append("ended")


@pytest.fixture
def bench(clock):
    return Bench(clock)


def test_plain_pod(bench):
    """Without PreBind work and without a wait there is nothing to nominate."""
    bench.make(has_pre_bind=False)
    assert bench.play(bench.job()) == ["permit passed", "bind p to n1", "succeeded", "post-bind", "ended"]
    assert bench.idle == 1


def test_pod_with_pre_bind_work_is_nominated_first(bench):
    """Others should know where it will run, because it takes its time."""
    bench.make()
    assert bench.play(bench.job()) == [
        "pre-flight",
        "nominate n1",
        "permit passed",
        "pre-bind",
        "bind p to n1",
        "succeeded",
        "post-bind",
        "ended",
    ]


def test_pre_bind_that_has_nothing_to_do_is_left_out(bench):
    """Skip from the pre-flight."""
    bench.make(flight=Status.skip())
    assert bench.play(bench.job()) == ["pre-flight", "permit passed", "bind p to n1", "succeeded", "post-bind", "ended"]


@pytest.mark.parametrize(
    ("options", "diary", "code", "text"),
    [
        pytest.param(
            {"flight": Status.error("no")},
            ["pre-flight", "failed"],
            Code.ERROR,
            'PreBindPreFlight "Volumes": no',
            id="pre-flight",
        ),
        pytest.param(
            {"pre_bind": Status.error("no")},
            ["pre-flight", "nominate n1", "permit passed", "pre-bind", "failed"],
            Code.ERROR,
            'running PreBind plugin "Volumes": no',
            id="pre-bind fails",
        ),
        pytest.param(
            {"pre_bind": Status.unschedulable("gone")},
            ["pre-flight", "nominate n1", "permit passed", "pre-bind", "failed"],
            Code.UNSCHEDULABLE,
            "gone",
            id="pre-bind rejects",
        ),
        pytest.param(
            {"has_pre_bind": False, "bind": Status.error("409")},
            ["permit passed", "bind p to n1", "failed"],
            Code.ERROR,
            'running Bind plugin "Writes": 409',
            id="bind fails",
        ),
        pytest.param(
            {"has_pre_bind": False, "bind": ValueError("bug")},
            ["permit passed", "bind p to n1", "failed"],
            Code.ERROR,
            'running Bind plugin "Writes": ValueError: bug',
            id="bind raises",
        ),
        pytest.param(
            {"has_pre_bind": False, "bind": Status.skip()},
            ["permit passed", "bind p to n1", "failed"],
            Code.SKIP,
            "",
            id="nobody binds",
        ),
    ],
)
def test_failures(bench, options, diary, code, text):
    """The first failure ends the cycle; PostBind does not run."""
    bench.make(**options)
    assert bench.play(bench.job()) == diary
    assert bench.failed_with.code is code
    assert text in bench.failed_with.message


@pytest.mark.parametrize(
    ("end", "diary"),
    [
        pytest.param(
            lambda held: held.allow("Quota"),
            ["permit passed", "bind p to n1", "succeeded", "post-bind", "ended"],
            id="allowed",
        ),
        pytest.param(lambda held: held.reject("Quota", "no"), ["failed"], id="rejected"),
        pytest.param(lambda held: held.expire(1e12), ["failed"], id="timed out"),
    ],
)
def test_wait_on_permit(bench, end, diary):
    """The pod is nominated, waits without a connection, and goes on or back."""
    bench.make(has_pre_bind=False)
    job = bench.job(waits={"Quota": 60.0})

    async def script():
        await asyncio.sleep(0.01)
        assert (bench.binder.on_hold, bench.binder.in_flight) == (1, 1)
        assert bench.diary == ["nominate n1"]
        end(bench.waiting.get(job.assumed.uid))

    assert bench.play(job, script=script) == ["nominate n1", *diary]
    assert bench.binder.on_hold == 0
    assert bench.waiting.get(job.assumed.uid) is None
    if diary == ["failed"]:
        assert bench.failed_with.is_rejected
        assert bench.failed_with.plugin == "Quota"


def test_wait_that_ended_before_it_began(bench):
    """The result may come while the nomination is written."""
    bench.make(has_pre_bind=False)
    job = bench.job(waits={"Quota": 60.0})
    bench.waiting.get(job.assumed.uid).allow("Quota")
    assert bench.play(job)[-1] == "ended"


def test_failure_before_the_wait_takes_the_pod_off_hold(bench):
    """Nobody must find a pod on hold whose binding cycle has ended."""
    bench.make(flight=Status.error("no"))
    job = bench.job(waits={"Quota": 60.0})
    assert bench.play(job) == ["pre-flight", "failed"]
    assert len(bench.waiting) == 0
    assert bench.waiting.next_timer_s() is None


def test_bug_outside_of_plugins_sends_the_pod_back(bench):
    """The pod does not stay in flight for ever."""
    bench.nominate_fails = RuntimeError("bug")
    bench.make()
    job = bench.job(waits={"Quota": 60.0})
    assert bench.play(job) == ["pre-flight", "nominate n1", "failed"]
    assert bench.failed_with.code is Code.ERROR
    assert "RuntimeError: bug" in bench.failed_with.message
    assert len(bench.waiting) == 0


def test_bug_in_the_core_ends_one_binding_only(bench):
    """Others go on, and the driver is told that a place is free."""
    bench.make(has_pre_bind=False)
    succeeded = bench.binding_succeeded

    def break_once(job):
        if job.assumed.name == "p":
            raise RuntimeError("bug")
        succeeded(job)

    bench.binding_succeeded = break_once
    diary = bench.play(bench.job("p"), bench.job("q"))
    assert diary.count("ended") == 1
    assert bench.idle == 2


@pytest.mark.parametrize(
    ("answer", "diary"),
    [
        pytest.param((True, None), ["permit passed", "extender", "succeeded", "post-bind", "ended"], id="bound"),
        pytest.param((True, Status.error("no")), ["permit passed", "extender", "failed"], id="took it and failed"),
        pytest.param(
            (False, None),
            ["permit passed", "extender", "bind p to n1", "succeeded", "post-bind", "ended"],
            id="did not want it",
        ),
    ],
)
def test_extenders_come_before_bind_plugins(bench, answer, diary):
    """An extender that took the pod has the last word."""

    async def extender(job):
        bench.diary.append("extender")
        return answer

    bench.extender = extender
    bench.make(has_pre_bind=False)
    assert bench.play(bench.job()) == diary


def test_drain_waits_only_so_long(bench):
    """A pod on hold for a quarter of an hour must not keep the daemon from stopping; abandon ends what is left."""
    bench.make(has_pre_bind=False)
    held, quick = bench.job("held", waits={"Quota": 900.0}), bench.job("quick")

    async def run():
        bench.binder.start(held)
        bench.binder.start(quick)
        left = await bench.binder.drain(0.05)
        await bench.binder.abandon()
        await asyncio.sleep(0)
        return left

    assert asyncio.run(run()) == 1
    assert bench.binder.in_flight == 0
    assert bench.binder.on_hold == 0
    assert "failed" not in bench.diary
    assert bench.diary.count("ended") == 1


def test_drain_of_nothing(bench):
    """Returns at once."""
    bench.make()
    assert asyncio.run(bench.binder.drain(100.0)) == 0


def test_many_bindings_at_once(bench):
    """Each has a task of its own; their order does not matter."""
    bench.make(has_pre_bind=False)
    bench.play(*(bench.job(f"p{i}") for i in range(50)))
    assert bench.diary.count("ended") == 50
    assert bench.idle == 50


def test_preparation_can_be_cancelled(bench):
    """Preemption stops a pod in PreBind; before and after that there is nothing to stop."""
    bench.make()
    job = bench.job()
    asked = []

    async def script():
        asked.append(bench.binder.cancel_preparation(job.assumed.uid, "too early"))
        while "pre-bind" not in bench.diary:  # noqa: ASYNC110  the diary is a plain list
            await asyncio.sleep(0)
        asked.append(bench.binder.cancel_preparation(job.assumed.uid, "preempted by P"))

    assert bench.play(job, script=script)[-2:] == ["pre-bind", "failed"]
    assert (bench.failed_with.code, bench.failed_with.message) == (Code.ERROR, "preempted by P")
    asked.append(bench.binder.cancel_preparation(job.assumed.uid, "too late"))
    assert asked == [False, True, False]


def test_abandoned_preparation(bench):
    """Cancelling the binding itself is no failure of the pod."""
    bench.make()
    job = bench.job()

    async def run():
        bench.binder.start(job)
        while "pre-bind" not in bench.diary:  # noqa: ASYNC110  the diary is a plain list
            await asyncio.sleep(0)
        await bench.binder.abandon()

    asyncio.run(run())
    assert "failed" not in bench.diary
