"""Fixtures for the queue: a fake clock, recorders that keep their numbers, and a queue on them."""

from collections import Counter

import pytest

from scheduler.api import Status
from scheduler.state.queue.queue import QueueProfile, SchedulingQueue
from scheduler.testing import FakeClock


class RecordedMetrics:
    """Keeps what the queue reports."""

    def __init__(self):
        self.incoming_pods = Counter()
        self.gauges = Counter()
        self.rejectors = Counter()
        self.hints = []
        self.events = Counter()
        self.pre_enqueues = []
        self.plugin_durations = []

    def incoming(self, queue, event):
        self.incoming_pods[queue, event] += 1

    def pending(self, queue, delta):
        self.gauges[queue] += delta

    def unschedulable_pods(self, plugin, profile, delta):
        self.rejectors[plugin, profile] += delta

    def hint_duration(self, plugin, event, hint, duration_s):
        self.hints.append((plugin, event, hint, duration_s))

    def inflight_events(self, event, delta):
        self.events[event] += delta

    def pre_enqueue_duration(self, profile, duration_s):
        self.pre_enqueues.append((profile, duration_s))

    def plugin_duration(self, point, plugin, status, duration_s):
        self.plugin_durations.append((point, plugin, status))

    def non_zero(self, counter):
        return {key: value for key, value in counter.items() if value}


class Gate:
    """A PreEnqueue plugin that is open or shut, and counts how often it is asked."""

    def __init__(self, name, *, shut=True):
        self.name = name
        self.shut = shut
        self.asked = 0

    def pre_enqueue(self, pod):
        self.asked += 1
        return Status.unresolvable(f"{self.name} is shut") if self.shut else None


class QueueBench:
    """A queue with its surroundings, and shorthands for whole steps."""

    def __init__(self):
        self.clock = FakeClock()
        self.metrics = RecordedMetrics()
        self.ready_calls = 0
        self.queue = None

    def _ready(self):
        self.ready_calls += 1

    def make(self, *registrations, gates=(), profiles=None, **options):
        """Make the queue; without ``profiles`` it has the default profile only."""
        if profiles is None:
            profiles = {"default-scheduler": QueueProfile(pre_enqueue=gates, registrations=registrations)}
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=lambda info: (-info.pod.priority, info.timestamp_s),
            profiles=profiles,
            metrics=self.metrics,
            on_ready=self._ready,
            **options,
        )
        return self.queue

    def fail(self, pod, *plugins, pending=()):
        """Add the pod, try it and send it back rejected by these plugins; none stands for an error."""
        self.queue.add(pod)
        info = self.queue.pop_specific_pod(pod)
        return self.retry_fails(info, *plugins, pending=pending)

    def retry_fails(self, info, *plugins, pending=()):
        """Send a popped pod back."""
        info.unschedulable_plugins = set(plugins)
        info.pending_plugins = set(pending)
        info.gating_plugin = ""
        assert self.queue.add_unschedulable_if_not_present(info, self.queue.scheduling_cycle)
        return info

    def place(self, pod):
        return self.queue.place_of(pod.pod_key)

    def pop_all(self):
        names = []
        while (info := self.queue.pop()) is not None:
            names.append(info.pod.name)
            self.queue.done(info.pod.uid)
        return names

    def tick(self, seconds):
        """Let time pass and do what is due."""
        self.clock.advance(seconds)
        self.queue.run(self.clock.now())


@pytest.fixture
def bench():
    return QueueBench()


@pytest.fixture
def metrics():
    return RecordedMetrics()


@pytest.fixture
def make_gate():
    return Gate
