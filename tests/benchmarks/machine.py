"""What a figure was measured on: machine, versions, noise. Goes into every output file."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from scheduler import __version__
from tests.controlplane.build import KUBERNETES_VERSION

_LIBRARIES = ("numpy", "msgspec", "pyreqwest", "uvloop", "aiohttp", "structlog")


def facts() -> dict[str, Any]:
    """Return the machine and all versions that matter."""
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(_memory_kib() / (1 << 20), 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "podium": __version__,
        "commit": _commit(),
        "kubernetes": KUBERNETES_VERSION,
        "load_average_before": round(os.getloadavg()[0], 2),
        "libraries": {name: importlib.metadata.version(name) for name in _LIBRARIES},
    }


def sentence(known: dict[str, Any]) -> str:
    """Return the facts as one line for people."""
    return (
        f"{known['date']}; {known['cpu']}, {known['cores']} cores, {known['memory_gib']} GiB, Linux {known['kernel']}; "
        f"Python {known['python']}, Podium {known['podium']} ({known['commit']}), Kubernetes {known['kubernetes']}; "
        f"load average before: {known['load_average_before']}"
    )


def etcd_place() -> str:
    """Return where the test control plane keeps etcd's data."""
    return "in memory (/dev/shm)" if Path("/dev/shm").is_dir() else "on disk"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _memory_kib() -> int:
    return int(Path("/proc/meminfo").read_text().split()[1])


def _commit() -> str:
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "no git"
