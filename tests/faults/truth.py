"""What a scheduler says of itself beside what is so: `/readyz?verbose` and metrics, for tests to hold against the API server."""

from __future__ import annotations

import re
import time
from collections.abc import Collection

from tests.faults.bench import FaultBench
from tests.faults.supervisor import SupervisedScheduler

PATIENCE_S = 30.0
_KIND = re.compile(r"^watch (\w+): not allowed", re.MULTILINE)
_LOST = re.compile(r"log lines lost: (\d+)")


def lies(bench: FaultBench, scheduler: SupervisedScheduler, *, unreadable: Collection[str] = ()) -> list[str]:
    """Return what the scheduler still says that is not so, once it has had half a minute to see how things are.

    To be asked when the cluster is at rest: its readiness, the kinds that it cannot read, how many nodes and bound pods
    it knows, how many pods wait, how many binds are under way, and how many lines its log has lost.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (found := _lies(bench, scheduler, set(unreadable))) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _lies(bench: FaultBench, scheduler: SupervisedScheduler, unreadable: set[str]) -> list[str]:
    status, page = scheduler.daemon.health("/readyz?verbose")
    metrics = scheduler.daemon.metrics()
    pods = bench.cluster.client.ok("GET", "/api/v1/pods")["items"]
    nodes = bench.cluster.client.ok("GET", "/api/v1/nodes")["items"]
    mine = [pod for pod in pods if pod["spec"]["schedulerName"] == bench.cluster.scheduler]
    pairs = [
        ("readiness", status, 200),
        ("the last line of readiness", page.splitlines()[-1:], ["readyz check passed"]),
        ("kinds that it cannot read", set(_KIND.findall(page)), unreadable),
        ("watches that are not synced", page.count("not synced"), len(unreadable)),
        ("nodes", metrics.total("scheduler_cache_size", type="nodes"), len(nodes)),
        ("bound pods", metrics.total("scheduler_cache_size", type="pods"), sum("nodeName" in p["spec"] for p in pods)),
        ("binds under way", metrics.total("scheduler_cache_size", type="assumed_pods"), 0),
        ("waiting pods", metrics.total("scheduler_pending_pods"), sum("nodeName" not in p["spec"] for p in mine)),
        ("lines lost", metrics.total("podium_log_lines_dropped_total"), sum(map(int, _LOST.findall(scheduler.log())))),
    ]
    return [f"{what}: it says {said!r}, {so!r} is so" for what, said, so in pairs if said != so]
