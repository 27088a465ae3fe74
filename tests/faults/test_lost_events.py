"""Watch lines get lost and nobody says so: what was lost is found and repaired."""

from __future__ import annotations

import time
from pathlib import Path

from tests.faults.bench import FaultBench, fault
from tests.faults.loads import L1_RATE
from tests.faults.proxy import DropLines, Lines, Match, Rule
from tests.faults.results import at_least, at_most, exactly
from tests.integration.api import eventually

PERIOD_S = 10.0
FAULT_S = 60.0
LOST = ("ADDED", "MODIFIED", "DELETED")


@fault(12, "5 % of all lines about pods and nodes lost for 60 s")
def test_lost_lines(bench: FaultBench, tmp_path: Path) -> None:
    """The comparer finds what the watches have not told, counts it, and has it listed again within its period."""
    options = tmp_path / "options.yaml"
    options.write_text(f"apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\ncomparePeriodSeconds: {PERIOD_S}\n")
    scheduler = bench.scheduler(elect=False, proxied=True, flags=["--options", str(options)])
    cluster, seen = bench.cluster, scheduler.daemon.counting()
    begun_s = time.monotonic()
    rules = [
        scheduler.proxy.add(Rule(Match(verb="watch", resource=kind, probability=0.05), DropLines(Lines(types=LOST))))
        for kind in ("pods", "nodes")
    ]
    load = bench.load_l1(pods=int(L1_RATE * (FAULT_S - 10.0)))
    number = 0
    while time.monotonic() < begun_s + FAULT_S:
        number += 1
        node = f"/api/v1/nodes/{cluster.namespace}-n{number % 50}"
        cluster.patch(node, {"metadata": {"labels": {"round": str(number)}}})
        if number % 4 == 0 and len(load.created) > number // 4:
            cluster.delete(load.created[number // 4])
        time.sleep(0.1)
    load.wait_created()
    lost = sum(rule.hits for rule in rules)
    for rule in rules:
        rule.remove()
    ended_s = time.monotonic()
    seconds = bench.settle()
    bench.figure("lines lost", at_least(20), lost)
    bench.figure("everything true again after", at_most(PERIOD_S), time.monotonic() - ended_s, "s")
    bench.figure("drift counted", at_least(1), seen("podium_cache_drift_total"))
    bench.figure("lists because of it", at_least(1), seen("podium_watch_relists_total", cause="drift"))
    bench.note(
        f"{seen('podium_comparisons_total'):g} comparisons; all bound {seconds:.1f} s after the last line was lost"
    )
    # A lost line may have told of something else than places and queue: that is repaired by the next comparison.
    since = scheduler.daemon.counting()
    eventually(
        lambda: since("podium_comparisons_total") >= 4, "both kinds to be compared from the start", timeout_s=120.0
    )
    later = scheduler.daemon.counting()
    eventually(lambda: later("podium_comparisons_total") >= 4, "two more comparisons of both kinds", timeout_s=120.0)
    bench.figure("drift found after that", exactly(0), later("podium_cache_drift_total"))
    bench.figure("comparisons that failed", exactly(0), seen("podium_comparisons_total", result="failed"))
    bench.verdict()
