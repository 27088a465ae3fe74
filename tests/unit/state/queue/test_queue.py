"""SchedulingQueue: every way of a pod between activeQ, backoffQ, unschedulablePods and flight."""

import pytest

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, QueueingHint
from scheduler.state.changes import ASSIGNED_POD_DELETE, FORCE_ACTIVATE, NODE_ADD, NODE_DELETE
from scheduler.state.queue.backoff import MAX_EARLY
from scheduler.state.queue.queue import QueueProfile, QueueSizes
from scheduler.testing import node, pod

WEB, DB = pod("web").obj(), pod("db").obj()
N1 = node("n1").obj()
POD_EVENTS = ClusterEvent(EventResource.POD, ActionType.ALL)
TOLERATION = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)


def wants(plugin, event, hint=None):
    return plugin, EventRegistration(event, hint)


def queue_hint(_pod, _old, _new):
    return QueueingHint.QUEUE


def skip_hint(_pod, _old, _new):
    return QueueingHint.SKIP


# --- coming and going --------------------------------------------------------------------------------------------------


def test_pods_are_popped_by_priority_then_by_time(bench):
    """The order is the QueueSort plugin's."""
    queue = bench.make()
    for builder in (pod("low"), pod("high").priority(9), pod("mid").priority(5)):
        queue.add(builder.obj())
    bench.clock.advance(1)
    queue.add(pod("later").priority(5).obj())
    assert bench.pop_all() == ["high", "mid", "later", "low"]


def test_pop_of_an_empty_queue_gives_nothing(bench):
    """The driver waits; the queue never blocks."""
    queue = bench.make()
    assert queue.pop() is None
    assert not queue.has_ready()


def test_the_oldest_pending_pod_is_known(bench):
    """A pod counts from when it became eligible, wherever it waits; one in flight does not."""
    queue = bench.make()
    assert queue.oldest_pending_since_s() is None
    queue.add(WEB)
    bench.clock.advance(5)
    queue.add(DB)
    assert queue.oldest_pending_since_s() == 1_000_000.0
    queue.pop()
    assert queue.oldest_pending_since_s() == 1_000_005.0


def test_add_makes_ready_and_counts(bench):
    """The driver is woken, gauge and counter move, the first entry into activeQ is remembered."""
    queue = bench.make()
    queue.add(WEB)
    assert bench.ready_calls == 1
    assert queue.has_ready()
    assert bench.metrics.gauges == {"active": 1}
    assert bench.metrics.incoming_pods == {("active", "UnschedulablePodAdd"): 1}
    info = queue.pop()
    assert (info.attempts, info.timestamp_s, info.initial_attempt_timestamp_s) == (1, 1_000_000.0, 1_000_000.0)
    assert bench.metrics.gauges == {"active": 0}
    assert queue.scheduling_cycle == 1
    assert queue.in_flight_pods() == [WEB]
    queue.done(WEB.uid)
    assert queue.sizes() == QueueSizes(0, 0, 0, 0, 0)


def test_adding_a_known_pod_again_is_an_update(bench):
    """Its history is kept."""
    queue = bench.make()
    info = bench.fail(WEB, "Fit")
    newer = pod("web").label("a", "b").obj()
    queue.add(newer)
    assert queue.get("default/web") is info
    assert info.pod is newer
    assert bench.place(WEB) == "unschedulable"


def test_adding_a_pod_in_flight_changes_nothing(bench):
    """It must not be scheduled twice."""
    queue = bench.make()
    queue.add(WEB)
    queue.pop()
    queue.add(WEB)
    assert queue.sizes() == QueueSizes(0, 0, 0, 0, 1)


@pytest.mark.parametrize("by_update", [False, True], ids=["told by add", "told by update"])
def test_a_pod_created_again_under_its_name_starts_afresh(bench, by_update):
    """The old record goes, with its nomination and its rejectors."""
    queue = bench.make()
    bench.fail(WEB, "Fit")
    queue.nominate(WEB, "n1")
    again = pod("web").uid("second").obj()
    if by_update:
        queue.update(WEB, again)
    else:
        queue.add(again)
    assert queue.pop().pod is again
    assert queue.nominated_pods_for_node("n1") == []
    assert bench.metrics.non_zero(bench.metrics.rejectors) == {}
    assert queue.sizes() == QueueSizes(0, 0, 0, 0, 1)


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda bench: bench.queue.add(WEB), id="from activeQ"),
        pytest.param(lambda bench: bench.fail(WEB), id="from the error back-off"),
        pytest.param(lambda bench: bench.fail(WEB, "Fit"), id="from unschedulablePods"),
        pytest.param(
            lambda bench: (bench.fail(WEB, "Fit"), bench.queue.assigned_pod_added(DB)), id="from the rejection back-off"
        ),
    ],
)
def test_delete(bench, prepare):
    """The pod leaves wherever it is, and all gauges go back."""
    queue = bench.make(wants("Fit", POD_EVENTS))
    prepare(bench)
    queue.nominate(WEB, "n1")
    queue.delete(WEB)
    assert bench.place(WEB) is None
    assert queue.pending_pods()[0] == []
    assert bench.metrics.non_zero(bench.metrics.gauges) == {}
    assert bench.metrics.non_zero(bench.metrics.rejectors) == {}
    assert queue.nominated_pods_for_node("n1") == []


def test_a_late_deletion_spares_the_pod_that_has_the_name_now(bench):
    """Deletion goes by UID."""
    queue = bench.make()
    queue.add(pod("web").uid("second").obj())
    queue.delete(WEB)
    assert bench.place(WEB) == "active"


def test_deleting_a_pod_in_flight_is_left_to_its_cycle(bench):
    """Done ends the flight."""
    queue = bench.make()
    queue.add(WEB)
    queue.pop()
    queue.delete(WEB)
    assert queue.sizes().in_flight == 1


# --- failed attempts ---------------------------------------------------------------------------------------------------


def test_a_rejected_pod_waits_for_an_event(bench):
    """No event came during the flight."""
    queue = bench.make(wants("Fit", NODE_ADD))
    bench.clock.advance(0.5)
    info = bench.fail(WEB, "Fit")
    assert bench.place(WEB) == "unschedulable"
    assert (info.unschedulable_count, info.consecutive_errors_count, info.timestamp_s) == (1, 0, 1_000_000.5)
    assert bench.metrics.rejectors == {("Fit", "default-scheduler"): 1}
    assert bench.metrics.incoming_pods["unschedulable", "ScheduleAttemptFailure"] == 1
    assert queue.sizes() == QueueSizes(0, 0, 1, 0, 0)


def test_a_pod_that_failed_by_an_error_backs_off_and_is_not_popped_early(bench):
    """Errors in a row double the back-off; a rejection ends the row."""
    queue = bench.make()
    info = bench.fail(WEB)
    assert (info.unschedulable_count, info.consecutive_errors_count) == (0, 1)
    assert bench.place(WEB) == "backoff"
    assert queue.pop() is None
    assert queue.next_timer_s() == 1_000_002
    bench.tick(2)
    assert queue.pop() is info
    bench.retry_fails(info)
    assert (info.consecutive_errors_count, info.backoff_expiration_s) == (2, 1_000_004)
    bench.tick(5)
    queue.pop()
    bench.retry_fails(info, "Fit")
    assert (info.unschedulable_count, info.consecutive_errors_count) == (1, 0)


def test_back_offs_grow_as_upstream_says(bench):
    """1, 2, 4, 8, 10, 10 seconds."""
    queue = bench.make(wants("Fit", NODE_ADD))
    info = bench.fail(WEB, "Fit")
    waits = []
    for _ in range(6):
        queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
        waits.append(info.backoff_expiration_s - info.timestamp_s)
        bench.retry_fails(queue.pop(), "Fit")
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_pod_whose_back_off_is_over_goes_to_active_directly(bench):
    """It waited long enough in unschedulablePods."""
    queue = bench.make(wants("Fit", NODE_ADD))
    bench.fail(WEB, "Fit")
    bench.clock.advance(2)
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert bench.place(WEB) == "active"


def test_a_pod_that_is_queued_already_is_not_taken_back(bench):
    """The flight ends all the same."""
    queue = bench.make()
    queue.add(WEB)
    info = queue.pop()
    queue.add(pod("web").uid("second").obj())
    assert not queue.add_unschedulable_if_not_present(info, 1)
    assert queue.sizes() == QueueSizes(1, 0, 0, 0, 0)


def test_a_pod_that_was_not_in_flight_is_taken_back_all_the_same(bench):
    """A bug elsewhere must not lose a pod."""
    queue = bench.make()
    queue.add(WEB)
    info = queue.pop()
    queue.done(WEB.uid)
    info.unschedulable_plugins = {"Fit"}
    assert queue.add_unschedulable_if_not_present(info, 1)
    assert bench.place(WEB) == "backoff"


# --- events during the flight ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "pending", "event", "expected"),
    [
        pytest.param(queue_hint, False, NODE_ADD, "backoff", id="the event helps"),
        pytest.param(skip_hint, False, NODE_ADD, "unschedulable", id="the event does not help"),
        pytest.param(queue_hint, False, NODE_DELETE, "unschedulable", id="the event was not registered"),
        pytest.param(queue_hint, True, NODE_ADD, "active", id="the event helps a pending plugin"),
    ],
)
def test_an_event_during_the_flight_is_replayed(bench, hint, pending, event, expected):
    """Otherwise it would be lost: the pod was in no queue when it came."""
    queue = bench.make(wants("Fit", NODE_ADD, hint), wants("Other", NODE_DELETE))
    queue.add(WEB)
    info = queue.pop()
    queue.move_all_to_active_or_backoff_queue(event, None, N1)
    assert queue.num_in_flight_events == 1
    plugins = ((), ("Fit",)) if pending else (("Fit",), ())
    bench.retry_fails(info, *plugins[0], pending=plugins[1])
    assert bench.place(WEB) == expected
    assert queue.num_in_flight_events == 0
    assert bench.metrics.non_zero(bench.metrics.events) == {}


def test_events_before_the_pop_are_not_replayed(bench):
    """The attempt saw their effect."""
    queue = bench.make(wants("Fit", NODE_ADD))
    queue.add(DB)
    queue.pop()
    queue.add(WEB)
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    info = queue.pop()
    bench.retry_fails(info, "Fit")
    assert bench.place(WEB) == "unschedulable"


def test_an_update_of_a_pod_in_flight_is_replayed(bench):
    """The pod itself is fetched anew by the failure handler."""
    seen = []

    def hint(waiting, old, new):
        seen.append((waiting, old, new))
        return QueueingHint.QUEUE

    queue = bench.make(wants("Taints", TOLERATION, hint))
    queue.add(WEB)
    info = queue.pop()
    tolerant = pod("web").toleration("k").obj()
    queue.update(WEB, tolerant)
    assert bench.place(WEB) is None
    bench.retry_fails(info, "Taints")
    assert bench.place(WEB) == "backoff"
    assert seen == [(WEB, WEB, tolerant)]


def test_activating_a_pod_in_flight_brings_it_back_after_its_failure(bench):
    """Only that pod: others in flight skip the event."""
    queue = bench.make(wants("Fit", NODE_ADD))
    queue.add(WEB)
    queue.add(DB)
    web, db = queue.pop(), queue.pop()
    assert (web.pod, db.pod) == (WEB, DB)
    queue.activate({WEB.pod_key: WEB})
    bench.retry_fails(web, "Fit")
    bench.retry_fails(db, "Fit")
    assert (bench.place(WEB), bench.place(DB)) == ("backoff", "unschedulable")


# --- events for waiting pods -------------------------------------------------------------------------------------------


def test_only_pods_whose_rejectors_registered_the_event_are_asked(bench):
    """10,000 hopeless pods cost nothing for events of other plugins."""
    asked = []

    def hint(waiting, _old, _new):
        asked.append(waiting.name)
        return QueueingHint.QUEUE

    queue = bench.make(wants("Fit", NODE_ADD, hint), wants("Ports", ASSIGNED_POD_DELETE, hint))
    bench.fail(WEB, "Fit")
    bench.fail(DB, "Ports")
    queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, WEB, None)
    assert asked == ["db"]
    assert (bench.place(WEB), bench.place(DB)) == ("unschedulable", "backoff")
    assert bench.metrics.incoming_pods["backoff", "AssignedPodDelete"] == 1


def test_a_pod_that_skips_does_not_stop_those_behind_it(bench):
    """Each pod is asked about, in order of arrival."""

    def hint(waiting, _old, _new):
        return QueueingHint.QUEUE if waiting.name == "web" else QueueingHint.SKIP

    queue = bench.make(wants("Fit", NODE_ADD, hint))
    for one in (DB, WEB):
        bench.fail(one, "Fit")
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert (bench.place(DB), bench.place(WEB)) == ("unschedulable", "backoff")


def test_events_nobody_registered_leave_no_trace(bench):
    """No replay, no move request."""
    queue = bench.make(wants("Fit", NODE_ADD))
    queue.add(DB)
    queue.pop()
    queue.move_all_to_active_or_backoff_queue(NODE_DELETE, N1, None)
    assert queue.num_in_flight_events == 0
    assert queue.move_request_cycle == -1
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert queue.move_request_cycle == 1


def test_a_hint_that_raises_queues_the_pod(bench):
    """Counted as Error."""

    def broken(_pod, _old, _new):
        raise ZeroDivisionError

    queue = bench.make(wants("Fit", NODE_ADD, broken))
    bench.fail(WEB, "Fit")
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert bench.place(WEB) == "backoff"
    assert [call[:3] for call in bench.metrics.hints] == [("Fit", "NodeAdd", "Error")]


def test_pre_check_narrows_the_waiting_pods(bench):
    """As for pods of lower priority when a nomination ends."""
    queue = bench.make(wants("Fit", POD_EVENTS))
    high, low = pod("high").priority(9).obj(), pod("low").obj()
    for one in (high, low):
        bench.fail(one, "Fit")
    queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, WEB, None, pre_check=lambda p: p.priority <= 5)
    assert (bench.place(high), bench.place(low)) == ("unschedulable", "backoff")


@pytest.mark.parametrize("is_update", [False, True])
def test_assigned_pods_wake_those_that_wait_for_them(bench, is_update):
    """Affinity to a pod that has just arrived, say; the objects reach the hint."""
    seen = []

    def hint(_pod, old, new):
        seen.append((old, new))
        return QueueingHint.QUEUE

    queue = bench.make(wants("Affinity", POD_EVENTS, hint))
    bench.fail(WEB, "Affinity")
    old, new = pod("db").on("n1").obj(), pod("db").on("n1").label("a", "b").obj()
    if is_update:
        label_event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
        queue.assigned_pod_updated(old, new, label_event)
    else:
        queue.assigned_pod_added(new)
    assert bench.place(WEB) == "backoff"
    assert seen == [(old if is_update else None, new)]


# --- early pops and timers ---------------------------------------------------------------------------------------------


def test_an_idle_queue_pops_from_back_off_in_order(bench):
    """SchedulerPopFromBackoffQ: by the second of expiry, then by priority; never before a pod of activeQ."""
    queue = bench.make(wants("Fit", NODE_ADD))
    bench.fail(pod("second").obj(), "Fit")
    bench.fail(pod("first").priority(1).obj(), "Fit")
    bench.clock.advance(1)
    bench.fail(pod("third").priority(9).obj(), "Fit")
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    queue.add(pod("fresh").obj())
    assert queue.has_ready()
    assert bench.pop_all() == ["fresh", "first", "second", "third"]
    assert bench.metrics.incoming_pods["active", "PopFromBackoffQ"] == 3


def test_waiting_for_what_others_give_back_is_no_churn(bench):
    """Fifty pods wait for one port: whenever it is freed all of them are tried at once, the fiftieth time, too."""
    queue = bench.make(wants("Ports", ASSIGNED_POD_DELETE))
    info = bench.fail(WEB, "Ports")
    for _ in range(3 * MAX_EARLY):
        queue.move_all_to_active_or_backoff_queue(ASSIGNED_POD_DELETE, pod("gone").obj(), None)
        assert queue.pop() is info
        bench.retry_fails(info, "Ports")


def test_updates_of_a_pod_itself_do_not_set_the_pace_of_its_attempts(bench):
    """The first ones may have been meant to help, and are tried at once; then the back-off counts."""
    own_update = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL)
    queue = bench.make(wants("Affinity", own_update))
    info = bench.fail(WEB, "Affinity")
    tries = 0
    for number in range(3 * MAX_EARLY):
        queue.update(info.pod, pod(WEB.name).label("try", str(number)).obj())
        if queue.pop() is not None:
            tries += 1
            bench.retry_fails(info, "Affinity")
    assert tries == MAX_EARLY
    bench.tick(12)
    assert bench.pop_all() == [WEB.name]


def test_run_ends_back_offs_by_whole_seconds(bench):
    """A back-off of one second from 0.9 on is over when the clock shows second 2."""
    queue = bench.make()
    bench.clock.advance(0.9)
    bench.fail(WEB)
    assert queue.next_timer_s() == 1_000_002
    bench.tick(1.0)
    assert bench.place(WEB) == "backoff"
    bench.tick(0.1)
    assert bench.place(WEB) == "active"
    assert bench.metrics.incoming_pods["active", "BackoffComplete"] == 1
    assert queue.next_timer_s() is None


def test_pods_that_no_event_helps_are_tried_after_five_minutes(bench):
    """They are marked, so that a success afterwards shows a missing event; the next failure clears the mark."""
    queue = bench.make(wants("Fit", NODE_ADD))
    info = bench.fail(WEB, "Fit")
    bench.tick(300)
    assert bench.place(WEB) == "unschedulable"
    assert queue.next_timer_s() == 1_000_330
    bench.tick(30)
    assert bench.place(WEB) == "active"
    assert info.was_flushed_from_unschedulable
    assert bench.metrics.incoming_pods["active", "UnschedulableTimeout"] == 1
    bench.retry_fails(queue.pop(), "Fit")
    assert not info.was_flushed_from_unschedulable


def test_the_sweep_runs_every_thirty_seconds_only(bench):
    """A pod that is old enough between two sweeps waits for the next."""
    queue = bench.make(wants("Fit", NODE_ADD), max_in_unschedulable_s=10)
    bench.tick(0)
    bench.fail(WEB, "Fit")
    bench.tick(29)
    assert bench.place(WEB) == "unschedulable"
    assert queue.next_timer_s() == 1_000_030
    bench.tick(1)
    assert bench.place(WEB) == "active"


def test_gated_pods_are_not_swept(bench, make_gate):
    """Their gate did not register the sweep's event."""
    gate = make_gate("Gate")
    queue = bench.make(wants("Gate", POD_EVENTS), gates=[gate])
    queue.add(WEB)
    bench.tick(400)
    assert bench.place(WEB) == "gated"
    assert gate.asked == 1
    assert not queue.get(WEB.pod_key).was_flushed_from_unschedulable


# --- gates -------------------------------------------------------------------------------------------------------------


def test_a_gated_pod_waits_unseen_until_its_gate_hears_an_event_and_opens(bench, make_gate):
    """Time spent gated does not count as waiting."""
    gate = make_gate("Gate")
    queue = bench.make(wants("Gate", POD_EVENTS), wants("Fit", NODE_ADD), gates=[gate])
    queue.add(WEB)
    assert bench.place(WEB) == "gated"
    assert bench.ready_calls == 0
    assert bench.metrics.gauges == {"gated": 1}
    assert bench.metrics.rejectors == {("Gate", "default-scheduler"): 1}
    assert queue.get(WEB.pod_key).gating_plugin_events == (POD_EVENTS,)
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert gate.asked == 1
    queue.assigned_pod_added(DB)
    assert (gate.asked, bench.place(WEB)) == (2, "gated")
    bench.clock.advance(60)
    gate.shut = False
    queue.assigned_pod_added(DB)
    info = queue.pop()
    assert info.initial_attempt_timestamp_s == 1_000_060
    assert bench.metrics.non_zero(bench.metrics.gauges) == {}
    assert bench.metrics.non_zero(bench.metrics.rejectors) == {}


def test_removing_the_last_gate_frees_the_pod(bench):
    """SchedulingGates' own flow: the update of the pod itself."""
    gates_gone = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)

    class SchedulingGates:
        name = "SchedulingGates"

        def pre_enqueue(self, waiting):
            from scheduler.api import Status

            return Status.unresolvable("gated") if waiting.spec.scheduling_gates else None

    queue = bench.make(wants("SchedulingGates", gates_gone), gates=[SchedulingGates()])
    two, one = pod("web").gate("a", "b").obj(), pod("web").gate("a").obj()
    queue.add(two)
    queue.update(two, one)
    assert bench.place(WEB) == "gated"
    queue.update(one, WEB)
    assert bench.place(WEB) == "active"
    assert bench.ready_calls == 1


def test_gates_are_asked_before_back_off_too(bench, make_gate):
    """A pod may be popped from backoffQ directly, so it must have passed by then."""
    gate = make_gate("Gate", shut=False)
    queue = bench.make(wants("Fit", NODE_ADD), wants("Gate", NODE_DELETE), gates=[gate])
    bench.fail(WEB, "Fit")
    gate.shut = True
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert bench.place(WEB) == "gated"
    assert bench.metrics.non_zero(bench.metrics.gauges) == {"gated": 1}
    assert bench.metrics.rejectors == {("Fit", "default-scheduler"): 1, ("Gate", "default-scheduler"): 1}
    gate.shut = False
    queue.move_all_to_active_or_backoff_queue(NODE_DELETE, N1, None)
    assert bench.place(WEB) == "backoff"
    asked = gate.asked
    bench.tick(2)
    assert (bench.place(WEB), gate.asked) == ("active", asked)


# --- updates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_backoff", [False, True], ids=["in activeQ", "in backoffQ"])
def test_an_update_moves_a_queued_pod_to_its_new_place(bench, in_backoff):
    """And keeps its record."""
    queue = bench.make(wants("Fit", NODE_ADD))
    if in_backoff:
        bench.fail(DB, "Fit")
        bench.fail(WEB, "Fit")
        queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    else:
        queue.add(DB)
        queue.add(WEB)
    record = queue.get(WEB.pod_key)
    raised = pod("web").priority(5).obj()
    queue.update(WEB, raised)
    assert queue.pop() is record
    assert record.pod is raised


def test_an_update_of_an_unknown_pod_takes_it_in(bench):
    """The add was missed; with or without an old version."""
    queue = bench.make()
    queue.update(WEB, pod("web").label("a", "b").obj())
    queue.update(None, DB)
    assert queue.sizes().active == 2
    assert bench.metrics.incoming_pods == {("active", "UnschedulablePodUpdate"): 2}


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        pytest.param(pod("web").toleration("k"), "backoff", id="the change that its rejector waits for"),
        pytest.param(pod("web").label("a", "b"), "unschedulable", id="another change"),
        pytest.param(pod("web").label("a", "b").toleration("k"), "backoff", id="both at once"),
    ],
)
def test_an_update_of_a_waiting_pod_asks_its_rejectors(bench, builder, expected):
    """The record has the new version in any case, and nothing is counted as incoming twice."""
    queue = bench.make(wants("Taints", TOLERATION))
    info = bench.fail(WEB, "Taints")
    new = builder.obj()
    queue.update(WEB, new)
    assert bench.place(WEB) == expected
    assert info.pod is new
    assert bench.metrics.incoming_pods["unschedulable", "ScheduleAttemptFailure"] == 1
    assert bench.metrics.non_zero(bench.metrics.gauges) == {expected: 1}


# --- activate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failed_by", [("Fit",), ()], ids=["unschedulablePods", "backoffQ"])
def test_activate_ignores_back_off_and_rejectors(bench, failed_by):
    """A plugin knows better."""
    queue = bench.make(wants("Fit", NODE_ADD))
    bench.fail(WEB, *failed_by)
    ready = bench.ready_calls
    queue.activate({WEB.pod_key: WEB})
    assert bench.place(WEB) == "active"
    assert bench.ready_calls == ready + 1
    assert bench.metrics.incoming_pods["active", FORCE_ACTIVATE.label] == 1


def test_activate_does_not_open_gates(bench, make_gate):
    """And leaves active and unknown pods alone."""
    queue = bench.make(gates=[make_gate("Gate")])
    queue.add(WEB)
    queue.activate({WEB.pod_key: WEB, DB.pod_key: DB})
    assert queue.sizes() == QueueSizes(0, 0, 0, 1, 0)
    assert bench.ready_calls == 0


@pytest.mark.parametrize("place", ["active", "backoff", "unschedulable"])
def test_pop_specific_pod_takes_it_from_anywhere(bench, place):
    """As pop would: in flight, attempt counted."""
    queue = bench.make()
    if place == "active":
        queue.add(WEB)
    else:
        bench.fail(WEB, *(["Fit"] if place == "unschedulable" else []))
    assert bench.place(WEB) == place
    cycle = queue.scheduling_cycle
    assert queue.pop_specific_pod(WEB).pod is WEB
    assert queue.scheduling_cycle == cycle + 1
    assert queue.pop_specific_pod(WEB) is None
    assert queue.in_flight_pods() == [WEB]


# --- nominations -------------------------------------------------------------------------------------------------------


def test_nominated_pods_are_given_in_their_newest_version(bench):
    """Also while they are in no queue."""
    queue = bench.make()
    queue.add(WEB)
    queue.nominate(WEB, "n1")
    newer = pod("web").label("a", "b").obj()
    queue.update(WEB, newer)
    assert queue.nominated_pods_for_node("n1") == [newer]
    assert list(queue.nominated_nodes) == ["n1"]
    queue.pop()
    assert queue.nominated_pods_for_node("n1") == [newer]
    queue.delete_nominated_pod_if_exists(newer)
    assert queue.nominated_pods_for_node("n1") == []


def test_a_pod_created_with_a_nomination_is_known_at_once_unless_gated(bench, make_gate):
    """The scheduler was restarted, say."""
    gate = make_gate("Gate", shut=False)
    queue = bench.make(gates=[gate])
    nominated = pod("web").nominated("n1").obj()
    queue.add(nominated)
    gate.shut = True
    queue.add(pod("db").nominated("n1").obj())
    assert queue.nominated_pods_for_node("n1") == [nominated]


def test_nomination_of_a_bound_pod_is_ignored(bench):
    """The watch knows."""
    queue = bench.make(get_pod={WEB.pod_key: pod("web").on("n2").obj()}.get)
    queue.nominate(WEB, "n1")
    assert queue.nominated_pods_for_node("n1") == []


def test_update_nominated_pod_keeps_what_the_api_server_does_not_know_yet(bench):
    """Neither version names a node."""
    queue = bench.make()
    queue.nominate(WEB, "n1")
    queue.update_nominated_pod(WEB, pod("web").label("a", "b").obj())
    assert list(queue.nominated_nodes) == ["n1"]


# --- the rest ----------------------------------------------------------------------------------------------------------


def test_pending_pods_and_their_summary(bench):
    """The summary is upstream's text."""
    queue = bench.make(wants("Fit", NODE_ADD))
    queue.add(pod("a").obj())
    bench.fail(WEB)
    bench.fail(DB, "Fit")
    pods, summary = queue.pending_pods()
    assert sorted(p.name for p in pods) == ["a", "db", "web"]
    assert summary == "activeQ:1; backoffQ:1; unschedulablePods:1"


def test_close_stops_everything_and_wakes_the_driver(bench):
    """Nothing is popped any more, flights end, late returns are harmless."""
    queue = bench.make(wants("Fit", NODE_ADD))
    queue.add(WEB)
    queue.add(DB)
    info = queue.pop()
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    ready = bench.ready_calls
    queue.close()
    assert bench.ready_calls == ready + 1
    assert queue.is_closed
    assert (queue.pop(), queue.has_ready(), queue.next_timer_s()) == (None, False, None)
    assert bench.metrics.non_zero(bench.metrics.events) == {}
    bench.retry_fails(info, "Fit")
    queue.done(info.pod.uid)
    bench.tick(1000)
    assert queue.sizes() == QueueSizes(1, 1, 0, 0, 0)


def test_each_profile_has_its_own_hints_and_gates(bench, make_gate):
    """An event wakes only pods whose profile registered it for their rejector."""
    profiles = {
        "one": QueueProfile(registrations=[wants("Fit", NODE_ADD, queue_hint)]),
        "two": QueueProfile(registrations=[wants("Fit", NODE_ADD, skip_hint)]),
        "three": QueueProfile(pre_enqueue=[make_gate("Gate")]),
    }
    queue = bench.make(profiles=profiles)
    one, two, three, four = (pod(name).scheduler(name).obj() for name in ("one", "two", "three", "four"))
    bench.fail(one, "Fit")
    bench.fail(two, "Fit")
    queue.add(three)
    bench.fail(four, "Fit")
    queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, N1)
    assert [bench.place(p) for p in (one, two, three, four)] == ["backoff", "unschedulable", "gated", "backoff"]
    assert bench.metrics.non_zero(bench.metrics.rejectors) == {
        ("Fit", "one"): 1,
        ("Fit", "two"): 1,
        ("Gate", "three"): 1,
        ("Fit", "four"): 1,
    }


def test_new_profiles_give_every_waiting_pod_another_try(bench, make_gate):
    """What rejected or gated it may be gone; pods whose profile is gone stay queued."""
    gate, new_gate = make_gate("Gate"), make_gate("New")
    profiles = {
        "one": QueueProfile(registrations=[wants("Fit", NODE_ADD)]),
        "two": QueueProfile(pre_enqueue=[gate]),
        "three": QueueProfile(pre_enqueue=[gate]),
    }
    queue = bench.make(profiles=profiles)
    one, two, three, flying = (
        pod(name).scheduler(profile).obj()
        for name, profile in [("a", "one"), ("b", "two"), ("c", "three"), ("d", "one")]
    )
    bench.fail(one, "Fit")
    queue.add(two)
    queue.add(three)
    queue.add(flying)
    info = queue.pop_specific_pod(flying)
    queue.set_profiles({"two": QueueProfile(), "three": QueueProfile(pre_enqueue=[new_gate])})
    assert [bench.place(p) for p in (one, two, three)] == ["backoff", "active", "gated"]
    assert queue.get(three.pod_key).gating_plugin == "New"
    bench.retry_fails(info, "Fit")
    assert bench.place(flying) == "backoff"
    assert bench.metrics.incoming_pods["backoff", "ProfilesChanged"] == 1
    queue.add(pod("late").scheduler("one").obj())
    assert queue.sizes() == QueueSizes(active=2, backoff=2, unschedulable=0, gated=1, in_flight=0)


def test_a_change_of_one_profile_leaves_the_pods_of_others_alone(bench, make_gate):
    """Only the changed profile's pods are moved or asked for; a profile that only went away moves nobody."""
    gate = make_gate("Gate")
    profiles = {name: QueueProfile(registrations=[wants("Fit", NODE_ADD)]) for name in ("one", "two", "three")}
    queue = bench.make(profiles=profiles)
    one, two, ready, other = (
        pod(name).scheduler(profile).obj() for name, profile in [("a", "one"), ("b", "two"), ("c", "one"), ("d", "two")]
    )
    bench.fail(one, "Fit")
    bench.fail(two, "Fit")
    queue.add(ready)
    queue.add(other)
    queue.set_profiles({name: profiles[name] for name in ("one", "two")}, ())
    assert [bench.place(p) for p in (one, two, ready, other)] == ["unschedulable", "unschedulable", "active", "active"]
    queue.set_profiles({**profiles, "one": QueueProfile(pre_enqueue=[gate])}, {"one"})
    assert [bench.place(p) for p in (one, two, ready, other)] == ["gated", "unschedulable", "gated", "active"]
    assert queue.sizes() == QueueSizes(active=1, backoff=0, unschedulable=1, gated=2, in_flight=0)
    assert bench.metrics.non_zero(bench.metrics.rejectors) == {
        ("Fit", "one"): 1,
        ("Gate", "one"): 2,
        ("Fit", "two"): 1,
    }
