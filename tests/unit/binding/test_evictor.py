"""Evictions: in which order victims go, and what happens if one does not."""

import asyncio

import pytest

from scheduler.api import Eviction
from scheduler.binding.evictor import Evictor
from scheduler.testing import pod

HIGH = pod("high").uid("u-high").scheduler("batch").obj()


class Bench:
    """Keeps a diary of all that an eviction does."""

    def __init__(self, clock):
        self.clock = clock
        self.diary, self.events, self.ends, self.measured = [], [], [], []
        self.waiting, self.preparing, self.gone, self.broken = set(), set(), set(), {}
        self.under_way = self.most_under_way = self.idle = 0
        self.evictor = Evictor(
            self,
            remove=self.remove,
            cancel_binding=self.cancel,
            metrics=self,
            perf_counter=clock.now,
            on_idle=self.on_idle,
            sleep=self.sleep,
        )

    async def sleep(self, seconds):
        self.diary.append(f"pause {seconds:g}")

    def preempt_waiting(self, uid, plugin):
        if uid not in self.waiting:
            return False
        self.diary.append(f"preempt {uid} for {plugin}")
        return True

    def cancel(self, uid, message):
        if uid not in self.preparing:
            return False
        self.diary.append(f"cancel {uid}: {message}")
        return True

    async def remove(self, victim, preemptor):
        assert preemptor is HIGH
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        self.clock.advance(1.0)
        if victim.name in self.broken:
            raise self.broken[victim.name]
        self.diary.append(f"remove {victim.name}")
        return victim.name in self.gone

    def emit(self, event):
        self.events.append((event.regarding.name, event.reporter, event.note, event.related.name))

    def preemption_executed(self, result, duration_s):
        self.measured.append((result, duration_s))

    def on_idle(self):
        self.idle += 1

    def play(self, *names):
        eviction = Eviction(
            preemptor=HIGH,
            node_name="n1",
            victims=tuple(pod(name).uid(f"u-{name}").obj() for name in names),
            num_chosen=len(names),
            plugin="P",
            on_last=lambda: self.diary.append("last"),
            on_end=lambda error, was_gone: self.ends.append((error, was_gone)),
        )

        async def run():
            self.evictor.start(eviction)
            assert self.evictor.in_flight == 1
            assert await self.evictor.drain(5.0) == 0

        asyncio.run(run())
        return self.diary


@pytest.fixture
def bench(clock):
    return Bench(clock)


def test_last_victim_goes_last(bench):
    """All others go side by side before it."""
    assert bench.play("a", "b", "c") == ["remove a", "remove b", "last", "remove c"]
    assert bench.most_under_way == 2
    assert bench.ends == [(None, False)]
    assert bench.measured == [("success", 3.0)]
    assert bench.idle == 1
    note = "Preempted by pod u-high on node n1"
    assert bench.events == [(name, "batch", note, "high") for name in ("a", "b", "c")]


def test_few_at_a_time(bench):
    """A node full of small pods does not become a storm of requests."""
    bench.play(*(f"p{i}" for i in range(40)))
    assert bench.most_under_way == 16


def test_victims_that_are_gone(bench):
    """No event about a pod that went by itself; the preemptor hears whether the last one did."""
    bench.gone = {"a", "b"}
    bench.play("a", "b")
    assert bench.events == []
    assert bench.ends == [(None, True)]


@pytest.mark.parametrize(
    ("broken", "diary"),
    [
        pytest.param("a", ["remove b", "pause 1"], id="one of the first: the last stays"),
        pytest.param("c", ["remove a", "remove b", "last", "pause 1"], id="the last"),
    ],
)
def test_failures(bench, broken, diary):
    """What was begun is brought to its end; the preemptor is let go with the error, but not at once."""
    bench.broken = {broken: RuntimeError("403")}
    assert bench.play("a", "b", "c") == diary
    assert bench.ends == [(bench.broken[broken], False)]
    assert [result for result, _ in bench.measured] == ["error"]


def test_victims_that_have_not_started(bench):
    """Pods on their way to the node are stopped in memory; nothing is deleted."""
    bench.waiting, bench.preparing = {"u-a"}, {"u-b"}
    assert bench.play("a", "b", "c") == ["preempt u-a for P", "cancel u-b: preempted by P", "last", "remove c"]
    notes = [note.partition("n1")[2] for _, _, note, _ in bench.events]
    assert sorted(notes) == ["", " (in kube-scheduler memory).", " (in kube-scheduler memory)."]


def test_abandon(bench):
    """At the end of the process evictions under way are given up quietly."""

    async def run():
        bench.gate = asyncio.Event()
        bench.remove = None
        evictor = Evictor(
            bench,
            remove=lambda victim, preemptor: bench.gate.wait(),
            cancel_binding=bench.cancel,
            metrics=bench,
            perf_counter=bench.clock.now,
            on_idle=bench.on_idle,
        )
        eviction = Eviction(HIGH, "n1", (pod("a").obj(),), 1, "P", lambda: None, lambda *end: bench.ends.append(end))
        evictor.start(eviction)
        await asyncio.sleep(0)
        assert await evictor.drain(0.0) == 1
        await evictor.abandon()
        assert evictor.in_flight == 0

    asyncio.run(run())
    assert bench.ends == []
