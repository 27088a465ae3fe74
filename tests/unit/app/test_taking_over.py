"""Taking over: the watches must have shown what the server had after we won, or everything is listed."""

import asyncio
from types import SimpleNamespace

import pytest

from scheduler.app.taking_over import PATIENCE_S, TakingOver
from scheduler.kube.errors import TransportError, api_error
from scheduler.kube.paging import PAGE_SIZE
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.testing.clock import FakeClock

LIST_S = 3.0
MANY = PAGE_SIZE + 1


class Reflector:
    """A watch that stands at a version, and what happens to it at which second."""

    def __init__(self, clock, *, objects, version="100", newest="150", happens=None, is_streaming=True, is_synced=True):
        self.kind = Pod
        self.is_synced = is_synced
        self.num_objects = objects
        self.is_streaming = is_streaming
        self.stats = SimpleNamespace(last_resource_version=version, watches_opened=1, relists_served=0)
        self.lists = self.questions = 0
        self._clock, self._newest, self._happens = clock, newest, dict(happens or {})

    async def read_version(self, timeout_s):
        assert timeout_s <= PATIENCE_S
        self.questions += 1
        if isinstance(self._newest, Exception):
            raise self._newest
        return self._newest

    def request_relist(self, cause):
        assert cause == "requested"
        self.lists += 1
        self._happens[self._clock.now() + LIST_S] = {"relists_served": self.lists}
        return self.lists

    def live(self):
        for at_s in [at_s for at_s in self._happens if at_s <= self._clock.now()]:
            changes = self._happens.pop(at_s)
            self.is_streaming = changes.pop("is_streaming", self.is_streaming)
            self.is_synced = changes.pop("is_synced", self.is_synced)
            vars(self.stats).update(changes)


class Bench:
    """A few nodes, and pods as given; `is_listed`, `took_s` and `pods` tell how it went."""

    def __init__(self, *, given_up_at="", **pods):
        clock = FakeClock()
        begun_s = clock.now()
        happens = {begun_s + at_s: changes for at_s, changes in pods.pop("happens", {}).items()}
        self.pods = Reflector(clock, happens=happens, **pods)
        self.nodes = Reflector(clock, objects=3)
        self.caught_up_at_s = []

        async def caught_up():
            self.caught_up_at_s.append(clock.now() - begun_s)

        async def sleep(seconds):
            clock.advance(seconds / 2)  # two of them sleep at a time
            self.pods.live()
            self.nodes.live()
            await asyncio.sleep(0)

        taking_over = TakingOver({Node: self.nodes, Pod: self.pods}, clock=clock, caught_up=caught_up, sleep=sleep)
        self.is_listed = asyncio.run(taking_over.see_all(given_up_at))
        self.took_s = clock.now() - begun_s


def test_few_objects_are_listed_without_a_question():
    """It costs no more, and makes up for what the watch has lost."""
    bench = Bench(objects=PAGE_SIZE)
    assert bench.is_listed
    assert (bench.pods.lists, bench.nodes.lists) == (1, 1)
    assert bench.pods.questions == 0
    assert bench.took_s >= LIST_S


@pytest.mark.parametrize("reached", ["150", "151", "1000"])
def test_many_objects_are_not_listed_if_their_watch_reaches_the_newest_version(reached):
    bench = Bench(objects=MANY, happens={0.2: {"last_resource_version": reached}})
    assert bench.pods.lists == 0
    assert not bench.is_listed, "so a comparison is needed"


def test_a_watch_that_has_reached_it_already_is_believed_at_once():
    assert Bench(objects=MANY, version="150").pods.lists == 0


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        ({}, "it rests"),
        ({"happens": {0.2: {"last_resource_version": "149"}}}, "it comes near only"),
        ({"happens": {0.2: {"last_resource_version": "99"}}}, "shorter, and less"),
        ({"happens": {PATIENCE_S + 0.2: {"last_resource_version": "150"}}}, "it comes too late"),
        ({"happens": {0.2: {"last_resource_version": "150", "watches_opened": 2}}}, "another stream"),
        ({"happens": {0.2: {"last_resource_version": "150", "is_streaming": False}}}, "the stream has ended"),
        ({"is_streaming": False, "version": "150"}, "there was no stream"),
        ({"version": "200"}, "the server was put back in time: what the watch has shown is no more"),
        ({"version": "abc", "newest": "abd"}, "versions that say nothing of before and after"),
        ({"newest": ""}, "an answer without a version"),
        ({"newest": TransportError("refused", sent=False, refused=True)}, "no answer"),
        ({"newest": api_error(429, {}, b"")}, "refused"),
        ({"newest": KeyError("metadata")}, "a bug"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_many_objects_are_listed_where_their_watch_proves_nothing(pods, why):
    bench = Bench(objects=MANY, **pods)
    assert bench.pods.lists == 1, why
    assert bench.is_listed
    assert bench.took_s >= LIST_S


@pytest.mark.parametrize("objects", [PAGE_SIZE, MANY])
@pytest.mark.parametrize("given_up_at", ["99", "100"])
def test_first_lists_are_enough_if_they_are_newer_than_the_lease_that_was_given_up(objects, given_up_at):
    """Nothing was written after it by the leader before."""
    bench = Bench(objects=objects, given_up_at=given_up_at)
    assert (bench.pods.lists, bench.nodes.lists, bench.pods.questions) == (0, 0, 0)
    assert bench.is_listed
    assert bench.took_s == 0.0


def test_first_lists_are_waited_for():
    """Decisions cannot begin earlier in any case."""
    synced = {"is_synced": True, "last_resource_version": "120"}
    bench = Bench(objects=0, version="", given_up_at="110", is_synced=False, happens={2.0: synced})
    assert bench.pods.lists == 0
    assert bench.took_s >= 2.0


@pytest.mark.parametrize("given_up_at", ["101", "1000", "abc"])
def test_lists_that_are_older_than_the_lease_that_was_given_up_are_made_anew(given_up_at):
    bench = Bench(objects=3, given_up_at=given_up_at)
    assert (bench.pods.lists, bench.nodes.lists) == (1, 1)


def test_what_was_delivered_is_in_the_cache_before_the_first_decision():
    for pods in ({"objects": 3}, {"objects": MANY, "version": "150"}):
        bench = Bench(**pods)
        assert bench.caught_up_at_s == [bench.took_s]


def test_before_the_watches_begin_there_is_nothing_to_wait_for():
    """Their first lists begin later than we lead."""

    async def caught_up():
        pass

    assert asyncio.run(TakingOver({}, clock=FakeClock(), caught_up=caught_up).see_all())
