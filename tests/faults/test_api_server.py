"""The API server dies and comes back under load: scheduling goes on by itself."""

from __future__ import annotations

import time

from tests.faults.bench import FaultBench, fault
from tests.faults.history.audit import lists
from tests.faults.loads import L1_RATE, Load, l1_nodes
from tests.faults.results import at_most, exactly


def _recovery_from_crash_s(bench: FaultBench, away_s: float) -> float:
    """Kill the API server under L1 and start it again after so long; returns N when all has settled."""
    load = bench.load_l1()
    load.wait_created(150)
    bench.plane.apiserver.kill()
    time.sleep(away_s)
    bench.plane.start_apiserver()
    ready_s = time.time()
    bench.settle()
    return bench.recovery_s(load, ready_s)


@fault(1, "API server killed (-9) under L1, back after 10 s", starred=True)
def test_crash_of_10_seconds(bench: FaultBench) -> None:
    """An outage shorter than the lease: the leader stays, and binds at full rate within 3 s."""
    bench.scheduler("a")
    bench.scheduler("b")
    bench.figure("N", at_most(3), _recovery_from_crash_s(bench, 10.0), "s")
    bench.figure("changes of leader", at_most(1), bench.changes_of_leader())
    bench.figure("restarts", at_most(1), sum(s.restarts for s in bench.schedulers.values()))
    bench.verdict()


@fault(2, "API server down for 90 s under L1")
def test_outage_beyond_the_lease(bench: FaultBench) -> None:
    """The leader cannot renew: it ends with exit code 1, is started again, and waits for the server."""
    scheduler = bench.scheduler("a")
    load = bench.load_l1()
    load.wait_created(150)
    bench.plane.apiserver.kill()
    down_s = time.time()
    ended_s = scheduler.wait_exit(1)
    time.sleep(max(0.0, down_s + 90.0 - time.time()))
    bench.plane.start_apiserver()
    ready_s = time.time()
    bench.settle()
    bench.figure("leader ends after", at_most(15), ended_s - down_s, "s")
    bench.figure("restarts", exactly(1), scheduler.restarts)
    bench.figure("N", at_most(10), bench.recovery_s(load, ready_s), "s")
    bench.verdict()


@fault(2, "API server down for 28 s under L1, leader and standby")
def test_outage_of_half_a_minute(bench: FaultBench) -> None:
    """Longer than the leader may go on: it is started anew while the server is away, and one of the two goes on at once."""
    for name in "ab":
        bench.scheduler(name)
    bench.figure("N", at_most(3), _recovery_from_crash_s(bench, 28.0), "s")
    bench.figure("restarts", at_most(1), sum(s.restarts for s in bench.schedulers.values()))
    bench.verdict()


@fault(3, "API server killed (-9) and restarted 10 times, 5 s after it was ready, under 300 pods at 50/s each time")
def test_ten_crashes(bench: FaultBench) -> None:
    """Watches resume from their versions; nobody lists everything anew each time, and each time binding goes on soon."""
    scheduler = bench.scheduler("a")
    bench.cluster.create(*l1_nodes(bench.cluster))
    most_lists = 0
    restarts: list[tuple[Load, float]] = []
    for number in range(10):
        load = bench.load(300, L1_RATE, prefix=f"load{number}").wait_created(50)
        crashed_s = time.time()
        bench.plane.apiserver.kill()
        bench.plane.start_apiserver()
        restarts.append((load, time.time()))
        time.sleep(5.0)
        found = lists(bench.audit.read(), scheduler.user, after_s=crashed_s)
        most_lists = max([most_lists, *found.values()])
    bench.settle()
    bench.figure("lists per kind and restart", at_most(2), most_lists)
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.figure("N, longest of ten", at_most(5), max(bench.recovery_s(*restart) for restart in restarts), "s")
    bench.verdict()
