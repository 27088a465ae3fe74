"""Podium under the profiler: ``python -m tests.benchmarks.profiled FILE run --config …`` writes FILE at the end.

Only the main thread is seen, which is the one that watches, decides and binds, and only its CPU time. The profiler makes small functions look
dearer than they are; the order of the costs is what to look at.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import time
from pathlib import Path

from scheduler.cli.main import main

MOST = 30


def profile(file: Path, arguments: list[str]) -> int:
    """Run the command and write its dearest functions, by the time spent in themselves."""
    profiler = cProfile.Profile(time.thread_time)  # what else the machine does is not in it
    code = profiler.runcall(main, arguments)
    with file.open("w") as output:
        stats = pstats.Stats(profiler, stream=output)
        stats.strip_dirs().sort_stats("tottime").print_stats(MOST)
        stats.sort_stats("cumulative").print_stats(MOST)
    return int(code)


if __name__ == "__main__":
    exit_code = profile(Path(sys.argv[1]), sys.argv[2:])
    sys.stdout.flush()
    os._exit(exit_code)  # as the command itself: the HTTP client's threads must not see the interpreter go
