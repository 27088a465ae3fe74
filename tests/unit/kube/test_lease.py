"""The elector against a lease server in memory, on a fake clock: no sockets, no sleeps."""

import asyncio
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.kube.errors import TransportError
from scheduler.kube.lease import (
    Ended,
    LeaderCallbacks,
    LeaderElector,
    LeaseConfig,
    LeaseConfigError,
    identity_of_pod,
    make_identity,
)
from scheduler.kube.transport import Response

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class World:
    """Clock and scheduler of several electors: whoever sleeps least runs next."""

    def __init__(self):
        self.now_s = 1_000.0
        self.sleepers = []

    async def pause(self, duration_s, stop):
        if stop.is_set():
            return
        done = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now_s + duration_s, len(self.sleepers), done, stop))
        await done

    async def settle(self):
        for _ in range(30):
            await asyncio.sleep(0)

    async def advance(self, until_s):
        """Let time pass, waking every sleeper at its time."""
        await self.settle()
        while due := [s for s in self.sleepers if s[0] <= until_s or s[3].is_set()]:
            sleeper = min(due, key=lambda s: (not s[3].is_set(), s[0], s[1]))
            self.sleepers.remove(sleeper)
            if not sleeper[3].is_set():
                self.now_s = max(self.now_s, sleeper[0])
            sleeper[2].set_result(None)
            await self.settle()
        self.now_s = max(self.now_s, until_s)


class LeaseServer:
    """One lease with optimistic concurrency."""

    def __init__(self, world):
        self.world = world
        self.lease = None
        self.version = 0
        self.calls = []
        self.down = set()
        self.conflicts = 0

    def for_client(self, name):
        return LeaseClient(self, name)

    def handle(self, method, path, body):
        if method == "GET":
            return (200, self.lease) if self.lease else (404, {"kind": "Status", "reason": "NotFound"})
        new = json.loads(body)
        if method == "POST":
            assert path == PATH
            if self.lease:
                return 409, {"kind": "Status", "reason": "AlreadyExists"}
        elif self.conflicts or new["metadata"].get("resourceVersion") != str(self.version):
            self.conflicts = max(0, self.conflicts - 1)
            return 409, {"kind": "Status", "reason": "Conflict"}
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.lease = new
        return 200, new


class LeaseClient:
    """A transport of one elector."""

    def __init__(self, server, name):
        self.server, self.name = server, name

    async def request(self, method, path, *, body=None, content_type="application/json", timeout_s):
        assert 0 < timeout_s <= 5
        self.server.calls.append((self.name, method))
        if self.name in self.server.down:
            await self.server.world.pause(timeout_s, asyncio.Event())
            raise TransportError("timed out", sent=True)
        status, obj = self.server.handle(method, path, body)
        return Response(status, {}, json.dumps(obj).encode())

    async def close(self):
        """Nothing to close."""


class Candidate:
    """An elector and what it reported."""

    def __init__(self, server, name, **settings):
        self.reported = []
        world = server.world
        self.elector = LeaderElector(
            LeaseConfig(identity=name, **settings),
            LeaderCallbacks(
                lambda: self.reported.append("started"),
                lambda: self.reported.append("stopped"),
                lambda leader: self.reported.append(f"leader {leader}"),
                lambda text: self.reported.append(f"event {text}"),
            ),
            server.for_client(name),
            random=random.Random(1),
            now_s=lambda: world.now_s,
            wall_time=lambda: f"2026-01-31T08:15:{world.now_s - 1000:09.6f}Z",
            pause=world.pause,
        )
        self.task = None

    def start(self):
        self.task = asyncio.create_task(self.elector.run())


def play(script):
    """Run an async script with a world and a server."""

    async def run():
        world = World()
        return await script(world, LeaseServer(world))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lease_duration_s": 10}, "leaseDuration must be greater than renewDeadline"),
        ({"renew_deadline_s": 2.4}, "renewDeadline must be greater than retryPeriod*JitterFactor"),
        ({"retry_period_s": 0}, "retryPeriod must be greater than zero"),
        (
            {"lease_duration_s": 0, "renew_deadline_s": -1, "retry_period_s": -2},
            "leaseDuration must be greater than zero",
        ),
        ({"renew_deadline_s": 0, "retry_period_s": -1}, "renewDeadline must be greater than zero"),
        ({"identity": ""}, "Lock identity is empty"),
    ],
)
def test_contradicting_settings_are_refused_with_client_gos_words(settings, message):
    with pytest.raises(LeaseConfigError) as refused:
        LeaseConfig(**{"identity": "me", **settings})
    assert str(refused.value) == message


def test_identities_are_host_and_uuid_and_never_repeat():
    first, second = make_identity("host"), make_identity("host")
    assert first.startswith("host_")
    assert first != second


def test_identities_of_a_pods_containers_begin_alike():
    """And those of another pod on the same host do not."""
    assert make_identity("host", "uid-1").startswith(identity_of_pod("host", "uid-1"))
    assert not make_identity("host", "uid-11").startswith(identity_of_pod("host", "uid-1"))
    assert not make_identity("host").startswith("host__")
    assert identity_of_pod("host", "") == ""


def test_first_candidate_wins_renews_and_tells():
    async def script(world, server):
        one = Candidate(server, "one")
        one.start()
        await world.advance(1_000.0)
        assert one.reported == ["leader one", "event one became leader", "started"]
        assert one.elector.may_write(4.0)
        await world.advance(1_060.0)
        assert server.lease["spec"]["renewTime"] == "2026-01-31T08:15:60.000000Z"
        assert server.lease["spec"]["leaseTransitions"] == 0
        assert [method for _, method in server.calls[:3]] == ["GET", "POST", "PUT"]
        assert {method for _, method in server.calls[3:]} == {"PUT"}, "renewals are optimistic"
        one.elector.stop()
        await world.advance(1_061.0)
        assert await one.task is Ended.STOPPED

    play(script)


def test_stopping_releases_the_lease_and_the_standby_takes_over_at_once():
    async def script(world, server):
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await world.advance(1_000.0)
        two.start()
        await world.advance(1_010.0)
        assert two.reported == ["leader one"]
        one.elector.stop()
        await world.advance(1_010.0)
        assert await one.task is Ended.STOPPED
        assert one.reported[-2:] == ["event one stopped leading", "stopped"]
        assert server.lease["spec"]["holderIdentity"] == ""
        assert server.lease["spec"]["leaseDurationSeconds"] == 1
        await world.advance(1_010.0 + 1.1)
        assert two.elector.is_leader
        assert server.lease["spec"]["leaseTransitions"] == 1
        two.elector.stop()
        await world.advance(1_015.0)

    play(script)


def test_release_is_tried_again_after_a_conflict():
    async def script(world, server):
        one = Candidate(server, "one")
        one.start()
        await world.advance(1_001.0)
        server.conflicts = 2
        one.elector.stop()
        await world.advance(1_001.0)
        assert server.lease["spec"]["holderIdentity"] == ""

    play(script)


def test_leader_cut_off_stops_within_the_deadline_and_the_other_starts_after_the_lease():
    """Writes of the old leader are over before the new one may begin."""

    async def script(world, server):
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await world.advance(1_000.0)
        two.start()
        await world.advance(1_010.5)
        last_renewal_s = 1_010.0
        server.down.add("one")
        gate = []
        while not two.elector.is_leader:
            await world.advance(world.now_s + 0.5)
            gate.append((world.now_s, one.elector.may_write(4.0), two.elector.is_leader))
        assert await one.task is Ended.LOST
        assert one.reported[-1] == "stopped"
        last_write_s = max((now for now, may, _ in gate if may), default=0.0) + 4.0
        first_lead_s = next(now for now, _, leads in gate if leads)
        assert last_write_s <= last_renewal_s + 14
        assert first_lead_s >= last_renewal_s + 15
        assert server.lease["spec"]["holderIdentity"] == "two", "a lost lease is left to run out"
        two.elector.stop()
        await world.advance(world.now_s + 1)

    play(script)


def test_short_outage_is_survived():
    async def script(world, server):
        one = Candidate(server, "one")
        one.start()
        await world.advance(1_004.5)
        server.down.add("one")
        await world.advance(1_010.0)
        server.down.clear()
        await world.advance(1_020.0)
        assert one.elector.is_leader
        assert "stopped" not in one.reported
        one.elector.stop()
        await world.advance(1_021.0)

    play(script)


def test_leader_that_sees_another_holder_stops_at_once():
    async def script(world, server):
        one = Candidate(server, "one")
        one.start()
        await world.advance(1_001.0)
        server.version += 1
        server.lease["spec"]["holderIdentity"] = "thief"
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        await world.advance(1_002.5)
        assert await one.task is Ended.LOST
        assert one.reported[-3:] == ["leader thief", "event one stopped leading", "stopped"]
        assert not one.elector.may_write(0.0)

    play(script)


def test_frozen_leader_must_not_write_after_thawing():
    """SIGSTOP for 20 s: the gate is shut by the clock alone."""

    async def script(world, server):
        one = Candidate(server, "one")
        one.start()
        await world.advance(1_000.0)
        world.now_s += 20.0
        assert not one.elector.may_write(0.0)
        assert one.elector.validity_s() == 0.0
        one.elector.stop()
        await world.advance(world.now_s)

    play(script)


def test_health_check_fails_long_after_the_lease_ended():
    async def script(world, server):
        one = Candidate(server, "one")
        assert one.elector.check() is None, "a standby is healthy"
        one.start()
        await world.advance(1_000.0)
        world.now_s = 1_035.0
        assert one.elector.check() is None
        world.now_s = 1_035.1
        assert one.elector.check() == "failed election to renew leadership on lease kube-scheduler"
        one.elector.stop()
        await world.advance(world.now_s)

    play(script)


def test_stop_before_winning_ends_quietly():
    """on_stopped_leading is called even by a candidate that never led (parity)."""

    async def script(world, server):
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await world.advance(1_000.0)
        two.start()
        await world.advance(1_001.0)
        two.elector.stop()
        await world.advance(1_001.0)
        assert await two.task is Ended.STOPPED
        assert two.reported == ["leader one", "stopped"]
        one.elector.stop()
        await world.advance(1_002.0)

    play(script)


def test_unreadable_lease_is_waited_out():
    """A lease with a wrong type in it is nobody's win and no crash."""

    async def script(world, server):
        server.lease = {"metadata": {"resourceVersion": "0"}, "spec": {"holderIdentity": 7}}
        one = Candidate(server, "one")
        one.start()
        await world.advance(1_030.0)
        assert one.reported == []
        one.elector.stop()
        await world.advance(1_030.0)
        assert await one.task is Ended.STOPPED

    play(script)


@pytest.mark.parametrize(
    ("lease_s", "deadline_s", "renew_s"),
    [
        pytest.param(15.0, 10.0, 2.0, id="the defaults"),
        pytest.param(5.0, 3.0, 1.0, id="five seconds"),
        pytest.param(2.0, 1.5, 0.5, id="two seconds"),
    ],
)
def test_leader_that_renews_may_always_write(lease_s, deadline_s, renew_s):
    """However short the lease that kube-scheduler would accept, a healthy leader is not kept from binding."""

    async def script(world, server):
        one = Candidate(server, "one", lease_duration_s=lease_s, renew_deadline_s=deadline_s, retry_period_s=renew_s)
        one.start()
        await world.advance(1_000.0)
        for step in range(1, 40):
            await world.advance(1_000.0 + step * 0.1)
            assert one.elector.may_write(4.0)
        one.elector.stop()
        await world.advance(1_010.0)

    play(script)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["cut one", "cut two", "heal", "stop one"]), st.floats(0.1, 12)), max_size=12)
)
def test_two_leaders_never_may_write_at_the_same_time(script):
    """Law: under any sequence of partitions at most one candidate may hand a 4 s write to a socket, margins included."""

    async def run(world, server):
        candidates = [Candidate(server, "one"), Candidate(server, "two")]
        for candidate in candidates:
            candidate.start()
        for action, pause_s in script:
            verb, _, who = action.partition(" ")
            if verb == "cut":
                server.down.add(who)
            elif verb == "heal":
                server.down.clear()
            else:
                candidates[0].elector.stop()
            until_s = world.now_s + pause_s
            while world.now_s < until_s:
                await world.advance(min(until_s, world.now_s + 0.5))
                assert sum(candidate.elector.may_write(0.0) for candidate in candidates) <= 1
        server.down.clear()
        for candidate in candidates:
            candidate.elector.stop()
        await world.advance(world.now_s + 30)

    play(run)
