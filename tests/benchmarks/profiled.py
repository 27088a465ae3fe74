"""Podium under the profiler: ``python -m tests.benchmarks.profiled FILE run --config …`` writes FILE at the end.

Only the thread that watches, decides and binds is seen, from its start (the first list included) to its end, and only its
CPU time. The profiler makes small functions look dearer than they are; the order of the costs is what to look at.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import threading
import time
from pathlib import Path

from scheduler.cli.main import main

THREAD = "scheduling"
MOST = 40


class Profiles:
    """Puts a profiler around the thread of that name, whoever starts it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._run = threading.Thread.run
        profiles = self

        def run(thread: threading.Thread) -> None:
            profiles.around(thread)

        threading.Thread.run = run

    def around(self, thread: threading.Thread) -> None:
        """Run the thread; write its dearest functions, by the time spent in themselves, when it has ended."""
        if thread.name != THREAD:
            self._run(thread)
            return
        profiler = cProfile.Profile(time.thread_time)
        try:
            profiler.runcall(self._run, thread)
        finally:
            with self._file.open("w") as output:
                stats = pstats.Stats(profiler, stream=output).strip_dirs()
                stats.sort_stats("tottime").print_stats(MOST)
                stats.sort_stats("cumulative").print_stats(MOST)


if __name__ == "__main__":
    Profiles(Path(sys.argv[1]))
    exit_code = main(sys.argv[2:])
    sys.stdout.flush()
    os._exit(exit_code)  # as the command itself: the HTTP client's threads must not see the interpreter go
