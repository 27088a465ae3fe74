"""How bindings end, as far as the core is concerned."""

import pytest

from scheduler.api import PODS_TO_ACTIVATE, PermitPlugin, ReservePlugin, Status
from scheduler.cycle.conclude import binding_ended, binding_failed, binding_succeeded, permit_passed
from scheduler.state.outbox import EmitEvent, StartBinding
from scheduler.state.outcome import BindFailure, BindOutcome
from scheduler.testing.builders import pod


class Reserves(ReservePlugin):
    name = "Reserves"

    def __init__(self):
        self.calls = []

    def reserve(self, state, pod, node_name):
        return None

    def unreserve(self, state, pod, node_name):
        self.calls.append((pod.name, node_name))


class Waits(PermitPlugin):
    name = "Waits"

    def permit(self, state, pod, node_name):
        return Status.wait(), 60.0


@pytest.fixture
def made(world):
    return world(nodes=("a",), filter=[world.Room(1)], reserve=[Reserves()])


def start(made, builder="one"):
    _, (job,) = made.run(builder)
    assert isinstance(job, StartBinding)
    return job


def bind_error(outcome):
    return Status.error("no", BindFailure(outcome, "no"))


def test_success(made):
    """The owner is told, the times are observed, the flight is over."""
    job = start(made, pod("one").in_ns("shop"))
    permit_passed(made.engine, job)
    made.clock.advance(2)
    binding_succeeded(made.engine, job)
    (event,) = made.outbox.drain()
    assert isinstance(event, EmitEvent)
    assert (event.kind, event.reason, event.action, event.note) == (
        "Normal",
        "Scheduled",
        "Binding",
        "Successfully assigned shop/one to a",
    )
    assert (made.metrics.attempts, made.metrics.scheduled) == (["scheduled"], [(1, 2.0, False)])
    assert made.queue.in_flight_pods() == []


def test_pods_to_activate(made):
    """Plugins of the binding cycle may wake pods as well."""
    job = start(made)
    made.run("two")
    assert made.queue.place_of("default/two") == "unschedulable"
    job.state.read(PODS_TO_ACTIVATE)["default/two"] = made.pods.get("default/two")
    binding_ended(made.engine, job)
    assert made.queue.place_of("default/two") == "active"


@pytest.mark.parametrize("outcome", [BindOutcome.CONFLICT, BindOutcome.UNREACHABLE, BindOutcome.REFUSED, None])
def test_failed_binds_are_undone_and_retried(made, outcome):
    """The place is free again, the pod backs off, pods that wait for room are woken."""
    job = start(made)
    made.run("two")
    made.outbox.drain()
    permit_passed(made.engine, job)
    binding_failed(made.engine, job, Status.error("no") if outcome is None else bind_error(outcome))
    assert made.cache.num_assumed == 0
    assert made.framework.plugins["Reserves"].calls == [("one", "a")]
    assert made.queue.place_of("default/one") == "backoff"
    assert made.queue.place_of("default/two") == "backoff"
    event, patch = made.outbox.drain()
    assert (event.reason, patch.condition.reason) == ("FailedScheduling", "SchedulerError")


def test_refused_binds_back_off_for_long(made):
    """The server will refuse again, so the longest back-off applies."""
    job = start(made)
    binding_failed(made.engine, job, bind_error(BindOutcome.REFUSED))
    made.clock.advance(9)
    made.queue.run(made.clock.now())
    assert made.queue.place_of("default/one") == "backoff"
    made.clock.advance(3)
    made.queue.run(made.clock.now())
    assert made.queue.place_of("default/one") == "active"


@pytest.mark.parametrize("outcome", [BindOutcome.LOST, BindOutcome.GONE])
def test_lost_and_gone_pods_are_dropped(made, outcome):
    """Someone else has bound or deleted the pod: free the place, say nothing, retry nothing."""
    job = start(made)
    made.run("two")
    made.outbox.drain()
    binding_failed(made.engine, job, bind_error(outcome))
    assert made.outbox.drain() == []
    assert made.cache.num_assumed == 0
    assert (made.queue.place_of("default/one"), made.queue.in_flight_pods()) == (None, [])
    assert made.queue.place_of("default/two") == "backoff"
    assert made.metrics.dropped == [outcome.value]


def test_lost_pod_that_the_watch_has_shown_already(made):
    """The cache knows the pod on its true node; the place it had on ours is free and others are told."""
    job = start(made)
    made.run("two")
    made.outbox.drain()
    made.cache.add_pod(job.info.pod.on_node("elsewhere"))
    binding_failed(made.engine, job, bind_error(BindOutcome.LOST))
    assert made.cache.get_pod(job.assumed.pod_uid).node_name == "elsewhere"
    assert made.queue.place_of("default/two") == "backoff"


def test_bind_that_the_watch_has_confirmed(made):
    """A bind whose answer was lost took effect after all: the pod stays where it is."""
    job = start(made)
    made.cache.add_pod(job.assumed)
    made.pods.put(job.assumed)
    binding_failed(made.engine, job, Status.error("timeout"))
    assert made.cache.get_pod(job.assumed.pod_uid).node_name == "a"
    assert (made.queue.place_of("default/one"), made.outbox.drain()) == (None, [])


def test_rejected_on_hold(world):
    """A rejection while waiting on Permit leaves the pod to that plugin's events, and wakes the others."""
    made = world(nodes=("a",), filter=[world.Room(1)], permit=[Waits()])
    job = start(made)
    made.run("two")
    made.outbox.drain()
    made.framework.waiting.get(job.assumed.uid).reject("Waits", "gang is gone")
    status = made.framework.end_wait(job.assumed, made.clock.now())
    binding_failed(made.engine, job, status)
    event, patch = made.outbox.drain()
    assert event.note == "0/1 nodes are available: 1 gang is gone."
    assert patch.condition.reason == "Unschedulable"
    info = made.queue.get("default/one")
    assert info.unschedulable_plugins == {"Waits"}
    assert made.queue.place_of("default/one") == "unschedulable"
    assert made.queue.place_of("default/two") == "backoff"


def test_rejections_after_permit_are_retried(world):
    """Once Permit has passed, a failure is retried after a back-off, whatever its code."""
    made = world(nodes=("a",), permit=[Waits()])
    job = start(made)
    made.framework.waiting.get(job.assumed.uid).allow("Waits")
    assert made.framework.end_wait(job.assumed, made.clock.now()) is None
    permit_passed(made.engine, job)
    binding_failed(made.engine, job, Status.unschedulable("volume is gone").by("Volumes"))
    info = made.queue.get("default/one")
    assert (info.unschedulable_plugins, made.queue.place_of("default/one")) == (set(), "backoff")
