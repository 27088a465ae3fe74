"""A bench for intake: real cache, queue, stores and outbox, with the smallest surroundings."""

from collections import Counter

import pytest

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource
from scheduler.intake.barrier import Barrier
from scheduler.intake.nodes import NodeIntake
from scheduler.intake.others import ObjectIntake
from scheduler.intake.pods import PodIntake
from scheduler.intake.router import Intake
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.storage import CSINode, PersistentVolumeClaim
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.outbox import Outbox
from scheduler.state.queue.queue import QueueProfile, SchedulingQueue
from scheduler.state.store import Stores
from scheduler.testing import FakeClock

EVERYTHING = [
    ("Any", EventRegistration(ClusterEvent(resource, ActionType.ALL)))
    for resource in (EventResource.POD, EventResource.NODE, EventResource.PERSISTENT_VOLUME_CLAIM)
]


class IntakeBench:
    """Everything that a delta can change.

    One plugin, ``Any``, is woken by everything; pods that it rejected show which events came. ``events`` are the labels
    of the events that the queue was told of while a pod was in flight.
    """

    def __init__(self, *, honor_foreign_nominations=True):
        self.clock = FakeClock()
        self.seconds = Counter()
        self.waiting = {}
        self.rejected_waiting = []
        self.rejected_kinds = []
        self.cache = Cache()
        self.stores = Stores()
        self.outbox = Outbox()
        self.barrier = Barrier([Pod, Node], [CSINode])
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=lambda info: (-info.pod.priority, info.timestamp_s),
            profiles={"default-scheduler": QueueProfile(registrations=EVERYTHING)},
            get_pod=self.stores.of(Pod).get,
        )
        common = {"queue": self.queue, "metrics": self, "perf_counter": self.clock.now}
        pods = PodIntake(
            cache=self.cache,
            store=self.stores.of(Pod),
            profiles={"default-scheduler"},
            reject_waiting_pod=self._reject_waiting_pod,
            honor_foreign_nominations=honor_foreign_nominations,
            **common,
        )
        nodes = NodeIntake(cache=self.cache, store=self.stores.of(Node), **common)
        claims = ObjectIntake(
            resource=EventResource.PERSISTENT_VOLUME_CLAIM, store=self.stores.of(PersistentVolumeClaim), **common
        )
        csi_nodes = ObjectIntake(resource=None, store=self.stores.of(CSINode), **common)
        self.intake = Intake(
            handlers={Pod: pods, Node: nodes, PersistentVolumeClaim: claims, CSINode: csi_nodes},
            barrier=self.barrier,
            outbox=self.outbox,
            profiles={"default-scheduler"},
            on_rejected=self.rejected_kinds.append,
        )

    def event_handled(self, event, seconds):
        self.seconds[event] += 1

    def _reject_waiting_pod(self, uid, plugin, message):
        if uid not in self.waiting:
            return False
        self.rejected_waiting.append((uid, plugin, message))
        return True

    def apply(self, *deltas):
        for delta in deltas:
            self.intake.apply(delta)

    def snapshot(self):
        made = Snapshot()
        self.cache.update_snapshot(made)
        return made

    def park(self, pod, *plugins):
        """Add a pod and have it rejected, so that it waits for events."""
        self.stores.of(Pod).put(pod)
        self.queue.add(pod)
        info = self.queue.pop_specific_pod(pod)
        info.unschedulable_plugins = set(plugins or ("Any",))
        self.queue.add_unschedulable_if_not_present(info, self.queue.scheduling_cycle)
        assert self.place(pod) == "unschedulable"
        return pod

    def assume(self, pod, node_name):
        """Pop and assume a pod, as a decision does."""
        info = self.queue.pop_specific_pod(pod)
        assumed = info.pod.on_node(node_name)
        self.cache.assume_pod(assumed)
        return assumed

    def place(self, pod):
        return self.queue.place_of(pod.pod_key)

    def is_woken(self, pod):
        """Say whether an event moved the parked pod."""
        return self.place(pod) in {"active", "backoff"}

    def pods_on(self, node_name):
        info = self.cache.get_node(node_name)
        return [] if info is None else sorted(pod.name for pod in info.pods)


@pytest.fixture
def bench():
    return IntakeBench()


@pytest.fixture
def upstream_bench():
    """Nominations of other schedulers' pods are ignored, as upstream does."""
    return IntakeBench(honor_foreign_nominations=False)
