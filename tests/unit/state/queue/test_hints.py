"""QueueingHints: who is asked, what the answers amount to, and that no bug strands a pod."""

import pytest

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, QueuedPodInfo, QueueingHint
from scheduler.state.changes import ASSIGNED_POD_ADD, FORCE_ACTIVATE, NODE_ADD, NODE_DELETE, UNSCHEDULABLE_TIMEOUT
from scheduler.state.queue.hints import HintMap, QueueingHints, Strategy
from scheduler.state.queue.in_flight import Happening
from scheduler.state.queue.profile import QueueProfile
from scheduler.testing import node, pod

WEB = pod("web").obj()
NODE = node("n1").obj()
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
ANY_ADD = ClusterEvent(EventResource.WILDCARD, ActionType.ADD)
EVERYTHING = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


class Hint:
    """A hint with a fixed answer that remembers its calls."""

    def __init__(self, answer):
        self.answer = answer
        self.calls = []

    def __call__(self, waiting, old, new):
        self.calls.append((waiting, old, new))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


QUEUE, SKIP, BROKEN = QueueingHint.QUEUE, QueueingHint.SKIP, ValueError("bug")


def record(*plugins, pending=()):
    return QueuedPodInfo(WEB, 0.0, unschedulable_plugins=set(plugins), pending_plugins=set(pending))


def make_hints(metrics, registrations, profile="default-scheduler"):
    ticks = iter(range(1000))
    profiles = {profile: QueueProfile(registrations=[(p, EventRegistration(e, h)) for p, e, h in registrations])}
    return QueueingHints(profiles, metrics=metrics, perf_counter=lambda: next(ticks) / 4)


@pytest.mark.parametrize(
    ("registrations", "info", "event", "new", "expected", "num_calls"),
    [
        pytest.param(
            [("P1", ASSIGNED_POD_ADD, QUEUE)], record("P1"), NODE_ADD, NODE, Strategy.SKIP, 0, id="not registered"
        ),
        pytest.param(
            [("P1", NODE_ADD, BROKEN)], record("P1"), NODE_ADD, NODE, Strategy.AFTER_BACKOFF, 1, id="it raises"
        ),
        pytest.param([("P1", NODE_ADD, "?")], record("P1"), NODE_ADD, NODE, Strategy.AFTER_BACKOFF, 1, id="nonsense"),
        pytest.param(
            [("P1", NODE_ADD, None)], record("P1"), NODE_ADD, NODE, Strategy.AFTER_BACKOFF, 0, id="no function"
        ),
        pytest.param(
            [("P1", NODE_ADD, SKIP)], record(), NODE_ADD, NODE, Strategy.AFTER_BACKOFF, 0, id="nobody rejected the pod"
        ),
        pytest.param(
            [], record("P1"), UNSCHEDULABLE_TIMEOUT, None, Strategy.AFTER_BACKOFF, 0, id="an event for all pods"
        ),
        pytest.param(
            [], record("P1"), FORCE_ACTIVATE, WEB, Strategy.AFTER_BACKOFF, 0, id="an event for this pod alone"
        ),
        pytest.param(
            [], record("P1"), FORCE_ACTIVATE, pod("x").obj(), Strategy.SKIP, 0, id="an event for another pod alone"
        ),
        pytest.param([], record("P1"), FORCE_ACTIVATE, NODE, Strategy.SKIP, 0, id="an event for no pod at all"),
        pytest.param(
            [("P1", NODE_ADD, QUEUE), ("P2", NODE_ADD, QUEUE), ("P3", NODE_ADD, QUEUE), ("P4", NODE_ADD, BROKEN)],
            record("P1", "P3", pending=["P2"]),
            NODE_ADD,
            NODE,
            Strategy.IMMEDIATELY,
            2,
            id="a pending plugin's Queue goes at once, and the rest are not asked",
        ),
        pytest.param(
            [("P1", NODE_ADD, QUEUE), ("P2", NODE_ADD, SKIP)],
            record("P1", pending=["P2"]),
            NODE_ADD,
            NODE,
            Strategy.AFTER_BACKOFF,
            2,
            id="a rejector's Queue counts when the pending plugin skips",
        ),
        pytest.param(
            [("P1", NODE_ADD, SKIP), ("P2", NODE_ADD, QUEUE), ("P3", NODE_ADD, QUEUE)],
            record("P1", "P2", "P3"),
            NODE_ADD,
            NODE,
            Strategy.AFTER_BACKOFF,
            2,
            id="the first Queue suffices without pending plugins",
        ),
        pytest.param(
            [("P1", NODE_ADD, SKIP), ("P2", NODE_ADD, SKIP), ("P3", NODE_ADD, QUEUE)],
            record("P1", "P2"),
            NODE_ADD,
            NODE,
            Strategy.SKIP,
            2,
            id="plugins that did not reject the pod are not asked",
        ),
        pytest.param(
            [("P1", NODE_ADD, QUEUE), ("P1", ClusterEvent(EventResource.NODE, ActionType.UPDATE), QUEUE)],
            record("P1"),
            NODE_LABEL,
            NODE,
            Strategy.AFTER_BACKOFF,
            1,
            id="a registration of all updates covers each",
        ),
        pytest.param(
            [("P1", NODE_LABEL, QUEUE)],
            record("P1"),
            ClusterEvent(EventResource.NODE, ActionType.UPDATE),
            NODE,
            Strategy.SKIP,
            0,
            id="a general update is not each of its kinds",
        ),
        pytest.param(
            [("P1", ANY_ADD, QUEUE)], record("P1"), NODE_ADD, NODE, Strategy.AFTER_BACKOFF, 1, id="any kind of object"
        ),
        pytest.param(
            [("P1", EVERYTHING, QUEUE)], record("P1"), NODE_LABEL, NODE, Strategy.AFTER_BACKOFF, 1, id="everything"
        ),
        pytest.param(
            [("P1", ClusterEvent(EventResource.POD, ActionType.ADD), QUEUE)],
            record("P1"),
            ASSIGNED_POD_ADD,
            WEB,
            Strategy.AFTER_BACKOFF,
            1,
            id="Pod covers assigned pods",
        ),
    ],
)
def test_strategy(metrics, registrations, info, event, new, expected, num_calls):
    """Upstream's table, and then some."""
    made = [(plugin, e, None if answer is None else Hint(answer)) for plugin, e, answer in registrations]
    hints = make_hints(metrics, made)
    assert hints.strategy(info, Happening.of(event, None, new)) is expected
    calls = [call for _, _, hint in made if hint is not None for call in hint.calls]
    assert calls == [(WEB, None, new)] * num_calls


def test_a_pod_of_an_unknown_profile_is_retried(metrics):
    """Nobody knows better."""
    hints = make_hints(metrics, [("P1", NODE_ADD, Hint(SKIP))], profile="other")
    assert hints.strategy(record("P1"), Happening.of(NODE_ADD, None, NODE)) is Strategy.AFTER_BACKOFF


def test_hint_calls_are_measured_with_their_outcome(metrics):
    """``queueing_hint_execution_duration_seconds{plugin,event,hint}``."""
    registrations = [("P1", NODE_ADD, Hint(SKIP)), ("P2", NODE_ADD, Hint(BROKEN)), ("P3", NODE_ADD, Hint(QUEUE))]
    hints = make_hints(metrics, registrations)
    for plugin in ("P1", "P2", "P3"):
        hints.strategy(record(plugin), Happening.of(NODE_ADD, None, NODE))
    assert metrics.hints == [
        ("P1", "NodeAdd", "QueueSkip", 0.25),
        ("P2", "NodeAdd", "Error", 0.25),
        ("P3", "NodeAdd", "Queue", 0.25),
    ]


def test_of_several_events_the_strongest_answer_counts(metrics):
    """Skip, then after back-off, then immediately; without pending plugins the first Queue ends the search."""
    pending, rejecting, skipping = Hint(QUEUE), Hint(QUEUE), Hint(SKIP)
    hints = make_hints(
        metrics, [("Skip", NODE_DELETE, skipping), ("Reject", NODE_LABEL, rejecting), ("Pend", NODE_TAINT, pending)]
    )
    happenings = [Happening.of(event, None, NODE) for event in (NODE_DELETE, NODE_LABEL, NODE_TAINT)]
    assert hints.strategy_of_all(record("Skip"), happenings) is Strategy.SKIP
    assert hints.strategy_of_all(record("Skip", "Reject"), happenings) is Strategy.AFTER_BACKOFF
    assert hints.strategy_of_all(record("Skip", "Reject", pending=["Pend"]), happenings) is Strategy.IMMEDIATELY
    assert hints.strategy_of_all(record("Reject", pending=["Other"]), happenings) is Strategy.AFTER_BACKOFF
    assert hints.strategy_of_all(record("Reject"), []) is Strategy.SKIP


@pytest.mark.parametrize(
    ("registered", "wants_taints"),
    [
        pytest.param([NODE_ADD], True, id="added nodes only"),
        pytest.param([NODE_ADD, NODE_TAINT], False, id="both, one by one"),
        pytest.param([NODE_LABEL], False, id="no added nodes"),
        pytest.param([ClusterEvent(EventResource.POD, ActionType.ADD)], False, id="added pods"),
    ],
)
def test_plugins_that_wait_for_nodes_hear_of_changed_taints(registered, wants_taints):
    """Upstream's extra registration up to 1.36, which always says Queue."""
    hint_map = HintMap([("P1", EventRegistration(event, Hint(SKIP))) for event in registered])
    extra = [registration for _, registration in hint_map.registrations[len(registered) :]]
    assert extra == ([EventRegistration(NODE_TAINT)] if wants_taints else [])


def test_interest_is_known_over_all_profiles_in_a_fixed_order(metrics):
    """The queue skips events that nobody registered, and gated pods hear only of their gate's events."""
    profiles = {
        "a": QueueProfile(registrations=[("P2", EventRegistration(NODE_LABEL)), ("P1", EventRegistration(NODE_LABEL))]),
        "b": QueueProfile(registrations=[("P1", EventRegistration(NODE_TAINT)), ("P3", EventRegistration(NODE_LABEL))]),
    }
    hints = QueueingHints(profiles, metrics=metrics, perf_counter=lambda: 0.0)
    assert list(hints.asked(NODE_LABEL)) == ["P2", "P1", "P3"]
    assert list(hints.asked(ASSIGNED_POD_ADD)) == []
    assert hints.events_of("P1") == (NODE_LABEL, NODE_TAINT)
    assert hints.events_of("P9") == ()
