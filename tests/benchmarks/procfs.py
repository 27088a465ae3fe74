"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU seconds (user and system) that the process has used; 0 if it is gone. Resolution 10 ms."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    fields = stat.rpartition(")")[2].split()  # the name before may hold anything
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def machine_cpu_s() -> float:
    """Return the CPU seconds that all processes of the machine have used so far."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    """Return the memory that the process has resident now, in MiB; 0 if it is gone."""
    return _status_mb(pid, "VmRSS:")


def peak_rss_mb(pid: int) -> float:
    """Return the most memory that the process has had resident, in MiB; 0 if it is gone."""
    return _status_mb(pid, "VmHWM:")


def _status_mb(pid: int, name: str) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    for line in status.splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0
