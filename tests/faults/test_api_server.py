"""The API server dies and comes back under load: scheduling goes on by itself."""

from __future__ import annotations

import time

from tests.faults.bench import FaultBench, fault
from tests.faults.results import at_most


@fault(1, "API server killed (-9) under L1, back after 10 s", starred=True)
def test_crash_of_10_seconds(bench: FaultBench) -> None:
    """An outage shorter than the lease: the leader stays, and binds at full rate within 3 s."""
    bench.scheduler("a")
    bench.scheduler("b")
    load = bench.load_l1()
    load.wait_created(150)
    bench.plane.apiserver.kill()
    time.sleep(10.0)
    bench.plane.start_apiserver()
    ready_s = time.time()
    bench.settle()
    bench.figure("N", at_most(3), bench.recovery_s(load, ready_s), "s")
    bench.figure("changes of leader", at_most(1), bench.changes_of_leader())
    bench.figure("restarts", at_most(1), sum(s.restarts for s in bench.schedulers.values()))
    bench.verdict()
