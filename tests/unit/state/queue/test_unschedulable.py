"""UnschedulablePods: gauges and the index by rejector."""

import pytest

from scheduler.api import QueuedPodInfo
from scheduler.state.queue.unschedulable import UnschedulablePods
from scheduler.testing import pod


@pytest.fixture
def pool(metrics):
    return UnschedulablePods({"default-scheduler"}, metrics)


def record(name, *plugins, gate="", pending=()):
    return QueuedPodInfo(
        pod(name).obj(), 0.0, unschedulable_plugins=set(plugins), pending_plugins=set(pending), gating_plugin=gate
    )


def names(infos):
    return [info.pod.name for info in infos]


def test_gated_and_rejected_pods_are_counted_apart(pool, metrics):
    """A pod that changes from one to the other moves between the gauges and is not counted as incoming again."""
    info = record("a", "Gate", gate="Gate")
    pool.put(info, "UnschedulablePodAdd")
    pool.put(record("b", "Fit"), "ScheduleAttemptFailure")
    assert metrics.gauges == {"gated": 1, "unschedulable": 1}
    info.gating_plugin = ""
    pool.put(info, "NodeAdd")
    assert metrics.gauges == {"gated": 0, "unschedulable": 2}
    info.gating_plugin = "Gate"
    pool.put(info, "NodeAdd")
    assert metrics.gauges == {"gated": 1, "unschedulable": 1}
    assert pool.num_gated == 1
    assert metrics.incoming_pods == {
        ("unschedulable", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
    }


def test_a_pod_leaves_the_gauge_it_was_counted_in(pool, metrics):
    """Even if its record says something else by then."""
    info = record("a", "Gate", gate="Gate")
    pool.put(info, "x")
    info.gating_plugin = ""
    assert pool.remove("default/a") is info
    assert pool.remove("default/a") is None
    assert metrics.gauges == {"gated": 0}
    assert len(pool) == 0


def test_pods_are_found_by_the_plugins_that_rejected_them(pool):
    """Each once, in the order of the plugins asked for, then of arrival; pods of other plugins are not touched."""
    pool.put(record("a", "Fit", "Spread"), "x")
    pool.put(record("b", "Spread"), "x")
    pool.put(record("c", "Ports", pending=("Volumes",)), "x")
    pool.put(record("d", "Gate", gate="Gate"), "x")
    assert names(pool.rejected_by_any(["Fit"])) == ["a"]
    assert names(pool.rejected_by_any(["Spread", "Fit"])) == ["a", "b"]
    assert names(pool.rejected_by_any(["Volumes"])) == ["c"]
    assert names(pool.rejected_by_any(["Gate"])) == ["d"]
    assert pool.rejected_by_any(["Other"]) == []


def test_the_index_follows_the_rejectors(pool):
    """A put with other rejectors replaces the old entry."""
    info = record("a", "Fit")
    pool.put(info, "x")
    info.unschedulable_plugins.add("Gate")
    info.unschedulable_plugins.discard("Fit")
    pool.put(info, "x")
    assert pool.rejected_by_any(["Fit"]) == []
    assert names(pool.rejected_by_any(["Gate"])) == ["a"]
    pool.remove("default/a")
    assert pool.rejected_by_any(["Gate"]) == []


def test_pods_nobody_can_speak_for_concern_every_event(pool):
    """Without rejectors, or of a profile that is not known (any more)."""
    pool.put(record("no-rejector"), "x")
    pool.put(record("a", "Fit"), "x")
    assert names(pool.rejected_by_any(["Other"])) == ["no-rejector"]
    pool.set_profiles(set())
    assert names(pool.rejected_by_any(["Other"])) == ["no-rejector", "a"]
    pool.set_profiles({"default-scheduler"})
    assert names(pool.rejected_by_any(["Other"])) == ["no-rejector"]
