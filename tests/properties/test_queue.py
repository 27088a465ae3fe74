"""The queue under any sequence of calls: no pod is lost or in two places, and the books balance.

A machine plays API server, failing and binding cycles, plugins and the clock against the queue, and keeps a model that
knows nothing but which pods should be queued and which are in flight.
"""

from collections import Counter

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, QueueingHint, Status
from scheduler.model.meta import ObjectMeta
from scheduler.model.pod import Pod, PodSchedulingGate, PodSpec, PodStatus
from scheduler.state import changes
from scheduler.state.queue.queue import QueueProfile, SchedulingQueue
from scheduler.testing import FakeClock

NAMES = ["a", "b", "c", "d", "e"]
PROFILES = ["one", "two"]
PLUGINS = ["Fit", "Spread", "Volumes", "Unregistered"]
EVENTS = [
    changes.NODE_ADD,
    changes.NODE_DELETE,
    changes.ASSIGNED_POD_ADD,
    changes.ASSIGNED_POD_DELETE,
    ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
    ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
    ClusterEvent(EventResource.PERSISTENT_VOLUME, ActionType.ADD),
]


class Books:
    """Gauges as the queue reports them."""

    def __init__(self):
        self.gauges = Counter()
        self.rejectors = Counter()
        self.events = Counter()

    def incoming(self, queue, event): ...

    def pending(self, queue, delta):
        self.gauges[queue] += delta

    def unschedulable_pods(self, plugin, profile, delta):
        self.rejectors[plugin, profile] += delta

    def hint_duration(self, plugin, event, hint, duration_s): ...

    def inflight_events(self, event, delta):
        self.events[event] += delta

    def pre_enqueue_duration(self, profile, duration_s): ...
    def plugin_duration(self, point, plugin, status, duration_s): ...


class SchedulingGates:
    """Upstream's plugin in one line."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod):
        return Status.unresolvable("gated") if pod.spec.scheduling_gates else None


def non_zero(counter):
    return {key: value for key, value in counter.items() if value}


class QueueMachine(RuleBasedStateMachine):
    """The queue against a model of sets."""

    def __init__(self):
        super().__init__()
        self.clock = FakeClock()
        self.books = Books()
        self.hint_answer = QueueingHint.QUEUE
        self.serial = 0
        self.alive = {}  # name -> the newest version of the pod, as the API server has it
        self.queued = {}  # name -> uid of the pod that must be in exactly one queue
        self.flying = {}  # uid -> the record of a popped pod
        self.closed = False
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=lambda info: (-info.pod.priority, info.timestamp_s),
            profiles={name: self.profile() for name in PROFILES},
            metrics=self.books,
            get_pod=lambda key: self.alive.get(key.split("/")[1]),
        )

    def profile(self):
        def hint(_pod, _old, _new):
            if self.hint_answer is None:
                raise ValueError("a plugin's bug")
            return self.hint_answer

        registered = [
            ("Fit", changes.NODE_ADD, hint),
            ("Fit", ClusterEvent(EventResource.POD, ActionType.DELETE), None),
            ("Spread", ClusterEvent(EventResource.POD, ActionType.ALL), hint),
            ("Volumes", ClusterEvent(EventResource.PERSISTENT_VOLUME, ActionType.ALL), hint),
            (
                "SchedulingGates",
                ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
                None,
            ),
        ]
        return QueueProfile(
            pre_enqueue=[SchedulingGates()],
            registrations=[(plugin, EventRegistration(event, hint)) for plugin, event, hint in registered],
        )

    def settle(self, info):
        """What a failure handler does first: take the newest version of the pod."""
        self.flying.pop(info.pod.uid)
        newest = self.alive.get(info.pod.name)
        return newest if newest is not None and newest.uid == info.pod.uid and not newest.node_name else None

    # --- the API server -------------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        priority=st.integers(0, 2),
        profile=st.sampled_from([*PROFILES, "unknown"]),
        gated=st.booleans(),
        nominated=st.sampled_from(["", "n1", "n2"]),
        missed_deletion=st.booleans(),
    )
    def create(self, name, priority, profile, gated, nominated, missed_deletion):
        if name in self.alive and not missed_deletion:
            return
        self.serial += 1
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{self.serial}"),
            spec=PodSpec(
                scheduler_name=profile,
                priority=priority,
                scheduling_gates=(PodSchedulingGate("g"),) if gated else (),
            ),
            status=PodStatus(nominated_node_name=nominated),
        )
        self.alive[name] = pod
        self.queued[name] = pod.uid
        self.queue.add(pod)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), label=st.sampled_from("xyz"), ungate=st.booleans(), known=st.booleans())
    def change(self, data, label, ungate, known):
        old = self.alive[data.draw(st.sampled_from(sorted(self.alive)))]
        spec = msgspec.structs.replace(old.spec, scheduling_gates=()) if ungate else old.spec
        metadata = msgspec.structs.replace(old.metadata, labels={"l": label})
        new = msgspec.structs.replace(old, metadata=metadata, spec=spec)
        self.alive[old.name] = new
        self.queue.update(old if known else None, new)
        if old.uid not in self.flying:
            self.queued[old.name] = old.uid

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def delete(self, data):
        pod = self.alive.pop(data.draw(st.sampled_from(sorted(self.alive))))
        self.queue.delete(pod)
        if self.queued.get(pod.name) == pod.uid:
            del self.queued[pod.name]

    # --- cycles -----------------------------------------------------------------------------------------------------

    @rule()
    def pop(self):
        ready = self.queue.has_ready()
        info = self.queue.pop()
        assert (info is not None) == ready
        if info is not None:
            assert self.queued.pop(info.pod.name) == info.pod.uid
            self.flying[info.pod.uid] = info

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        rejected_by=st.sets(st.sampled_from(PLUGINS), max_size=2),
        pending_by=st.sets(st.sampled_from(PLUGINS), max_size=1),
        nominate=st.sampled_from([None, "", "n1"]),
    )
    def fail(self, data, rejected_by, pending_by, nominate):
        info = self.flying[data.draw(st.sampled_from(sorted(self.flying)))]
        newest = self.settle(info)
        if newest is None:
            self.queue.done(info.pod.uid)
            return
        info.pod = newest
        info.unschedulable_plugins = rejected_by - pending_by
        info.pending_plugins = pending_by
        info.gating_plugin = ""
        assert self.queue.add_unschedulable_if_not_present(info, self.queue.scheduling_cycle)
        self.queued[info.pod.name] = info.pod.uid
        self.queue.nominate(newest, nominate)

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def bind(self, data):
        info = self.flying[data.draw(st.sampled_from(sorted(self.flying)))]
        newest = self.settle(info)
        if newest is not None:
            del self.alive[newest.name]
            self.queue.delete(newest)
        self.queue.done(info.pod.uid)

    # --- events and time --------------------------------------------------------------------------------------------

    @rule(event=st.sampled_from(EVENTS), answer=st.sampled_from([*QueueingHint, None]), only_low=st.booleans())
    def happen(self, event, answer, only_low):
        self.hint_answer = answer
        pre_check = (lambda pod: pod.priority == 0) if only_low else None
        self.queue.move_all_to_active_or_backoff_queue(event, None, None, pre_check)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def activate(self, data):
        pod = self.alive[data.draw(st.sampled_from(sorted(self.alive)))]
        self.queue.activate({pod.pod_key: pod})

    @rule(seconds=st.sampled_from([0.1, 1, 3, 30, 301]))
    def wait(self, seconds):
        timer = self.queue.next_timer_s()
        self.clock.advance(seconds)
        self.queue.run(self.clock.now())
        later = self.queue.next_timer_s()
        assert later is None or later > self.clock.now(), "run left something undone"
        if timer is None:
            assert later is None, "a pod began to wait for time without a call"

    @rule(which=st.sampled_from([PROFILES, PROFILES[:1], PROFILES[1:]]))
    def change_profiles(self, which):
        self.queue.set_profiles({name: self.profile() for name in which})

    # --- the books --------------------------------------------------------------------------------------------------

    @invariant()
    def every_pod_is_in_exactly_one_place(self):
        pods, _ = self.queue.pending_pods()
        assert Counter((p.name, p.uid) for p in pods) == Counter(self.queued.items())
        assert {p.uid for p in self.queue.in_flight_pods()} == set(self.flying)
        assert not set(self.flying) & set(self.queued.values())
        for pod in pods:
            places = [
                pod.pod_key in {info.pod.pod_key for info in place.infos()}
                for place in (self.queue._active, self.queue._backoff, self.queue._unschedulable)
            ]
            assert places.count(True) == 1
            assert self.queue.get(pod.pod_key).pod == self.alive[pod.name]

    @invariant()
    def gauges_equal_sizes(self):
        sizes = self.queue.sizes()
        expected = {name: getattr(sizes, name) for name in ("active", "backoff", "unschedulable", "gated")}
        assert non_zero(self.books.gauges) == non_zero(Counter(expected))
        rejectors = Counter(
            (plugin, info.pod.spec.scheduler_name)
            for place in (self.queue._active, self.queue._backoff, self.queue._unschedulable)
            for info in place.infos()
            for plugin in info.unschedulable_plugins | info.pending_plugins
        )
        assert non_zero(self.books.rejectors) == non_zero(rejectors)

    @invariant()
    def gated_pods_are_never_poppable(self):
        for place in (self.queue._active, self.queue._backoff):
            assert not any(info.is_gated for info in place.infos())

    @invariant()
    def events_are_kept_for_flights_only(self):
        kept = self.queue.num_in_flight_events
        if not self.flying:
            assert kept == 0
        assert sum(self.books.events.values()) == kept + len(self.flying)
        assert self.books.events["PodPopped"] == len(self.flying)

    @invariant()
    def nominated_pods_are_alive(self):
        nominated = [p for name in ("n1", "n2") for p in self.queue.nominated_pods_for_node(name)]
        assert len({p.uid for p in nominated}) == len(nominated)
        assert set(self.queue.nominated_nodes) <= {"n1", "n2"}

    def teardown(self):
        """In the end, everything drains: each waiting pod is tried within five minutes and a half, gated ones never."""
        for uid in list(self.flying):
            self.queue.done(uid)
        self.hint_answer = QueueingHint.SKIP
        self.clock.advance(331)
        self.queue.run(self.clock.now())
        self.clock.advance(11)
        self.queue.run(self.clock.now())
        popped = []
        while (info := self.queue.pop()) is not None:
            popped.append(info.pod.name)
            self.queue.done(info.pod.uid)
        left, _ = self.queue.pending_pods()
        assert sorted([*popped, *(p.name for p in left)]) == sorted(self.queued)
        assert all(p.spec.scheduling_gates for p in left)
        assert self.queue.num_in_flight_events == 0


QueueMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_queue_keeps_every_pod = QueueMachine.TestCase
