"""What the scheduling side takes from the machine: time, chance, memory, threads and the network to extenders.

A simulation hands in its own.
"""

from __future__ import annotations

import ctypes
import gc
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from scheduler.api import Clock, Random
from scheduler.app.blocking import BlockingCalls
from scheduler.app.clock import SystemClock
from scheduler.app.extenders import extender_call
from scheduler.config.types import Extender
from scheduler.framework.binding import RunBlocking
from scheduler.framework.extender import ExtenderCall
from scheduler.kube.extender_client import CallObserver

__all__ = [
    "COLLECT_EVERY_S",
    "GC_THRESHOLDS",
    "GC_THRESHOLDS_BEFORE_SYNC",
    "MOST_SHARE_OF_TIME",
    "IdleCollections",
    "Outside",
]

# A collection scans all objects that can refer to others. After the first sync the cluster's objects are set aside
# (gc.freeze), and collections become rare: what a cycle makes is freed by reference counting.
GC_THRESHOLDS = (50_000, 20, 100)

# The first lists make objects that stay; collections among them find nothing. They are not turned off, since a
# scheduler may have to try for days to reach its API server.
GC_THRESHOLDS_BEFORE_SYNC = (1_000_000, 20, 100)

# By count alone an idle scheduler collects once in an hour, or in a day what has become old. Until then whatever ended
# connections leave behind (asyncio's transports refer to themselves) is kept, and the memory of the largest heap stays.
COLLECT_EVERY_S = 60.0
MOST_SHARE_OF_TIME = 0.001
"""A collection takes a sixth of a second where 30,000 pods have come since the first sync; the next is later then."""


def set_aside() -> None:
    """Take the cluster's objects, which stay, out of every later collection.

    Without a collection before it, because decisions begin at this moment: it would take a sixth of a second with
    30,000 pods, to find the sixty kilobytes that imports have left.
    """
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def give_back() -> None:
    """Collect all garbage, and give whole pages that are free to the kernel.

    glibc keeps what lies between allocations in use. Buffers of connections come and go by the quarter of a megabyte,
    so that without this the heap grows for hours, with nothing more in it.
    """
    gc.collect()
    _malloc_trim(0)


# Other C libraries do not have it (musl), or do not need it.
_malloc_trim: Callable[[int], object] = getattr(ctypes.CDLL(None), "malloc_trim", lambda _pad_bytes: 0)


class IdleCollections:
    """Collects all garbage from time to time, called whenever there is nothing to do.

    Args:
        monotonic: for the time between collections and for what one takes, in seconds.
        collect: does it.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, collect: Callable[[], object] = give_back
    ) -> None:
        self._monotonic = monotonic
        self._collect = collect
        self._due_s = monotonic() + COLLECT_EVERY_S

    def __call__(self) -> None:
        begun_s = self._monotonic()
        if begun_s >= self._due_s:
            self._collect()
            ended_s = self._monotonic()
            self._due_s = ended_s + max(COLLECT_EVERY_S, (ended_s - begun_s) / MOST_SHARE_OF_TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The machine.

    Attributes:
        clock: for deadlines and back-off.
        random: spreads ties and retries; nothing secret depends on it.
        perf_counter: measures durations, in seconds.
        now_ns: the time of day, which events are told with.
        after_sync: is called once when all kinds have been delivered.
        when_idle: is called whenever there is nothing to decide or to take in.
        blocking: makes, by a name for its threads, what runs functions that may block.
        extender_call: makes what calls one extender; raises ConfigError.
    """

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=random.Random)
    perf_counter: Callable[[], float] = time.perf_counter
    now_ns: Callable[[], int] = time.time_ns
    after_sync: Callable[[], None] = set_aside
    when_idle: Callable[[], None] = field(default_factory=IdleCollections)
    blocking: Callable[[str], RunBlocking] = BlockingCalls
    extender_call: Callable[[Extender, CallObserver], ExtenderCall] = extender_call
