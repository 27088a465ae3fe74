"""What a scheduler says of itself beside what is so, at rest: `/readyz?verbose` and metrics, held against the API server.

`history/status.py` judges what was said while things went wrong.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from tests.faults.supervisor import SupervisedScheduler
from tests.integration.daemon import Metrics

if TYPE_CHECKING:
    from tests.faults.bench import FaultBench

PATIENCE_S = 30.0
MOST_STALE_S = 120.0
"""A silent watch is opened anew after 90 s."""
_FORBIDDEN = re.compile(r"^watch (\w+): not allowed", re.MULTILINE)
_NOT_SYNCED = re.compile(r"^watch (\w+): not synced", re.MULTILINE)
_UNAVAILABLE = re.compile(r"^watch (\w+): (?!synced|not synced)", re.MULTILINE)
_LOST = re.compile(r"log lines lost: (\d+)")

Row = tuple[str, object, object]


def lies(bench: FaultBench, scheduler: SupervisedScheduler) -> list[str]:
    """Return what the scheduler still says that is not so, once it has had half a minute to see how things are.

    To be asked when the cluster is at rest: its readiness, the kinds that it cannot read, how old its news are, how many
    nodes and bound pods it knows, how many pods wait, how many binds are under way or of unknown outcome, and how many
    lines its log has lost.
    """
    return _patiently(lambda: [*_at_rest(bench, scheduler), *_sizes(bench, scheduler)])


def lies_at_rest(bench: FaultBench, scheduler: SupervisedScheduler) -> list[str]:
    """Return the same but for nodes and bound pods, some of which a test's objects may keep it from understanding."""
    return _patiently(lambda: _at_rest(bench, scheduler))


def _patiently(find: Callable[[], list[str]]) -> list[str]:
    deadline = time.monotonic() + PATIENCE_S
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _at_rest(bench: FaultBench, scheduler: SupervisedScheduler) -> list[str]:
    status, page = scheduler.daemon.health("/readyz?verbose")
    live, _ = scheduler.daemon.health("/livez")
    metrics = scheduler.daemon.metrics()
    unavailable = set(_UNAVAILABLE.findall(page))
    stale = {
        labels["kind"]: seconds
        for labels, seconds in metrics.series("podium_watch_staleness_seconds")
        if seconds > MOST_STALE_S and labels["kind"] not in unavailable
    }
    return _differences(
        [
            ("readiness", status, 200),
            ("liveness", live, 200),
            ("the last line of readiness", page.splitlines()[-1:], ["readyz check passed"]),
            ("kinds that it may not read", {plural(k) for k in _FORBIDDEN.findall(page)}, _refused(bench, scheduler)),
            ("watches that are not synced", set(_NOT_SYNCED.findall(page)), unavailable),
            ("watches that hear nothing", stale, {}),
            ("binds under way", metrics.total("scheduler_cache_size", type="assumed_pods"), 0),
            ("binds of unknown outcome", metrics.total("podium_binds_unknown"), 0),
            ("lines lost", metrics.total("podium_log_lines_dropped_total"), _lines_lost(scheduler)),
            *_waiting(bench, scheduler, metrics),
        ]
    )


def plural(kind: str) -> str:
    """Return the resource of a kind: ``StorageClass`` → ``storageclasses``."""
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}es" if name.endswith("s") else f"{name}s"


def _refused(bench: FaultBench, scheduler: SupervisedScheduler) -> set[str]:
    """Return the resources whose last list or watch of this process the API server has forbidden."""
    started_s = time.time() - (time.monotonic() - scheduler.daemon.started_s)
    asked = {
        request.resource: request.code
        for request in sorted(bench.audit.read(), key=lambda request: request.received_s)
        if request.user == scheduler.user and request.verb in ("list", "watch") and request.received_s >= started_s
    }
    return {resource for resource, code in asked.items() if code == 403}


def _lines_lost(scheduler: SupervisedScheduler) -> int:
    return sum(map(int, _LOST.findall(scheduler.daemon.log())))


def _waiting(bench: FaultBench, scheduler: SupervisedScheduler, metrics: Metrics) -> list[Row]:
    if metrics.total("podium_rejected_objects_total", kind="Pod"):
        return []  # they wait, and are in no queue
    said = metrics.total("scheduler_pending_pods")
    pods = _listed(bench, "pods")
    mine = [pod for pod in pods if pod["spec"]["schedulerName"] in scheduler.daemon.schedulers]
    return [("waiting pods", said, sum("nodeName" not in pod["spec"] for pod in mine))]


def _sizes(bench: FaultBench, scheduler: SupervisedScheduler) -> list[str]:
    metrics, pods = scheduler.daemon.metrics(), _listed(bench, "pods")
    return _differences(
        [
            ("nodes", metrics.total("scheduler_cache_size", type="nodes"), len(_listed(bench, "nodes"))),
            (
                "bound pods",
                metrics.total("scheduler_cache_size", type="pods"),
                sum("nodeName" in pod["spec"] for pod in pods),
            ),
        ]
    )


def _listed(bench: FaultBench, resource: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bench.cluster.client.ok("GET", f"/api/v1/{resource}")["items"]
    return found


def _differences(rows: Collection[Row]) -> list[str]:
    return [f"{what}: it says {said!r}, {so!r} is so" for what, said, so in rows if said != so]
