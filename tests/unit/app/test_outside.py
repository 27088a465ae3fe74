"""Memory after the first sync: what the cluster is made of is no business of later collections."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import pytest

from scheduler.app.outside import (
    COLLECT_EVERY_S,
    GC_THRESHOLDS,
    GC_THRESHOLDS_BEFORE_SYNC,
    MOST_SHARE_OF_TIME,
    IdleCollections,
    Outside,
)
from scheduler.testing.clock import FakeClock


class _Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def collector():
    """Put back how this process collects."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_after_the_sync_the_cluster_is_set_aside_and_garbage_is_collected_again(collector):
    gc.set_threshold(*GC_THRESHOLDS_BEFORE_SYNC)
    cluster = [[number] for number in range(1_000)]
    Outside().after_sync()
    assert gc.get_freeze_count() > len(cluster)
    assert gc.get_threshold() == GC_THRESHOLDS
    assert not any(obj is cluster for obj in gc.get_objects())


def test_while_a_scheduler_waits_for_its_api_server_garbage_is_collected_too():
    assert gc.isenabled()
    assert GC_THRESHOLDS_BEFORE_SYNC[0] > GC_THRESHOLDS[0] > 0


def test_what_has_become_old_is_collected_too_in_an_idle_moment():
    """Every minute, however few objects are made: a cycle that has outlived two collections is gone."""
    clock, cycle = FakeClock(), _Cycle()
    when_idle, is_alive = IdleCollections(clock.now), weakref.ref(cycle)
    for generation in (0, 1):
        gc.collect(generation)
    del cycle
    when_idle()
    clock.advance(COLLECT_EVERY_S - 1.0)
    when_idle()
    assert is_alive() is not None
    clock.advance(1.0)
    when_idle()
    assert is_alive() is None


def test_pages_between_what_is_in_use_are_given_back():
    """Buffers that came and went leave no large heap behind them."""
    clock = FakeClock()
    when_idle = IdleCollections(clock.now)
    before_bytes = _resident_bytes()
    buffers = [bytes([number % 256]) * 16_384 for number in range(4_000)]
    kept = [bytes([number % 256]) * 4_000 for number in range(100)]
    assert _resident_bytes() - before_bytes > 60_000_000
    kept += buffers[::40]
    del buffers
    clock.advance(COLLECT_EVERY_S)
    when_idle()
    assert _resident_bytes() - before_bytes < 16_000_000
    assert len(kept) == 200


@pytest.mark.parametrize(
    ("took_s", "collections"),
    [
        pytest.param(0.005, 60, id="a small cluster: every minute"),
        pytest.param(0.170, 21, id="a large one: a thousandth of the time"),
    ],
)
def test_collections_take_a_thousandth_of_the_time_at_most(took_s, collections):
    clock, collected = FakeClock(), []

    def collect():
        clock.advance(took_s)
        collected.append(clock.now())

    when_idle = IdleCollections(clock.now, collect)
    for _ in range(3_600):
        clock.advance(1.0)
        when_idle()
    assert len(collected) == collections
    assert len(collected) * took_s <= 3_600 * MOST_SHARE_OF_TIME
