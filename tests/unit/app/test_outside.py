"""Memory after the first sync: what the cluster is made of is no business of later collections."""

from __future__ import annotations

import gc

import pytest

from scheduler.app.outside import GC_THRESHOLDS, GC_THRESHOLDS_BEFORE_SYNC, Outside


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
