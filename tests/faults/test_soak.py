"""Random faults for as long as one likes: two hours by `make soak`, three minutes among the other tests."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.bench import FaultBench, fault
from tests.faults.loads import l2_nodes
from tests.faults.results import at_least, at_most, exactly
from tests.faults.soak import FAULTS, Churn
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.daemon import Daemon

ROUND_FAULTS = 3
RATE = 15.0
MAX_SERIES = 5_000
MORE_SERIES = 500
"""The first bind that fails brings 150, with its histograms, and may come late; one a pod or a fault would be thousands."""
IDLE_CONNECTIONS_S = 120.0
"""The API server closes a connection that has been idle for 90 s."""
SLOPE_HOURS = 0.5
"""A shorter soak says nothing about the slope of memory, and does not claim to."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a process."""

    at_s: float
    rss_bytes: int
    threads: int
    files: int
    series: int

    @classmethod
    def of(cls, daemon: Daemon) -> Sample:
        process = Path(f"/proc/{daemon.process.pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
        rss_bytes = int(status["VmRSS"].split()[0]) * 1024
        files = len(list((process / "fd").iterdir()))
        series = len(daemon.metrics().names)
        return cls(time.monotonic(), rss_bytes, int(status["Threads"]), files, series)


@fault(52, "soak: random faults, pods that come and go")
@pytest.mark.timeout(4 * 3600)
def test_soak(bench: FaultBench, request: pytest.FixtureRequest) -> None:
    """After every few faults everything settles, and is judged; a scheduler that is never killed shows what grows."""
    minutes = request.config.getoption("--soak-minutes")
    options = bench.directory / "options.yaml"
    options.write_text("apiVersion: podium.dev/v1alpha1\nkind: SchedulerOptions\ncomparePeriodSeconds: 10\n")
    for name in "ab":
        bench.scheduler(name, proxied=True, flags=["--options", str(options)])
    witness_name = f"{bench.cluster.scheduler}-witness"
    witness = bench.scheduler("w", elect=False, profile={"schedulerName": witness_name})
    bench.cluster.create(*l2_nodes(bench.cluster))
    churn = Churn(bench, (bench.cluster.scheduler, bench.cluster.scheduler, witness_name), RATE)
    bench.settle()
    samples, faults, rounds = [Sample.of(witness.daemon)], 0, 0
    end_s = time.monotonic() + 60 * minutes
    try:
        while time.monotonic() < end_s:
            rounds += 1
            faults += _round(bench, churn)
            samples.append(Sample.of(witness.daemon))
    finally:
        churn.stop()
    bench.settle()
    bench.note(f"{minutes:g} minutes, {rounds} rounds, {faults} faults, {churn.created:,} pods")
    bench.figure("faults", at_least(1), faults)
    bench.figure("restarts of the scheduler that nobody harms", exactly(0), witness.restarts)
    _growth(bench, samples)
    files = _files_at_rest(witness.daemon, samples[0].files)
    bench.figure("files and sockets that it gained, at rest", at_most(2), files - samples[0].files)
    bench.verdict()


def _round(bench: FaultBench, churn: Churn) -> int:
    """Do a few faults under churn, wait until all has settled, judge, and forget what is behind."""
    churn.go_on()
    time.sleep(bench.random.uniform(1.0, 4.0))
    names = [bench.random.choice(sorted(FAULTS)) for _ in range(ROUND_FAULTS)]
    for name in names:
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        FAULTS[name](bench, bench.random)
        time.sleep(bench.random.uniform(0.0, 3.0))
    churn.pause()
    for scheduler in bench.schedulers.values():
        scheduler.wait_ready(120)
    leader: SupervisedScheduler = bench.leader
    seconds = bench.settle(120)
    print(f"{time.strftime('%H:%M:%S')} settled in {seconds:.1f} s; {leader.name} leads", flush=True)
    bench.judge()
    bench.cut()
    return len(names)


def _growth(bench: FaultBench, samples: list[Sample]) -> None:
    """Note what grew in the scheduler that lived through all of it, after its first quarter."""
    warm = samples[1 + len(samples) // 4 :]
    hours = (warm[-1].at_s - warm[0].at_s) / 3600
    bench.figure("threads that it gained", at_most(0), max(s.threads for s in warm[1:] or warm) - warm[0].threads)
    bench.figure("series at the end", at_most(MAX_SERIES), warm[-1].series)
    bench.figure("series that it gained", at_most(MORE_SERIES), warm[-1].series - warm[0].series)
    if hours < SLOPE_HOURS:
        bench.note(f"its memory went from {warm[0].rss_bytes >> 20} to {warm[-1].rss_bytes >> 20} MiB")
        return
    slope = statistics.linear_regression([s.at_s / 3600 for s in warm], [s.rss_bytes for s in warm]).slope
    percent = 100 * slope / statistics.mean(s.rss_bytes for s in warm)
    bench.figure("its memory grows by", at_most(1), percent, "% an hour")


def _files_at_rest(daemon: Daemon, enough: int) -> int:
    """Return how many files and sockets are open once connections that nobody needs have run out; wait for that long.

    Right after a fault there are as many as were needed at once, or few since all have just been cut.
    """
    end_s = time.monotonic() + IDLE_CONNECTIONS_S
    while (files := Sample.of(daemon).files) > enough and time.monotonic() < end_s:
        time.sleep(1.0)
    return files
