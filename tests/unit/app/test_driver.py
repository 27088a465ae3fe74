"""The driver's turns: input before decisions, decisions handed over at once, and no sleep longer than is good."""

import asyncio

import pytest

from scheduler.app import driver as driver_module
from scheduler.app.driver import Driver
from scheduler.app.outside import Outside
from scheduler.model.delta import Added
from scheduler.state.inbox import Inbox
from scheduler.testing import FakeClock, pod


class Core:
    """A core that notes what is done to it."""

    def __init__(self, ready=0):
        self.ready, self.done, self.outbox, self.timer_s = ready, [], [], None
        self.turns = 0

    def apply(self, delta):
        self.done.append(f"apply {delta.obj.name}")
        self.ready += 1

    def schedule_one(self):
        if not self.ready:
            return False
        self.ready -= 1
        self.done.append("decide")
        self.outbox.append("bind")
        return True

    def has_ready(self):
        return self.ready > 0

    def run_timers(self, now_s):
        self.turns += 1
        if self.timer_s is not None and now_s >= self.timer_s:
            self.done.append("timer")
            self.timer_s = None

    def next_timer_s(self):
        return self.timer_s

    def drain_outbox(self):
        given, self.outbox = self.outbox, []
        return given


class Bench:
    def __init__(self, core):
        self.core, self.clock, self.may, self.leads = core, FakeClock(), True, True
        self.perf_s = 0.0
        self.idle_after = []
        self.inbox = Inbox(self._on_push)

    def _note_idle(self):
        self.idle_after.append(list(self.core.done))

    def _on_push(self):
        self.wake.set()

    def play(self, script):
        """Run the driver beside a script, for at most 5 s."""

        async def run():
            self.wake = asyncio.Event()
            driver = Driver(
                self.core,
                self.inbox,
                carry_out=self.core.done.append,
                may_decide=lambda: self.may,
                is_leading=lambda: self.leads,
                outside=Outside(clock=self.clock, perf_counter=lambda: self.perf_s, when_idle=self._note_idle),
                wake=self.wake,
            )
            task = asyncio.create_task(driver.run())
            async with asyncio.timeout(5):
                await script(self)
                driver.stop()
                await task
            assert not driver.is_in_turn

        asyncio.run(run())

    async def until(self, condition):
        while not condition():  # noqa: ASYNC110  plain values of the core
            await asyncio.sleep(0.001)


@pytest.fixture
def bench():
    return Bench(Core())


def test_what_has_arrived_is_applied_before_deciding(bench):
    """And each decision is carried out before the next one is made."""
    for name in "ab":
        bench.inbox._items.append(Added(pod(name).obj()))

    async def script(bench):
        await bench.until(lambda: len(bench.core.done) == 6)

    bench.play(script)
    assert bench.core.done == ["apply a", "apply b", "decide", "bind", "decide", "bind"]


def test_idle_moment_comes_when_all_is_decided_and_not_before(bench):
    """What is done then makes no pod wait that is there already."""
    for name in "ab":
        bench.inbox._items.append(Added(pod(name).obj()))

    async def script(bench):
        await bench.until(lambda: bench.idle_after)

    bench.play(script)
    assert bench.idle_after[0] == ["apply a", "apply b", "decide", "bind", "decide", "bind"]


def test_commands_run_between_decisions(bench):
    """Whoever asks the core something is answered on its thread."""

    async def script(bench):
        bench.inbox.call(lambda: bench.core.done.append("command"))
        await bench.until(lambda: bench.core.done)

    bench.play(script)
    assert bench.core.done == ["command"]


def test_nothing_is_decided_while_it_may_not(bench):
    """Input is taken in all the same: a standby is warm."""
    bench.may = False

    async def script(bench):
        bench.inbox.push(Added(pod("a").obj()))
        await bench.until(lambda: bench.core.done)
        await asyncio.sleep(0.01)

    bench.play(script)
    assert bench.core.done == ["apply a"]


def test_deciding_goes_on_when_it_may_again_although_nobody_says_so(bench):
    """Regression: after a renewed lease the driver slept for up to 30 s, as nothing woke it."""
    bench.may = False

    async def script(bench):
        bench.inbox.push(Added(pod("a").obj()))
        await bench.until(lambda: bench.core.done)
        bench.may = True
        await bench.until(lambda: "decide" in bench.core.done)

    bench.play(script)
    assert bench.core.done == ["apply a", "decide", "bind"]


def test_standby_with_waiting_pods_sleeps_until_it_is_told(bench, monkeypatch):
    """A standby has nothing to look up: to lead is said aloud."""
    monkeypatch.setattr(driver_module, "_BLOCKED_SLEEP_S", 0.002)
    bench.may = bench.leads = False

    async def script(bench):
        bench.inbox.push(Added(pod("a").obj()))
        await bench.until(lambda: bench.core.done)
        await asyncio.sleep(0.005)
        turns = bench.core.turns
        await asyncio.sleep(0.05)
        assert bench.core.turns == turns
        bench.may = bench.leads = True
        bench.wake.set()
        await bench.until(lambda: "bind" in bench.core.done)

    bench.play(script)
    assert bench.core.done == ["apply a", "decide", "bind"]


def test_timer_of_the_core_wakes_it(bench):
    """A back-off that ends is flushed without any input."""
    bench.core.timer_s = bench.clock.now() + 0.02

    async def script(bench):
        await asyncio.sleep(0.01)
        assert bench.core.done == []
        bench.clock.advance(0.02)
        await bench.until(lambda: bench.core.done)

    bench.play(script)
    assert bench.core.done == ["timer"]
