"""Two schedulers, one lease, and everything that can go wrong between them: at most one writes, and one always does soon."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.faults.bench import FaultBench, fault
from tests.faults.durations import impossible
from tests.faults.faketime import FakeClock
from tests.faults.history.leadership import NO_CHANGES, changes
from tests.faults.history.record import WRITE_VERBS, is_bind
from tests.faults.loads import L1_PODS, L1_RATE
from tests.faults.proxy import Blackhole, DropRequest, Match, Request, Rule
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import Json, eventually
from tests.integration.daemon import Metrics

WAITING = 2_000
OUTLASTING, AFTERWARDS = 5_400, 200
"""Pods of a load that lasts longer than any fault here, and how many of them are created after it."""

HOUR_S = 3600.0
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium"
SHORT_LEASE = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "1s"}


def _first_write_s(bench: FaultBench, scheduler: SupervisedScheduler, after_s: float) -> float:
    """Wait for the scheduler's next bind; returns when the server had it."""

    def probe() -> float | None:
        sent = [r.received_s for r in bench.audit.read() if is_bind(r) and r.user == scheduler.user]
        return min((at_s for at_s in sent if at_s > after_s), default=None)

    return eventually(probe, f"a bind of {scheduler.name}", timeout_s=60.0)


@fault(27, "leader partitioned for 40 s under L1, then healed", starred=True)
def test_partitioned_leader(bench: FaultBench) -> None:
    """A black hole: it cannot know whether it still leads, so it ends; what it had sent last does not come late."""
    old, new = _old_and_new(bench)
    load = bench.load_l1(pods=OUTLASTING)
    load.wait_created(100)
    hole = old.proxy.add(Rule(Match(), Blackhole()))
    cut_s = time.time()
    led_s = _first_write_s(bench, new, cut_s)
    ended_s = old.wait_exit(1)
    time.sleep(max(0.0, cut_s + 40.0 - time.time()))
    hole.remove()
    healed_s = time.time()
    load.end_after(AFTERWARDS)
    old.wait_ready()
    bench.settle()
    late = [r for r in changes(bench.history()) if r.user == old.user and r.received_s > cut_s + 1.0]
    bench.figure("new binds after", at_most(20), led_s - cut_s, "s")
    bench.figure("old has ended after", at_most(20), ended_s - cut_s, "s")
    bench.figure("writes of the old one that came late", exactly(0), len(late))
    bench.figure("N", at_most(3), bench.recovery_s(load, healed_s), "s")
    bench.verdict()


@fault(27, "every request of the leader is swallowed for 40 s under L1")
def test_leader_that_is_not_heard(bench: FaultBench) -> None:
    """The proxy sees what a partitioned leader still sends: nothing from 10 s after its last renewal on."""
    old, new = _old_and_new(bench)
    load = bench.load_l1(pods=OUTLASTING)
    load.wait_created(100)
    swallowed = old.proxy.add(Rule(Match(), DropRequest(is_silent=True)))
    cut_s = time.time()
    to_wall_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    led_s = _first_write_s(bench, new, cut_s)
    ended_s = old.wait_exit(1)
    time.sleep(max(0.0, cut_s + 40.0 - time.time()))
    swallowed.remove()
    load.end_after(AFTERWARDS)
    old.wait_ready()
    bench.settle()
    sent_s = [seen.at_s + to_wall_s for seen in old.proxy.requests if _is_change(seen.request)]
    tried_s = [at_s for at_s in sent_s if cut_s < at_s <= ended_s]
    bench.figure("writes that were swallowed", at_least(1), len(tried_s))
    bench.figure("old stops sending after", at_most(10), max(tried_s) - cut_s, "s")
    bench.figure("new binds after", at_most(20), led_s - cut_s, "s")
    bench.verdict()


def _old_and_new(bench: FaultBench) -> tuple[SupervisedScheduler, SupervisedScheduler]:
    """Start a leader behind a proxy, and a standby."""
    old = bench.scheduler("a", proxied=True)
    assert bench.leader is old
    return old, bench.scheduler("b")


def _is_change(request: Request) -> bool:
    return request.verb in WRITE_VERBS and request.resource not in NO_CHANGES


@fault(28, "leader frozen (SIGSTOP) for 20 s with its outbox full, then thawed", starred=True)
def test_frozen_leader(bench: FaultBench) -> None:
    """Hundreds of binds are under way at the freeze; none leaves the thawed process, which ends with exit code 1."""
    old = bench.scheduler("a")
    assert bench.leader is old
    new = bench.scheduler("b")
    load = bench.load_l1(WAITING, 1000.0, closed=True).wait_created()
    bench.open_nodes(load)
    old.freeze()
    frozen_s = time.time()
    before = len(bench.cluster.bound())
    bench.cluster.create(*(bench.cluster.pod(f"late{i}") for i in range(10)))  # a fast leader may have left nothing
    led_s = _first_write_s(bench, new, frozen_s + 1.0)
    time.sleep(max(0.0, frozen_s + 20.0 - time.time()))
    thawed_s = time.time()
    old.thaw()
    old.wait_exit(1)
    bench.settle()
    late = [r for r in changes(bench.history()) if r.user == old.user and r.received_s >= thawed_s]
    bench.figure("bound before the freeze", at_most(WAITING - 1), before)
    bench.figure("new binds after", at_most(20), led_s - frozen_s, "s")
    bench.figure("binds sent by the thawed process", exactly(0), sum(map(is_bind, late)))
    bench.figure("its other writes", exactly(0), len([r for r in late if not is_bind(r)]))
    bench.figure("restarts", exactly(1), old.restarts)
    bench.verdict()


def _now(offset: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) + offset).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _edits(spec: Json) -> dict[str, Json | None]:
    """Return what somebody may do to the lease: None deletes it."""
    return {
        "deleted": None,
        "emptied": {},
        "given to somebody": spec | {"holderIdentity": "somebody", "renewTime": _now(), "leaseDurationSeconds": 3},
        "holder of garbage": spec | {"holderIdentity": "\u202e\x01" * 1000, "leaseDurationSeconds": 1},
        "renewed in the far future": spec | {"renewTime": _now(timedelta(days=4000)), "acquireTime": None},
        "renewed in the far past": spec | {"renewTime": _now(timedelta(days=-4000))},
    }


@fault(30, "lease deleted, emptied, given away, filled with garbage by hand, one after another")
def test_lease_edited_by_hand(bench: FaultBench) -> None:
    """Whatever it says, soon one of the two leads again, and never do both write."""
    for name in "ab":
        bench.scheduler(name, lease=SHORT_LEASE)
    load = bench.load_l1(pods=OUTLASTING)
    for what in _edits({}):
        load.wait_created(len(load.created) + 350)  # 7 s: the lease's 6, and one more
        _edit_lease(bench, what)
        print(f"{what}: {_restarts(bench)} restarts so far")
    load.end_after(600)
    bench.settle()
    binds_s = sorted(r.received_s for r in bench.audit.read() if is_bind(r) and r.is_done)
    bench.figure("longest time without a bind, lease 6 s", at_most(11), max(b - a for a, b in pairwise(binds_s)), "s")
    bench.verdict()


def _edit_lease(bench: FaultBench, what: str) -> None:
    """Do it, however often the leader writes first."""
    while True:
        document: dict[str, Any] = bench.cluster.client.ok("GET", LEASE_PATH)
        spec = _edits(document["spec"])[what]
        if spec is None:
            bench.cluster.client.ok("DELETE", LEASE_PATH)
            return
        status, answer = bench.cluster.client.call("PUT", LEASE_PATH, document | {"spec": spec})
        if status == 200:
            return
        assert status == 409, answer


def _restarts(bench: FaultBench) -> int:
    return sum(scheduler.restarts for scheduler in bench.schedulers.values())


@fault(31, "SIGTERM to the leader under full load, 50 times")
@pytest.mark.timeout(1500)
def test_fifty_planned_hand_overs(bench: FaultBench) -> None:
    """Each time: exit 0, the lease released, the other one binds soon after SIGTERM; nothing is lost on the way."""
    for name in "ab":
        bench.scheduler(name)
    bench.cluster.create(*(bench.cluster.node(f"n{i}", cpu="64", pods="110") for i in range(80)))
    codes, stops_s, hand_overs_s, released = [], [], [], 0
    for number in range(50):
        old = bench.leader
        load = bench.load(L1_PODS, L1_RATE, prefix=f"load{number}").wait_created(50)
        (new,) = [scheduler for scheduler in bench.schedulers.values() if scheduler is not old]
        code, seconds = old.terminate()
        asked_s = old.asked_to_end_s[old.restarts]
        codes.append(code)
        stops_s.append(seconds)
        hand_overs_s.append(_first_write_s(bench, new, asked_s) - asked_s)
        load.stop()
        released += "released leader lease" in old.daemon.log()
        old.start_again()
        old.wait_ready()
    bench.settle()
    bench.figure("exit codes other than 0", exactly(0), sum(code != 0 for code in codes))
    bench.figure("slowest stop", at_most(20), max(stops_s), "s")
    bench.figure("releases of the lease", exactly(50), released)
    bench.figure("slowest hand-over", at_most(2), max(hand_overs_s), "s")
    print(f"hand-overs: {sorted(round(s, 2) for s in hand_overs_s)}, stops: {sorted(round(s, 2) for s in stops_s)}")
    bench.verdict()


@fault(29, "wall clock of one instance wrong by up to an hour, jumping every 3 s")
def test_wall_clock_jumps(bench: FaultBench, tmp_path: Path) -> None:
    """As leader and as standby: only elapsed time counts, so nobody loses the lease and nobody takes it early."""
    clock = FakeClock(tmp_path)
    clock.set(HOUR_S)
    jumping = bench.scheduler("a", environment=clock.environment)
    assert bench.leader is jumping
    steady = bench.scheduler("b")
    load = bench.load_l1(pods=OUTLASTING, rate=25.0)
    load.wait_created(50)
    before = bench.changes_of_leader()
    odd = _jump(clock, jumping, 24.0)
    assert bench.leader is jumping
    as_leader = bench.changes_of_leader() - before
    assert jumping.terminate()[0] == 0
    jumping.start_again()
    jumping.wait_ready()
    assert bench.leader is steady
    before = bench.changes_of_leader()
    odd += _jump(clock, jumping, 24.0)
    assert bench.leader is steady
    load.end_after(AFTERWARDS)
    bench.settle()
    assert abs(_first_log_time_s(jumping) - time.time()) > HOUR_S / 2, "the process did not see the wrong clock"
    bench.figure("changes of leader", exactly(0), as_leader + bench.changes_of_leader() - before)
    bench.figure("durations in its metrics that a jump was taken for", exactly(0), len(odd))
    bench.verdict()


@fault(29, "an hour passes at once for a scheduler without election")
def test_hour_that_passes_at_once(bench: FaultBench, tmp_path: Path) -> None:
    """As for a process that was frozen: it goes on at once, and says that a pod has been pending for an hour."""
    clock = FakeClock(tmp_path, is_steady_too=True)
    scheduler = bench.scheduler("a", elect=False, environment=clock.environment)
    bench.cluster.create(bench.cluster.node("n", pods="300"), bench.cluster.pod("patient").requests(cpu="64"))
    bench.cluster.wait_unschedulable("patient")
    load = bench.load(200, 20.0, cpu="1m")
    load.wait_created(50)
    clock.set(HOUR_S + 60)
    passed_s = time.time()
    eventually(lambda: _oldest_s(scheduler) > HOUR_S, "the pod to have been pending for an hour")
    bench.sampler.wait_asked(scheduler)
    bench.settle()
    bench.figure("N", at_most(3), bench.recovery_s(load, passed_s), "s")
    bench.cluster.create(bench.cluster.node("roomy", cpu="64"))
    bench.cluster.wait_bound("patient")
    eventually(lambda: _oldest_s(scheduler) == 0, "no pod to be pending")
    bench.settle()
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.verdict()


def _oldest_s(scheduler: SupervisedScheduler) -> float:
    return scheduler.daemon.metrics().total("podium_oldest_pending_pod_age_seconds")


def _jump(clock: FakeClock, scheduler: SupervisedScheduler, seconds: float) -> list[str]:
    """Let the clock jump every 3 s; returns the durations that a jump, of which the least is 3,583 s, was taken for."""
    odd: list[str] = []
    before = _scraped(scheduler)
    for number in range(int(seconds / 3)):
        clock.set((HOUR_S, -HOUR_S, 0, 17)[number % 4])
        time.sleep(3.0)
        after = _scraped(scheduler)
        odd += impossible(before, after, HOUR_S / 2)
        before = after
    print("\n".join(odd))
    return odd


def _scraped(scheduler: SupervisedScheduler) -> Metrics:
    """Return its metrics, however long a busy machine takes: without them the next jump would hide this one."""
    while True:
        try:
            return scheduler.daemon.metrics()
        except OSError:
            assert scheduler.daemon.process.is_running, "nobody to be asked for metrics"


def _first_log_time_s(scheduler: SupervisedScheduler) -> float:
    first = scheduler.logs[0].read_text().partition("\n")[0]
    return datetime.fromisoformat(json.loads(first)["ts"]).timestamp()
