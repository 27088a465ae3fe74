"""One pod gets a node, or a reason."""

import pytest

from scheduler.api import (
    PODS_TO_ACTIVATE,
    Code,
    FilterPlugin,
    PermitPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    ReservePlugin,
    Status,
)
from scheduler.framework.diagnosis import FitError, NoNodesError
from scheduler.state.outbox import EmitEvent, PatchPodStatus, StartBinding
from scheduler.testing.builders import node, pod


def test_the_best_node_gets_the_pod(world):
    """The decision takes effect in memory at once, its binding is ordered, and the next pod sees it."""
    made = world(nodes=("a", "b", "c"), filter=[world.Room()], score=[world.Liking(b=90, c=50)])
    attempt, (job,) = made.run("one")
    assert isinstance(job, StartBinding)
    assert (job.node_name, job.assumed.node_name, job.is_waiting, job.info.attempts) == ("b", "b", False, 1)
    assert (attempt.node_name, attempt.feasible_nodes, attempt.best_nodes) == ("b", ["a", "b", "c"], ["b"])
    assert made.cache.is_assumed(job.assumed.uid)
    attempt, (job,) = made.run("two")
    assert job.node_name == "c"
    assert attempt.explain() is None
    assert dict(attempt.diagnosis.explicit()) == {"b": Status.unschedulable("no room").by("Room")}
    assert made.metrics.decisions == 2


def test_an_empty_queue(world):
    """Nothing to do is said, not waited for."""
    assert not world().engine.schedule_one()


def test_deleting_pods_are_skipped(world):
    """A pod that is being deleted gets an event and leaves the queue for good."""
    made = world()
    made.add(pod("one").in_ns("shop"))
    info = made.queue.pop()
    made.queue.done(info.pod.uid)
    deleting = pod("one").in_ns("shop")._with("2024-01-01T00:00:00Z", "metadata", "deletionTimestamp")
    _, (event,) = made.run(deleting)
    assert isinstance(event, EmitEvent)
    assert (event.kind, event.reason, event.note) == (
        "Warning",
        "FailedScheduling",
        "skip schedule deleting pod: shop/one",
    )
    assert made.queue.in_flight_pods() == []
    assert made.attempts == []


def test_assumed_pods_are_skipped(world):
    """A pod that came back into the queue while it was being assumed is not decided twice."""
    made = world()
    _, (job,) = made.run("one")
    made.queue.done(job.assumed.uid)
    made.queue.add(job.info.pod)
    assert made.engine.schedule_one()
    assert made.outbox.drain() == []
    assert made.queue.in_flight_pods() == []


def test_pods_of_unknown_profiles_are_told_and_dropped(world):
    """A live profile may have gone away since the pod came in; an autoscaler must not add nodes for such a pod."""
    made = world()
    made.add("one")
    made.engine.profiles = {}
    assert made.engine.schedule_one()
    event, patch = made.outbox.drain()
    text = 'no profile named "default-scheduler" is live: its SchedulerProfile was deleted or renamed'
    assert (event.reason, event.note, event.reporter) == ("FailedScheduling", text, "default-scheduler")
    assert (patch.condition.reason, patch.condition.message) == ("SchedulerError", text)
    assert made.queue.in_flight_pods() == []


def test_no_nodes(world):
    """Without nodes the pod backs off like after an error; the message is upstream's."""
    made = world(nodes=())
    attempt, (event, patch) = made.run("one")
    assert attempt.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert isinstance(attempt.status.cause, NoNodesError)
    assert event.note == "no nodes available to schedule pods"
    assert (patch.condition.reason, patch.condition.message) == ("Unschedulable", event.note)
    assert made.queue.place_of("default/one") == "backoff"


class Nominates(PostFilterPlugin):
    name = "Nominates"

    def __init__(self, node, status=None):
        self.node = node
        self.answer = status
        self.seen = None

    def post_filter(self, state, pod, statuses):
        self.seen = dict(statuses)
        return (None if self.node is None else PostFilterResult(self.node)), self.answer


def test_a_pod_that_fits_nowhere(world):
    """It goes back with the plugins that rejected it; its owner is told by event and condition."""
    made = world(filter=[world.Room(0)])
    attempt, (event, patch) = made.run("one")
    message = "0/2 nodes are available: 2 no room."
    assert (attempt.status.code, attempt.status.message) == (Code.UNSCHEDULABLE, message)
    assert isinstance(attempt.status.cause, FitError)
    assert (event.note, patch.condition.message, patch.condition.status) == (message, message, "False")
    assert patch.nominated_node_name == ""
    info = made.queue.get("default/one")
    assert info.unschedulable_plugins == {"Room"}
    assert made.queue.place_of("default/one") == "unschedulable"
    assert made.metrics.attempts == ["unschedulable"]


@pytest.mark.parametrize(
    ("plugin", "message", "nominated"),
    [
        pytest.param(Nominates("a"), "0/2 nodes are available: 2 no room.", "a", id="room is being made"),
        pytest.param(
            Nominates(None, Status.unschedulable("no victims")),
            "0/2 nodes are available: 2 no room. no victims",
            None,
            id="nothing to be done, the nomination stays as it is",
        ),
        pytest.param(
            Nominates("", Status.unresolvable("not eligible")),
            "0/2 nodes are available: 2 no room. not eligible",
            "",
            id="the nomination is cleared",
        ),
        pytest.param(
            Nominates("a", Status.error("boom")),
            "0/2 nodes are available: 2 no room. boom",
            None,
            id="PostFilter fails",
        ),
    ],
)
def test_post_filter(world, plugin, message, nominated):
    """PostFilter sees every node's status, adds to the message, and may nominate."""
    made = world(filter=[world.Room(0)], post_filter=[plugin])
    attempt, instructions = made.run(pod("one").nominated("b"))
    patch = instructions[-1]
    no_room = Status.unschedulable("no room").by("Room")
    assert plugin.seen == {"a": no_room, "b": no_room}
    assert (attempt.status.code, attempt.status.message) == (Code.UNSCHEDULABLE, message)
    assert isinstance(patch, PatchPodStatus)
    assert patch.nominated_node_name == nominated
    expected = {"a": ["a"], "": [], None: ["b"]}[nominated]
    assert sorted(made.queue.nominated_nodes) == expected


class Reserves(ReservePlugin):
    name = "Reserves"

    def __init__(self, answer):
        self.answer = answer
        self.calls = []

    def reserve(self, state, pod, node_name):
        self.calls.append(f"+{node_name}")
        return self.answer

    def unreserve(self, state, pod, node_name):
        self.calls.append(f"-{node_name}")


class Permits(PermitPlugin):
    name = "Permits"

    def __init__(self, *answer):
        self.answer = answer

    def permit(self, state, pod, node_name):
        return self.answer


@pytest.mark.parametrize(
    ("reserve", "permit", "code", "message", "plugins"),
    [
        pytest.param(
            Status.pending("volume"),
            None,
            Code.PENDING,
            "0/1 nodes are available: 1 volume.",
            {"Reserves"},
            id="Reserve rejects",
        ),
        pytest.param(
            Status.error("boom"), None, Code.ERROR, 'running Reserve plugin "Reserves": boom', set(), id="Reserve fails"
        ),
        pytest.param(
            None,
            Status.unschedulable("gang"),
            Code.UNSCHEDULABLE,
            "0/1 nodes are available: 1 gang.",
            {"Permits"},
            id="Permit rejects",
        ),
        pytest.param(
            None,
            Status.error("boom"),
            Code.ERROR,
            'running Permit plugin "Permits": boom',
            set(),
            id="Permit fails",
        ),
    ],
)
def test_second_thoughts(world, *, reserve, permit, code, message, plugins):
    """A rejection after the choice takes everything back."""
    reserves = Reserves(reserve)
    made = world(nodes=("a",), reserve=[reserves], permit=[Permits(permit, 0.0)])
    attempt, instructions = made.run(pod("one").nominated("a"))
    assert (attempt.status.code, attempt.status.message) == (code, message)
    assert reserves.calls == ["+a", "-a"]
    assert made.cache.num_assumed == 0
    assert made.queue.get("default/one").unschedulable_plugins == plugins
    assert isinstance(instructions[0], EmitEvent)
    assert instructions[1].nominated_node_name == ""
    assert not any(isinstance(instruction, StartBinding) for instruction in instructions)


def test_permit_may_hold_the_pod(world):
    """A waiting pod is handed over all the same; the next pod is tried at once."""
    made = world(permit=[Permits(Status.wait(), 30.0)])
    _, (job,) = made.run("one")
    assert job.is_waiting
    held = made.framework.waiting.get(job.assumed.uid)
    assert held.pending_plugins == ("Permits",)
    assert held.pod.node_name == job.node_name
    _, (second,) = made.run("two")
    assert second.is_waiting


def test_pods_to_activate(world):
    """A plugin may wake other pods at the end of the cycle."""

    class Wakes(Permits):
        def permit(self, state, pod, node_name):
            if waiting:
                state.read(PODS_TO_ACTIVATE)[waiting[0].pod_key] = waiting[0]
            return None, 0.0

    waiting = []
    made = world(nodes=("a",), filter=[world.Room(1)], permit=[Wakes()])
    made.run("one")
    made.run("two")
    assert made.queue.place_of("default/two") == "unschedulable"
    waiting.append(made.pods.get("default/two"))
    made.cache.add_node(node("b").obj())
    _, (job,) = made.run("three")
    assert job.node_name == "b"
    assert made.queue.place_of("default/two") == "active"
    assert job.state.read(PODS_TO_ACTIVATE) == {}


def test_a_failing_plugin_fails_its_pod_only(world):
    """The attempt ends with SchedulerError, the next pod is scheduled."""

    class Bad(PreFilterPlugin, FilterPlugin):
        name = "Bad"

        def pre_filter(self, state, pod, nodes):
            return None, None

        def filter(self, state, pod, node):
            if pod.name == "one":
                raise ZeroDivisionError("by zero")

    made = world(pre_filter=[bad := Bad()], filter=[bad])
    attempt, (event, patch) = made.run("one")
    assert attempt.status.code is Code.ERROR
    assert event.note == 'running "Bad" filter plugin: ZeroDivisionError: by zero'
    assert patch.condition.reason == "SchedulerError"
    assert made.metrics.attempts == ["error"]
    assert made.queue.place_of("default/one") == "backoff"
    _, (job,) = made.run("two")
    assert isinstance(job, StartBinding)


def test_ten_percent_of_the_attempts_measure_plugins(world):
    """The sample is drawn from the injected Random."""
    made = world()
    for number in range(400):
        made.run(f"p{number}")
    sampled = sum(attempt.state.record_plugin_metrics for attempt in made.attempts)
    assert 20 < sampled < 60


def test_the_choice_follows_the_seed(world):
    """Ties are broken by the injected Random, evenly."""
    from scheduler.cycle.select import choose_uniformly

    def names():
        made = world(nodes=("a", "b", "c"))
        made.engine.choose = choose_uniformly
        return [made.run(f"p{number}")[1][0].node_name for number in range(60)]

    first = names()
    assert first == names()
    assert min(first.count(name) for name in "abc") > 10
