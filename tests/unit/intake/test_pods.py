"""Pods: assigned ones to the cache, ours that pend to the queue (upstream's eventhandlers.go, spec 1.2)."""

import pytest

from scheduler.model.delta import Added, Changed, Removed
from scheduler.model.pod import Pod
from scheduler.testing import node, pod

PENDING = pod("p")
FOREIGN = pod("f").scheduler("other")
N1, N2 = node("n1").obj(), node("n2").obj()
V2 = "2"


def with_nodes(bench):
    bench.apply(Added(N1), Added(N2))
    bench.seconds.clear()


# --- added ---


def test_pending_pod_is_queued(bench):
    """A pod of ours without a node is work."""
    bench.apply(Added(PENDING.obj()))
    assert bench.place(PENDING.obj()) == "active"
    assert bench.cache.num_pods == 0
    assert bench.stores.of(Pod).get("default/p") is not None
    assert bench.seconds == {"UnschedulablePodAdd": 1}


@pytest.mark.parametrize("made", [PENDING, FOREIGN], ids=["ours", "another scheduler's"])
def test_assigned_pod_takes_room(bench, made):
    """Whoever scheduled it."""
    with_nodes(bench)
    parked = bench.park(pod("waits").obj())
    bench.apply(Added(made.on("n1").obj()))
    assert len(bench.pods_on("n1")) == 1
    assert bench.place(made.obj()) is None
    assert bench.is_woken(parked)
    assert bench.seconds == {"AssignedPodAdd": 1}


def test_foreign_pending_pod_is_ignored(bench):
    """It is somebody else's work; the store has it all the same, because plugins may look at it."""
    bench.apply(Added(FOREIGN.obj()))
    assert bench.place(FOREIGN.obj()) is None
    assert bench.stores.of(Pod).get("default/f") is not None


def test_pod_may_come_before_its_node(bench):
    """Watches are not ordered among one another."""
    bench.apply(Added(PENDING.on("n1").obj()))
    assert bench.pods_on("n1") == []
    bench.apply(Added(N1))
    assert bench.pods_on("n1") == ["p"]


def test_a_pod_that_the_cache_refuses_stops_nothing(bench):
    """Two Added in a row are the watch's mistake; the first one stands, the scheduler lives on."""
    with_nodes(bench)
    bench.apply(Added(PENDING.on("n1").obj()), Added(PENDING.on("n1").obj()), Added(pod("q").obj()))
    assert bench.pods_on("n1") == ["p"]
    assert bench.place(pod("q").obj()) == "active"


# --- changed ---


def test_update_of_a_pending_pod(bench):
    """The queue gets the new version."""
    old, new = PENDING.obj(), PENDING.priority(7).resource_version(V2).obj()
    bench.apply(Added(old), Changed(old, new))
    assert bench.queue.get("default/p").pod is new
    assert bench.seconds == {"UnschedulablePodAdd": 1, "UnschedulablePodUpdate": 1}


def test_update_with_the_same_version_is_a_duplicate(bench):
    """Taking it in could schedule a pod twice (k/k#96071)."""
    parked = bench.park(PENDING.obj())
    bench.apply(Changed(parked, PENDING.label("a", "b").obj()))
    assert not bench.is_woken(parked)
    assert not bench.seconds


def test_update_wakes_the_pod_itself(bench):
    """Its rejector hears what changed, by property."""
    parked = bench.park(PENDING.obj())
    bench.apply(Changed(parked, PENDING.label("a", "b").resource_version(V2).obj()))
    assert bench.is_woken(parked)
    assert bench.seconds == {"UnschedulablePodUpdate": 1, "UnschedulablePodUpdatePodLabel": 1}


def test_update_of_an_assigned_pod(bench):
    """The cache counts what the pod takes now, and one event for each changed property wakes others."""
    with_nodes(bench)
    old = PENDING.requests(cpu="2").on("n1").obj()
    new = PENDING.requests(cpu="1").label("a", "b").on("n1").resource_version(V2).obj()
    bench.apply(Added(old))
    parked = bench.park(pod("waits").obj())
    bench.seconds.clear()
    bench.apply(Changed(old, new))
    assert bench.cache.get_node("n1").requested["cpu"] == 1000
    assert bench.is_woken(parked)
    assert bench.seconds == {
        "AssignedPodUpdate": 1,
        "AssignedPodUpdatePodLabel": 1,
        "AssignedPodUpdatePodScaleDown": 1,
    }


def test_binding_seen_confirms_the_assumed_pod(bench):
    """Nothing is counted twice, and the queue forgets the pod."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    bench.apply(Changed(old, PENDING.on("n1").resource_version(V2).obj()))
    assert bench.pods_on("n1") == ["p"]
    assert bench.cache.num_assumed == 0


def test_binding_to_another_node_than_assumed(bench):
    """The API server is right."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    bench.apply(Changed(old, PENDING.on("n2").resource_version(V2).obj()))
    assert (bench.pods_on("n1"), bench.pods_on("n2")) == ([], ["p"])


def test_pod_bound_by_someone_else_leaves_the_queue(bench):
    """Another scheduler, or a person, took it."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old), Changed(old, PENDING.on("n1").resource_version(V2).obj()))
    assert bench.place(old) is None
    assert bench.pods_on("n1") == ["p"]
    assert bench.seconds["UnschedulablePodDelete"] == 1


def test_update_of_an_assumed_pod_is_ignored(bench):
    """The decision is made; a label that comes now changes nothing."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    bench.queue.done(old.uid)
    bench.apply(Changed(old, PENDING.label("a", "b").resource_version(V2).obj()))
    assert bench.place(old) is None
    assert bench.cache.is_assumed(old.uid)


def test_assumed_pod_that_terminates_gives_its_place_back(bench):
    """Its binding, if under way, fails by itself."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    parked = bench.park(pod("waits").obj())
    dying = PENDING.terminating().resource_version(V2).obj()
    bench.apply(Changed(old, dying))
    assert bench.pods_on("n1") == []
    assert bench.is_woken(parked)
    bench.queue.done(old.uid)
    bench.apply(Changed(dying, PENDING.terminating().resource_version("3").obj()))
    assert bench.place(old) == "active", "no longer assumed, so the queue hears of it; the cycle will skip it"


def test_assumed_pod_on_hold_is_rejected(bench):
    """Its binding cycle waits on Permit and can tidy up by itself."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    bench.waiting = {old.uid}
    bench.apply(Changed(old, PENDING.terminating().resource_version(V2).obj()))
    assert bench.rejected_waiting == [(old.uid, "", "removed")]
    assert bench.pods_on("n1") == ["p"], "the binding cycle forgets it"


@pytest.mark.parametrize(
    ("priority", "is_woken"),
    [pytest.param(5, True, id="equal priority"), pytest.param(6, False, id="higher priority: had the room before")],
)
def test_nomination_that_ends_wakes_lower_priorities(bench, priority, is_woken):
    """They had to leave room for it."""
    with_nodes(bench)
    old = bench.park(PENDING.priority(5).nominated("n1").obj())
    parked = bench.park(pod("waits").priority(priority).obj())
    bench.apply(Changed(old, PENDING.priority(5).resource_version(V2).obj()))
    assert bench.is_woken(parked) is is_woken


def test_nomination_that_stays_wakes_nobody(bench):
    """Other news of a nominated pod frees no room."""
    old = bench.park(PENDING.nominated("n1").obj())
    parked = bench.park(pod("waits").obj())
    bench.apply(Changed(old, PENDING.nominated("n1").label("a", "b").resource_version(V2).obj()))
    assert not bench.is_woken(parked)


# --- removed ---


def test_removed_pending_pod_leaves_the_queue(bench):
    """Nothing is left of it."""
    bench.apply(Added(PENDING.obj()), Removed(PENDING.obj()))
    assert bench.place(PENDING.obj()) is None
    assert bench.stores.of(Pod).get("default/p") is None
    assert bench.seconds["UnschedulablePodDelete"] == 1


def test_removed_assigned_pod_frees_its_room(bench):
    """And wakes whoever may use it; a pod that has finished arrives like this as well."""
    with_nodes(bench)
    bench.apply(Added(PENDING.on("n1").obj()))
    parked = bench.park(pod("waits").obj())
    bench.apply(Removed(PENDING.on("n1").obj()))
    assert bench.pods_on("n1") == []
    assert bench.is_woken(parked)
    assert bench.seconds["AssignedPodDelete"] == 1


def test_removed_nominated_pod_wakes_others(bench):
    """The room that was kept for it is free."""
    old = bench.park(PENDING.priority(5).nominated("n1").obj())
    parked = bench.park(pod("waits").priority(5).obj())
    higher = bench.park(pod("higher").priority(6).obj())
    bench.apply(Removed(old))
    assert bench.is_woken(parked)
    assert not bench.is_woken(higher)
    assert not bench.queue.nominated_pods_for_node("n1")


def test_removed_assumed_pod_gives_its_place_back(bench):
    """The pod went before its binding came to an end."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    parked = bench.park(pod("waits").obj())
    bench.apply(Removed(old))
    assert bench.cache.num_pods == 0
    assert bench.is_woken(parked)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(PENDING, id="known as pending"),
        pytest.param(PENDING.on("n1"), id="known as assigned"),
        pytest.param(FOREIGN, id="another scheduler's, pending"),
        pytest.param(FOREIGN.on("n1"), id="another scheduler's, assigned"),
    ],
)
def test_stale_removal_tidies_everything(bench, known):
    """After a relist nobody knows the last state, so both sides are looked at."""
    with_nodes(bench)
    bench.apply(Added(known.obj()), Removed(known.obj(), is_stale=True))
    assert bench.pods_on("n1") == []
    assert bench.place(known.obj()) is None
    assert len(bench.stores.of(Pod)) == 0


def test_stale_removal_of_an_assumed_pod(bench):
    """It may have been bound and deleted while the watch was down; the waiting pods hear of it once."""
    with_nodes(bench)
    old = PENDING.obj()
    bench.apply(Added(old))
    bench.assume(old, "n1")
    bench.waiting = {old.uid}
    bench.apply(Removed(old, is_stale=True))
    assert bench.rejected_waiting == [(old.uid, "", "removed")]


def test_removal_of_an_unknown_pod_is_no_event(bench):
    """It took no room, so it frees none."""
    parked = bench.park(pod("waits").obj())
    bench.apply(Removed(PENDING.on("n1").obj()))
    assert not bench.is_woken(parked)


def test_pod_made_anew_under_its_name_is_another_pod(bench):
    """The late end of the first one does not touch the second."""
    first, second = PENDING.uid("1").obj(), PENDING.uid("2").obj()
    bench.apply(Added(first), Removed(first, is_stale=True), Added(second), Removed(first))
    assert bench.place(second) == "active"
    assert bench.stores.of(Pod).get("default/p") is second


# --- the API server's data are older ones than before ---


def test_bound_pod_that_is_pending_again_is_scheduled_again(bench):
    """A restored backup does not know of the binding: the room is free, and the pod is work."""
    with_nodes(bench)
    bound = PENDING.on("n1").resource_version("9").obj()
    again = PENDING.resource_version("5").obj()
    bench.apply(Added(bound))
    parked = bench.park(pod("waits").obj())
    bench.apply(Changed(bound, again))
    assert bench.pods_on("n1") == []
    assert bench.place(again) == "active"
    assert bench.is_woken(parked)
    assert bench.stores.of(Pod).get("default/p") is again


def test_bound_pod_that_is_elsewhere_moves(bench):
    """It had been bound differently when the backup was made, or another scheduler has bound it since."""
    with_nodes(bench)
    bound, elsewhere = PENDING.on("n1").obj(), PENDING.on("n2").resource_version(V2).obj()
    bench.apply(Added(bound), Changed(bound, elsewhere))
    assert (bench.pods_on("n1"), bench.pods_on("n2")) == ([], ["p"])
    assert bench.place(elsewhere) is None
    assert bench.stores.of(Pod).get("default/p") is elsewhere


def test_bound_pod_of_another_scheduler_that_is_pending_again_takes_no_room(bench):
    """It is not our work."""
    with_nodes(bench)
    bench.apply(Added(FOREIGN.on("n1").obj()), Changed(FOREIGN.on("n1").obj(), FOREIGN.resource_version(V2).obj()))
    assert bench.pods_on("n1") == []
    assert bench.place(FOREIGN.obj()) is None


# --- other schedulers' nominations ---


def test_foreign_nomination_counts(bench):
    """Another scheduler has made room for its pod; we do not take it."""
    nominated = FOREIGN.nominated("n1").obj()
    bench.apply(Added(nominated))
    assert [p.name for p in bench.queue.nominated_pods_for_node("n1")] == ["f"]
    bench.apply(Changed(nominated, FOREIGN.nominated("n2").resource_version(V2).obj()))
    assert not bench.queue.nominated_pods_for_node("n1")
    assert bench.queue.nominated_pods_for_node("n2")


@pytest.mark.parametrize(
    ("end", "is_woken"),
    [
        pytest.param(lambda old: Changed(old, FOREIGN.resource_version(V2).obj()), True, id="withdrawn"),
        pytest.param(lambda old: Changed(old, FOREIGN.nominated("n2").resource_version(V2).obj()), True, id="moved"),
        pytest.param(Removed, True, id="pod deleted"),
        pytest.param(lambda old: Removed(old, is_stale=True), True, id="pod gone after a relist"),
        pytest.param(lambda old: Changed(old, FOREIGN.nominated("n1").resource_version(V2).obj()), False, id="stays"),
    ],
)
def test_foreign_nomination_that_ends_wakes_others(bench, end, is_woken):
    """The room it was promised is free, as with our own."""
    old = FOREIGN.nominated("n1").obj()
    bench.apply(Added(old))
    parked = bench.park(pod("waits").obj())
    bench.apply(end(old))
    assert bench.is_woken(parked) is is_woken


def test_foreign_nominated_pod_is_bound(bench):
    """It takes the room it was promised: counted in the cache, nominated no more."""
    with_nodes(bench)
    old = FOREIGN.nominated("n1").obj()
    bench.apply(Added(old), Changed(old, FOREIGN.on("n1").resource_version(V2).obj()))
    assert not bench.queue.nominated_pods_for_node("n1")
    assert bench.pods_on("n1") == ["f"]


def test_foreign_nominations_can_be_ignored(upstream_bench):
    """Upstream does."""
    bench = upstream_bench
    nominated = FOREIGN.nominated("n1").obj()
    bench.apply(Added(nominated), Changed(nominated, FOREIGN.nominated("n2").resource_version(V2).obj()))
    assert not bench.queue.nominated_nodes
    bench.apply(Removed(nominated))
