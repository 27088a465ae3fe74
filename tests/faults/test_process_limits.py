"""The scheduler's own process is short of something: a reader of its log, disk, descriptors, half a core, memory."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import HOST
from tests.faults.bench import FaultBench, fault
from tests.faults.loads import Load
from tests.faults.memory_group import MemoryGroup, memory_group
from tests.faults.proxy import FaultProxy, Match, ResetPeer, Rule
from tests.faults.results import at_least, at_most, exactly
from tests.faults.truth import lies
from tests.integration.api import eventually

DROPPED = "podium_log_lines_dropped_total"
NO_READER_S = 60.0
LINES = 12_000
"""More than the log's queue holds."""

NEAR = 1.05
"""A limit so many times what the process uses."""
A_LITTLE = 1 << 20

FULL_S = 20.0
NO_DESCRIPTORS_S = 6.0

AFTERWARDS = 200
"""So many pods of a load are created after the end of a fault."""


# --- the log ---------------------------------------------------------------------------------------------------------


class PipedLog:
    """A pipe for a scheduler's standard error, whose reader can stop; what it reads goes to a file."""

    def __init__(self, directory: Path) -> None:
        self.pipe = directory / "log.pipe"
        os.mkfifo(self.pipe)
        # Opened for both, so that neither end waits for the other, and the pipe stays when a scheduler ends.
        self._descriptor = os.open(self.pipe, os.O_RDWR)
        self._may_read = threading.Event()
        self._may_read.set()
        self._is_stopping = False
        self.file: Path | None = None
        self._thread = threading.Thread(target=self._run, name="log-reader", daemon=True)

    @property
    def wrapper(self) -> list[str]:
        return ["sh", "-c", f'exec "$@" 2>{self.pipe}', "sh"]

    def read_to(self, file: Path) -> None:
        """Begin to read."""
        self.file = file
        self._thread.start()

    def stop_reading(self) -> None:
        self._may_read.clear()

    def read_on(self) -> None:
        self._may_read.set()

    def close(self) -> None:
        self._is_stopping = True
        self._may_read.set()
        os.write(self._descriptor, b"\n")
        self._thread.join(10)
        os.close(self._descriptor)

    def _run(self) -> None:
        assert self.file is not None
        with self.file.open("ab") as file:
            while not self._is_stopping:
                self._may_read.wait()
                file.write(os.read(self._descriptor, 4096))
                file.flush()


def knock(port: int, count: int) -> None:
    """Connect and hang up, so often: each time is worth a line at -v=10."""
    for _ in range(count):
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=5):
            pass


def bound_between(bench: FaultBench, begun_s: float, end_s: float) -> int:
    return sum(begun_s <= at_s < end_s for at_s in bench.bound_at().values())


def share_bound(bench: FaultBench, load: Load, begun_s: float, end_s: float) -> float:
    """Return which part of the pods that were created in a time were bound in it."""
    return bound_between(bench, begun_s, end_s) / (load.rate * (end_s - begun_s))


@fault(44, "nobody reads standard error for 60 s, at -v=10 (L1)")
def test_log_that_nobody_reads(bench: FaultBench) -> None:
    """Decisions go on at full rate; what is lost is counted, and said when lines are taken again; the end ends."""
    log = PipedLog(bench.directory)
    scheduler = bench.scheduler("a", verbosity=10, wrapper=log.wrapper, wait=False)
    try:
        log.read_to(scheduler.daemon.process.log)
        scheduler.wait_ready()
        load = bench.load_l1(pods=3_500)
        load.wait_created(100)
        log.stop_reading()
        begun_s = time.time()
        knock(scheduler.daemon.port, LINES)
        time.sleep(max(0.0, begun_s + NO_READER_S - time.time()))
        end_s = time.time()
        assert scheduler.daemon.health("/livez")[0] == 200
        bench.figure("lines dropped and counted", at_least(1), scheduler.daemon.metrics().total(DROPPED))
        log.read_on()
        eventually(lambda: "log lines lost: " in scheduler.log(), "the log to say how many lines were lost")
        bench.figure("bound meanwhile, of those created", at_least(0.9), share_bound(bench, load, begun_s, end_s))
        bench.settle()
        log.stop_reading()
        knock(scheduler.daemon.port, LINES // 6)  # more than the pipe holds
        code, seconds = scheduler.terminate()
        bench.figure("exit code while nobody reads", exactly(0), code)
        bench.figure("until its end", at_most(20), seconds, "s")
        bench.verdict()
    finally:
        scheduler.stop()
        log.close()


@fault(44, "the volume of the log is full for 20 s (L1)")
def test_log_volume_that_is_full(bench: FaultBench) -> None:
    """The same for a file that takes nothing: the limit of its size stands for the volume's end."""
    scheduler = bench.scheduler("a", verbosity=4)
    load = bench.load_l1(pods=1_500)
    load.wait_created(100)
    pid = scheduler.daemon.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
    begun_s = time.time()
    time.sleep(FULL_S)
    end_s = time.time()
    assert scheduler.daemon.health("/livez")[0] == 200
    bench.figure("lines dropped and counted", at_least(1), scheduler.daemon.metrics().total(DROPPED))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    eventually(lambda: "log lines lost: " in scheduler.log(), "the log to say how many lines were lost")
    bench.settle()
    assert lies(bench, scheduler) == []
    bench.figure("bound meanwhile, of those created", at_least(0.9), share_bound(bench, load, begun_s, end_s))
    bench.note("RLIMIT_FSIZE of the process stands for a volume that is full: writes fail with EFBIG instead of ENOSPC")
    bench.verdict()


# --- descriptors and processor ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def no_more_descriptors(pid: int) -> Iterator[None]:
    """Let a process open no further file while it lasts, not even instead of one that it closes."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def burning(core: int) -> Iterator[None]:
    """Let another process use a core as much as it can."""
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.sched_setaffinity(burner.pid, {core})
        yield
    finally:
        burner.kill()
        burner.wait()


@fault(45, "no file descriptors for 6 s, connections cut; then one core shared with a busy process for 30 s (L1)")
def test_no_descriptors_and_half_a_core(bench: FaultBench) -> None:
    """It says what it lacks, keeps its lease, and goes on by itself; a busy core costs no lease."""
    scheduler = bench.scheduler("a", proxied=True)
    proxy = scheduler.proxy
    assert isinstance(proxy, FaultProxy)
    load = bench.load_l1(pods=3_000)
    load.wait_created(100)
    with no_more_descriptors(scheduler.daemon.process.pid):
        handle = proxy.add(Rule(Match(), ResetPeer()))
        time.sleep(0.2)
        handle.remove()
        time.sleep(NO_DESCRIPTORS_S)
    freed_s = time.time()
    eventually(lambda: scheduler.daemon.health("/livez")[0] == 200, "health to be served again")
    assert "Too many open files" in scheduler.log()
    time.sleep(10.0)
    changes, restarts = bench.changes_of_leader(), scheduler.restarts
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(scheduler.daemon.process.pid, {core})
    with burning(core):
        begun_s = time.time()
        time.sleep(30.0)
        bench.figure("changes of leader on half a core", exactly(0), bench.changes_of_leader() - changes)
        bench.figure("restarts on half a core", exactly(0), scheduler.restarts - restarts)
        end_s = time.time()
    bench.settle()
    bench.figure("N after descriptors", at_most(10), bench.recovery_s(load, freed_s), "s")
    bench.figure("bound on half a core, of those created", at_least(0.9), share_bound(bench, load, begun_s, end_s))
    bench.verdict()


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    """A control group; asked for before the bench, it is there until the bench has ended all schedulers."""
    with memory_group() as made:
        yield made


@fault(45, "the memory of its control group nearly used, then all of it: killed, started again without a limit (L1)")
def test_memory_limit(group: MemoryGroup, bench: FaultBench) -> None:
    """It says how near it is; the kernel's end is a crash as any other, after which it or the standby goes on."""
    scheduler = bench.scheduler("a", wrapper=group.wrapper)
    bench.scheduler("b")
    assert bench.leader is scheduler
    load = bench.load_l1(pods=5_000)
    load.wait_created(100)
    group.limit(int(scheduler.daemon.metrics().total("process_resident_memory_bytes") * NEAR))
    bench.sampler.wait_asked(scheduler)
    bench.figure("times killed near the limit", exactly(0), group.kills)
    group.limit(group.usage_bytes + A_LITTLE)
    killed_s = scheduler.wait_exit(-signal.SIGKILL)
    group.no_limit()
    bench.figure("times killed by the kernel", at_least(1), group.kills)
    load.end_after(AFTERWARDS)
    scheduler.wait_ready()
    bench.settle()
    bench.figure("N after the kill, a lease of 15 s included", at_most(20), bench.recovery_s(load, killed_s), "s")
    bench.verdict()
