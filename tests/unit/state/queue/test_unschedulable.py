"""UnschedulablePods: gauges, the index by rejector, and the indexes of hints."""

import pytest

from scheduler.api import EventRegistration, QueuedPodInfo, QueueingHint
from scheduler.api.events import HintIndex, IndexedRegistration
from scheduler.state.changes import ASSIGNED_POD_ADD, NODE_ADD
from scheduler.state.queue.hints import Asked, QueueingHints
from scheduler.state.queue.profile import QueueProfile
from scheduler.state.queue.unschedulable import UnschedulablePods
from scheduler.testing import pod

BY_APP = HintIndex(
    wanted=lambda waiting: [("app", waiting.labels["app"])] if "app" in waiting.labels else None,
    offered=lambda old, new: None if new is None else [("app", [new.labels.get("app", "")])],
)
PLUGINS = ("Fit", "Spread", "Volumes", "Gate", "Other")


def hints_of(metrics, *profiles, registrations=()):
    every = [(plugin, EventRegistration(NODE_ADD)) for plugin in PLUGINS]
    made = {profile: QueueProfile(registrations=[*every, *registrations]) for profile in profiles}
    return QueueingHints(made, metrics=metrics, perf_counter=lambda: 0.0)


@pytest.fixture
def pool(metrics):
    return UnschedulablePods(hints_of(metrics, "default-scheduler"), metrics)


def rejected_by_any(pool, plugins):
    return pool.concerned([Asked(plugin, None) for plugin in plugins], None, None)


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
    assert names(rejected_by_any(pool, ["Fit"])) == ["a"]
    assert names(rejected_by_any(pool, ["Spread", "Fit"])) == ["a", "b"]
    assert names(rejected_by_any(pool, ["Volumes"])) == ["c"]
    assert names(rejected_by_any(pool, ["Gate"])) == ["d"]
    assert rejected_by_any(pool, ["Other"]) == []


def test_the_index_follows_the_rejectors(pool):
    """A put with other rejectors replaces the old entry."""
    info = record("a", "Fit")
    pool.put(info, "x")
    info.unschedulable_plugins.add("Gate")
    info.unschedulable_plugins.discard("Fit")
    pool.put(info, "x")
    assert rejected_by_any(pool, ["Fit"]) == []
    assert names(rejected_by_any(pool, ["Gate"])) == ["a"]
    pool.remove("default/a")
    assert rejected_by_any(pool, ["Gate"]) == []


def test_pods_nobody_can_speak_for_concern_every_event(pool, metrics):
    """Without rejectors, or of a profile that is not known (any more)."""
    pool.put(record("no-rejector"), "x")
    pool.put(record("a", "Fit"), "x")
    assert names(rejected_by_any(pool, ["Other"])) == ["no-rejector"]
    pool.set_hints(hints_of(metrics))
    assert names(rejected_by_any(pool, ["Other"])) == ["no-rejector", "a"]
    pool.set_hints(hints_of(metrics, "default-scheduler"))
    assert names(rejected_by_any(pool, ["Other"])) == ["no-rejector"]


def waiting_for(name, app, *plugins, profile="default-scheduler"):
    labels = {"app": app} if app else {}
    made = pod(name).labels(labels).scheduler(profile).obj()
    return QueuedPodInfo(made, 0.0, unschedulable_plugins=set(plugins))


def came(pool, app, event=ASSIGNED_POD_ADD):
    return names(pool.concerned(pool._hints.asked(event).values(), None, pod("new").label("app", app).obj()))


@pytest.fixture
def indexed(metrics):
    """Spread has an index, as has Volumes; Fit asks about all."""
    hint = lambda *_: QueueingHint.SKIP  # noqa: E731
    registrations = [
        ("Spread", IndexedRegistration(ASSIGNED_POD_ADD, hint, index=BY_APP)),
        ("Volumes", IndexedRegistration(ASSIGNED_POD_ADD, hint, index=BY_APP)),
        ("Fit", EventRegistration(ASSIGNED_POD_ADD, hint)),
    ]
    hints = hints_of(metrics, "default-scheduler", "second", registrations=registrations)
    return UnschedulablePods(hints, metrics)


def test_an_index_leaves_out_the_pods_that_want_something_else(indexed):
    """In order of arrival; of a plugin without an index, and of a pod that wants anything, all are found."""
    for name, app in (("b", "web"), ("a", "web"), ("c", "db"), ("d", "")):
        indexed.put(waiting_for(name, app, "Spread"), "x")
    indexed.put(waiting_for("e", "db", "Fit"), "x")
    assert came(indexed, "web") == ["b", "a", "d", "e"]
    assert came(indexed, "other") == ["d", "e"]


def test_a_pod_of_two_rejectors_is_found_by_either(indexed):
    """Two plugins may even share one index, and profiles the plugins."""
    indexed.put(waiting_for("a", "web", "Spread", "Volumes"), "x")
    indexed.put(waiting_for("b", "web", "Volumes", profile="second"), "x")
    indexed.put(waiting_for("c", "db", "Volumes", "Fit"), "x")
    assert sorted(came(indexed, "web")) == ["a", "b", "c"]
    assert came(indexed, "db") == ["c"]
    for key in ("default/a", "default/b"):
        indexed.remove(key)
    assert came(indexed, "web") == ["c"]


def test_an_event_that_says_nothing_concerns_all(indexed):
    """The index could not say what it offers."""
    indexed.put(waiting_for("a", "web", "Spread"), "x")
    indexed.put(waiting_for("b", "", "Spread"), "x")
    assert names(indexed.concerned(indexed._hints.asked(ASSIGNED_POD_ADD).values(), None, None)) == ["a", "b"]


def test_what_a_pod_wants_follows_the_pod(indexed):
    """A new version of it is put in again; one that left is found no more."""
    info = waiting_for("a", "web", "Spread")
    indexed.put(info, "x")
    info.pod = pod("a").label("app", "db").obj()
    indexed.put(info, "x")
    assert came(indexed, "web") == []
    assert came(indexed, "db") == ["a"]
    indexed.remove("default/a")
    assert came(indexed, "db") == []


def test_other_events_of_the_plugin_know_no_index(indexed):
    """An index belongs to a registration."""
    indexed.put(waiting_for("a", "web", "Spread"), "x")
    assert came(indexed, "other", NODE_ADD) == ["a"]


def test_one_profile_without_an_index_is_enough_to_ask_about_all(metrics):
    """A third party's plugin may have the name of one that has an index."""
    hint = lambda *_: QueueingHint.SKIP  # noqa: E731
    profiles = {
        "default-scheduler": [("Spread", IndexedRegistration(ASSIGNED_POD_ADD, hint, index=BY_APP))],
        "second": [("Spread", EventRegistration(ASSIGNED_POD_ADD, hint))],
    }
    made = {name: QueueProfile(registrations=registrations) for name, registrations in profiles.items()}
    pool = UnschedulablePods(QueueingHints(made, metrics=metrics, perf_counter=lambda: 0.0), metrics)
    pool.put(waiting_for("a", "web", "Spread"), "x")
    pool.put(waiting_for("b", "web", "Spread", profile="second"), "x")
    assert came(pool, "other") == ["a", "b"]
