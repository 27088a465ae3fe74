"""The clock of leases and time limits."""

from __future__ import annotations

import time

__all__ = ["boottime_s"]


def boottime_s() -> float:
    """Return seconds on CLOCK_BOOTTIME: monotonic, and it goes on while the process or the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
