"""Confirming: binds that the watch does not show stop decisions, and have pods listed if the watch had its time."""

import asyncio
from types import SimpleNamespace

import pytest

from scheduler.app.confirming import PATIENCE_S, Confirming
from scheduler.model.delta import Added, Removed
from scheduler.model.pod import Pod
from scheduler.state.cache.cache import Cache
from scheduler.state.store import Store
from scheduler.testing import pod
from scheduler.testing.clock import FakeClock


class Reflector:
    """The watch of pods: open for so long; a list is complete half a second after it was asked for."""

    def __init__(self, clock):
        self._clock = clock
        self.stream_age_s = 1000.0
        self.causes = []
        self.listed_at_s = float("inf")
        self.when_listed = lambda: None

    def request_relist(self, cause):
        self.causes.append(cause)
        self.listed_at_s = self._clock.now() + 0.5
        return len(self.causes)

    @property
    def stats(self):
        is_served = self._clock.now() >= self.listed_at_s
        if is_served:
            self.when_listed()
        return SimpleNamespace(relists_served=len(self.causes) - (not is_served))


class Bench:
    def __init__(self):
        self.clock = FakeClock()
        self.cache = Cache()
        self.reflector = Reflector(self.clock)
        self.was_behind_at_s = []
        self.looks = 0
        self.when_asleep = lambda: None
        self.store = Store()
        self.applied = []
        self.confirming = Confirming(
            self.cache,
            self.store,
            {Pod: self.reflector},
            apply=self.applied.append,
            clock=self.clock,
            caught_up=self._caught_up,
            sleep=self._sleep,
        )

    def bind(self, name):
        assumed = pod(name).uid(name).set("spec.nodeName", "n1").obj()
        self.cache.assume_pod(assumed)
        self.cache.finish_binding(assumed, self.clock.now())
        return assumed

    def pass_time(self, seconds):
        """Run it for so long."""
        self._until_s = self.clock.now() + seconds
        with pytest.raises(EOFError):
            asyncio.run(self.confirming.run())

    async def _sleep(self, seconds):
        if self.confirming.is_behind:
            self.was_behind_at_s.append(self.clock.now())
        self.looks += 1
        asleep, self.when_asleep = self.when_asleep, lambda: None
        asleep()
        left_s = self._until_s - self.clock.now()
        self.clock.advance(min(seconds, left_s))
        if seconds >= left_s:
            raise EOFError

    async def _caught_up(self):
        pass


@pytest.fixture
def bench():
    return Bench()


def test_binds_that_are_shown_are_the_ordinary_case(bench):
    """Nothing is listed, nothing waits, however long it takes."""
    for name in ("a", "b", "c"):
        bound = bench.bind(name)
        bench.pass_time(PATIENCE_S - 1.0)
        bench.cache.add_pod(bound)
        bench.pass_time(60.0)
    assert bench.reflector.causes == []
    assert bench.was_behind_at_s == []


def test_bind_that_is_not_shown_stops_decisions_until_pods_were_listed(bench):
    """The watch is dead: the list shows what it did not."""
    begun_s = bench.clock.now()
    bound = bench.bind("a")
    bench.reflector.when_listed = lambda: bench.cache.is_assumed("a") and bench.cache.add_pod(bound)
    bench.pass_time(60.0)
    assert bench.reflector.causes == ["unconfirmed"]
    assert bench.was_behind_at_s[0] - begun_s == pytest.approx(PATIENCE_S, abs=0.1)
    assert bench.was_behind_at_s[-1] - bench.was_behind_at_s[0] == pytest.approx(0.5, abs=0.2)
    assert not bench.confirming.is_behind


def test_nothing_is_looked_up_while_it_cannot_matter(bench):
    """A look for each time that our patience could have come to its end, whatever is bound meanwhile."""
    bench.pass_time(600.0)
    bound = bench.bind("a")
    bench.pass_time(PATIENCE_S - 1.0)
    bench.cache.add_pod(bound)
    bench.pass_time(600.0)
    assert bench.looks <= 2 * 600.0 / PATIENCE_S + 3


def test_bind_during_the_longest_sleep_is_missed_in_time(bench):
    """It came just after a look that found nothing to wait for."""
    bench.when_asleep = lambda: bench.bind("a")
    begun_s = bench.clock.now()
    bench.pass_time(60.0)
    assert bench.was_behind_at_s[0] - begun_s == pytest.approx(PATIENCE_S, abs=0.1)


def test_pod_that_no_list_shows_is_not_waited_for_again(bench):
    """One that cannot be understood keeps its place; it must not stop decisions for ever."""
    bench.bind("a")
    bench.pass_time(120.0)
    assert bench.reflector.causes == ["unconfirmed"]
    assert not bench.confirming.is_behind
    assert bench.cache.is_assumed("a")
    assert bench.applied == []


def test_pod_that_is_listed_as_unbound_is_decided_anew(bench):
    """The answer to the bind was a lie, or etcd has been restored: the list is newer. Another pod of the name is none."""
    bench.bind("a")
    bench.bind("b")
    unbound = pod("a").uid("a").obj()
    bench.store.put(unbound)
    bench.store.put(pod("b").uid("another").obj())
    bench.pass_time(120.0)
    assert bench.applied == [Removed(unbound), Added(unbound)]


def test_new_stream_is_given_its_time(bench):
    """After an outage the watch delivers by itself what it has missed; meanwhile nothing is decided."""
    bench.reflector.stream_age_s = 0.0
    bound = bench.bind("a")
    bench.pass_time(30.0)
    assert bench.confirming.is_behind
    assert bench.reflector.causes == []
    bench.cache.add_pod(bound)
    bench.pass_time(1.0)
    assert not bench.confirming.is_behind
