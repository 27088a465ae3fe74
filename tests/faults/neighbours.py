"""How neighbours fare: a plain load beside whatever is done to the scheduler, against the same load alone."""

from __future__ import annotations

from tests.faults.bench import FaultBench
from tests.faults.loads import Load
from tests.faults.results import at_least, at_most, patience
from tests.integration.api import eventually


def waits_s(bench: FaultBench, load: Load) -> list[float]:
    """Return how long each pod of the load waited to be bound, shortest first; all must be bound."""
    names = set(load.created)
    seen: dict[str, tuple[str, float]] = {}
    for version in bench.observer.versions:
        namespace, _, name = version.key.partition("/")
        if version.kind == "Pod" and namespace == bench.cluster.namespace and name in names:
            seen.setdefault(name, (version.uid, version.at_s))
    bound = bench.bound_at()
    waits = [max(bound[uid] - at_s, 0.0) for uid, at_s in seen.values() if uid in bound]
    assert len(waits) == load.pods, f"{load.pods - len(waits)} pods of the load have no bind in the audit log"
    return sorted(waits)


def rate(bench: FaultBench, load: Load) -> float:
    """Return the pods bound a second, from the first bind to the last."""
    uids = {v.uid for v in bench.observer.versions if v.kind == "Pod" and v.key.partition("/")[2] in set(load.created)}
    times = sorted(at_s for uid, at_s in bench.bound_at().items() if uid in uids)
    return (len(times) - 1) / max(times[-1] - times[0], 1e-3)


def wait_done(bench: FaultBench, load: Load) -> Load:
    """Wait until the load is created and bound."""
    load.wait_created()
    names = set(load.created)
    eventually(lambda: names <= bench.cluster.bound().keys(), "every pod of the load to be bound", timeout_s=180)
    return load


def compare(bench: FaultBench, alone: Load, beside: Load) -> None:
    """Note how the second load fared against the first; its rate is a figure where the machine does nothing else."""
    waits = waits_s(bench, beside)
    bench.figure("neighbours: wait of the slowest of 95 %", at_most(1.0), waits[int(len(waits) * 0.95)], "s")
    share = rate(bench, beside) / rate(bench, alone)
    if patience() <= 1.0:
        bench.figure("neighbours' rate, share", at_least(0.9), share)
    else:
        bench.note(f"neighbours' rate, share: {share:.2f}")
