"""CPU time of everything that takes part in a run, taken at one moment; and what of it happened between two moments."""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import perf_counter
from typing import Self

from tests.benchmarks import procfs

PARTS = ("scheduler", "apiserver", "etcd")


@dataclass(slots=True)
class Usage:
    """CPU seconds of all three processes at some moment, and of the whole machine and the harness."""

    at_s: float
    scheduler: float
    apiserver: float
    etcd: float
    machine: float
    harness: float

    @classmethod
    def now(cls, scheduler: int, apiserver: int, etcd: int) -> Self:
        """Read the counters of these process ids."""
        parts = (procfs.cpu_s(pid) for pid in (scheduler, apiserver, etcd))
        return cls(perf_counter(), *parts, procfs.machine_cpu_s(), procfs.cpu_s(os.getpid()))

    def ms_per_pod(self, earlier: Usage, pods: int) -> dict[str, float]:
        """Return the milliseconds a pod since an earlier moment, by process."""
        return {name: round((getattr(self, name) - getattr(earlier, name)) * 1e3 / max(pods, 1), 3) for name in PARTS}

    def others_cores(self, earlier: Usage) -> float:
        """Return how many cores strangers kept busy since an earlier moment; more than a little spoils a run."""
        ours = sum(getattr(self, name) - getattr(earlier, name) for name in (*PARTS, "harness"))
        return round(max(self.machine - earlier.machine - ours, 0.0) / max(self.at_s - earlier.at_s, 0.01), 2)
