"""What becomes of a pod whose attempt failed."""

import pytest

from scheduler.api import Status
from scheduler.cycle.failure import MAX_NOTE_BYTES, abandon, cut_note, handle_failure
from scheduler.framework.diagnosis import one_node_fit_error
from scheduler.state.outbox import PatchPodStatus
from scheduler.testing.builders import pod

ERROR = Status.error("boom")


def popped(made, builder="one"):
    made.add(builder)
    return made.queue.pop()


def fail(made, info, status=ERROR, nominate=""):
    handle_failure(made.engine, made.framework, info, status, nominate=nominate, started_s=0.0)
    return made.outbox.drain()


def test_errors_back_off(world):
    """After an error no event has to come: the pod is retried after its back-off."""
    made = world()
    info = popped(made)
    info.unschedulable_plugins = {"Stale"}
    event, patch = fail(made, info)
    assert (info.unschedulable_plugins, info.consecutive_errors_count) == (set(), 1)
    assert made.queue.place_of("default/one") == "backoff"
    assert (event.kind, event.reason, event.action, event.note) == ("Warning", "FailedScheduling", "Scheduling", "boom")
    assert (patch.condition.type, patch.condition.status, patch.condition.reason, patch.condition.message) == (
        "PodScheduled",
        "False",
        "SchedulerError",
        "boom",
    )


def test_message_that_is_no_unicode_is_told_as_far_as_it_goes(world):
    """A plugin may hand on the name of a file."""
    made = world()
    event, patch = fail(made, popped(made), Status.unschedulable("file \udcff"))
    assert event.note == patch.condition.message == "file ?"


def test_rejections_wait_for_their_plugins_events(world):
    """Unschedulable and pending plugins are handed to the queue."""
    made = world()
    info = popped(made)
    status = one_node_fit_error(info.pod, made.engine.snapshot, "a", Status.pending("device").by("Devices")).status()
    _, patch = fail(made, info, status)
    assert (info.unschedulable_plugins, info.pending_plugins) == ({"Devices"}, {"Devices"})
    assert (info.unschedulable_count, patch.condition.reason) == (1, "Unschedulable")
    assert made.metrics.attempts == ["unschedulable"]


def gone(made, info):
    made.pods.remove(info.pod)


def bound(made, info):
    made.pods.put(info.pod.on_node("a"))


def recreated(made, info):
    made.pods.put(pod("one")._with("another-uid", "metadata", "uid").scheduler("default-scheduler").obj())


@pytest.mark.parametrize("change", [gone, bound, recreated])
def test_pods_that_need_no_retry(world, change):
    """A pod that was deleted, bound or re-created meanwhile ends its flight and nobody is told."""
    made = world()
    info = popped(made)
    change(made, info)
    assert fail(made, info) == []
    assert (made.queue.in_flight_pods(), made.queue.place_of("default/one")) == ([], None)
    assert made.metrics.attempts == ["error"]


def test_nomination_that_the_api_server_has_not_heard_of(world):
    """It is kept where it is to be kept, and taken back where it is to end: the write may be on its way."""
    made = world()
    info = popped(made)
    _, patch = fail(made, info, nominate="a")
    assert patch.nominated_node_name == "a"
    info = made.queue.pop_specific_pod(info.pod)
    _, patch = fail(made, info, nominate=None)
    assert patch.nominated_node_name is None
    assert [pod.name for pod in made.queue.nominated_pods_for_node("a")] == ["one"]
    info = made.queue.pop_specific_pod(info.pod)
    _, patch = fail(made, info, nominate="")
    assert (patch.pod.status.nominated_node_name, patch.nominated_node_name) == ("a", "")
    assert made.queue.nominated_pods_for_node("a") == []
    info = made.queue.pop_specific_pod(info.pod)
    _, patch = fail(made, info, nominate="")
    assert (patch.pod.status.nominated_node_name, patch.nominated_node_name) == ("", "")


def test_the_newest_version_goes_back(world):
    """The pod may have changed while it was tried."""
    made = world()
    info = popped(made)
    newer = pod("one").scheduler("default-scheduler").label("v", "2").obj()
    made.pods.put(newer)
    event, patch = fail(made, info)
    assert made.queue.get("default/one").pod is newer
    assert (event.regarding, patch.pod) == (newer, newer)


@pytest.mark.parametrize(
    ("before", "nominate", "patched", "remembered"),
    [
        pytest.param("", None, None, [], id="nothing to keep"),
        pytest.param("b", None, None, ["b"], id="kept"),
        pytest.param("b", "", "", [], id="cleared"),
        pytest.param("b", "b", "b", ["b"], id="the same again"),
        pytest.param("", "a", "a", ["a"], id="made"),
        pytest.param("", "", "", [], id="nothing to clear"),
    ],
)
def test_nominations(world, before, nominate, patched, remembered):
    """Memory and the API server are told of nominations."""
    made = world()
    patch = fail(made, popped(made, pod("one").nominated(before)), nominate=nominate)[-1]
    assert isinstance(patch, PatchPodStatus)
    assert (patch.nominated_node_name, sorted(made.queue.nominated_nodes)) == (patched, remembered)


def test_condition_is_told_also_if_the_pod_says_so_already(world):
    """A contradicting word may be on its way to the API server; who writes it knows."""
    made = world()
    known = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": "boom"}
    patch = fail(made, popped(made, pod("one")._with([known], "status", "conditions")))[-1]
    assert isinstance(patch, PatchPodStatus)
    assert (patch.condition.reason, patch.condition.message) == ("SchedulerError", "boom")


@pytest.mark.parametrize(
    ("message", "note"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="fits"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="cut"),
        pytest.param("x" * 1019 + "ü" * 9, "x" * 1019 + " ...", id="no half characters"),
    ],
)
def test_notes_are_cut(message, note):
    """A note has at most 1,024 bytes; the condition keeps the whole message."""
    assert cut_note(message) == note
    assert len(cut_note(message).encode()) <= MAX_NOTE_BYTES


def test_observed_generation(world):
    """The condition says which generation of the pod it is about."""
    made = world()
    patch = fail(made, popped(made, pod("one")._with(7, "metadata", "generation")))[-1]
    assert patch.condition.observed_generation == 7


def test_a_bug_in_the_engine_does_not_lose_the_pod(world):
    """The supervisor can give the running attempt up: the place is freed, the pod retried."""
    made = world()

    def explode(attempt):
        raise LookupError("bug")

    made.engine.observer = explode
    made.add("one")
    with pytest.raises(LookupError) as caught:
        made.engine.schedule_one()
    assert made.cache.num_assumed == 1
    made.outbox.drain()
    abandon(made.engine, caught.value)
    event, _ = made.outbox.drain()
    assert event.note == "internal error: LookupError: bug"
    assert (made.cache.num_assumed, made.queue.place_of("default/one")) == (0, "backoff")
    abandon(made.engine, caught.value)
    assert made.outbox.drain() == []
