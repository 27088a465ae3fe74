"""Fixtures: an engine on a real queue, cache and snapshot, with the plugins a test brings."""

import itertools
import random

import numpy as np
import pytest

from scheduler.api import FilterPlugin, QueueSortPlugin, ScorePlugin, Status
from scheduler.config.types import SchedulerConfiguration
from scheduler.cycle.schedule_one import Scheduler
from scheduler.cycle.select import choose_smallest_name
from scheduler.framework.runtime import Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.outbox import Outbox
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Store
from scheduler.testing.builders import node, pod
from scheduler.testing.clock import FakeClock

PROFILE = "default-scheduler"


class Order(QueueSortPlugin):
    name = "Order"

    def events(self):
        return ()

    def less(self, a, b):
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, info):
        return (-info.pod.priority, info.timestamp_s)


class Room(FilterPlugin):
    """Whole-cluster filter: so many pods a node."""

    name = "Room"

    def __init__(self, limit=1):
        self.limit = limit

    def filter(self, state, pod, node):
        return None if node.num_pods < self.limit else Status.unschedulable("no room")

    def filter_all(self, state, pod, nodes):
        from scheduler.api import Verdicts

        return Verdicts.all_equal(nodes.num_pods < self.limit, Status.unschedulable("no room"))


class Liking(ScorePlugin):
    """Whole-cluster score by node name."""

    name = "Liking"

    def __init__(self, **scores):
        self.scores = scores

    def score(self, state, pod, node):
        return self.scores.get(node.name, 0)

    def score_all(self, state, pod, nodes):
        return np.array([self.scores.get(name, 0) for name in nodes.names], np.int64)


class RecordingMetrics:
    def __init__(self):
        self.attempts, self.scheduled, self.dropped, self.decisions = [], [], [], 0

    def algorithm(self, duration_s):
        self.decisions += 1

    def attempt(self, result, profile, duration_s):
        self.attempts.append(result)

    def pod_scheduled(self, attempts, sli_duration_s, *, after_flush):
        self.scheduled.append((attempts, sli_duration_s, after_flush))

    def binding_dropped(self, outcome):
        self.dropped.append(outcome)


class World:
    """The engine with everything around it."""

    def __init__(self, points, *, nodes, percentage=0, extenders=(), profile_percentage=None, events=()):
        self.clock = FakeClock()
        self.metrics = RecordingMetrics()
        self.attempts = []
        plugins = [plugin for group in points.values() for plugin in group]
        ticks = itertools.count()
        self.framework = Framework(
            PROFILE,
            {plugin.name: plugin for plugin in plugins} | {"Order": Order()},
            {point: [plugin.name for plugin in group] for point, group in points.items()} | {"queue_sort": ["Order"]},
            waiting=WaitingPods(self.clock),
            perf_counter=lambda: next(ticks) * 1e-6,
            percentage_of_nodes_to_score=profile_percentage,
            has_extenders=bool(extenders),
        )
        self.pods = Store()
        self.queue = SchedulingQueue(
            clock=self.clock,
            sort_key=self.framework.sort_key,
            profiles={PROFILE: self.framework.queue_profile()},
            get_pod=self.pods.get,
        )
        self.framework.set_nominations(self.queue)
        self.cache = Cache()
        for item in nodes:
            self.cache.add_node((node(item) if isinstance(item, str) else item).obj())
        self.outbox = Outbox()
        self.engine = Scheduler(
            queue=self.queue,
            cache=self.cache,
            snapshot=Snapshot(),
            pods=self.pods,
            profiles={PROFILE: self.framework},
            outbox=self.outbox,
            clock=self.clock,
            random=random.Random(7),
            configuration=SchedulerConfiguration(percentage_of_nodes_to_score=percentage),
            perf_counter=lambda: next(ticks) * 1e-6,
            extenders=extenders,
            metrics=self.metrics,
            choose=choose_smallest_name,
            observer=self.attempts.append,
        )

    def add(self, builder):
        """Let a pending pod arrive."""
        made = (pod(builder) if isinstance(builder, str) else builder).scheduler(PROFILE).obj()
        self.pods.put(made)
        self.queue.add(made)
        return made

    def run(self, builder):
        """Let a pod arrive and try it; return the attempt's record and the instructions given."""
        self.add(builder)
        assert self.engine.schedule_one()
        return self.attempts[-1] if self.attempts else None, self.outbox.drain()


@pytest.fixture
def world():
    """Return a function: plugins by point, keywords of World -> World."""

    def make(nodes=("a", "b"), percentage=0, extenders=(), profile_percentage=None, **points):
        return World(
            points,
            nodes=nodes,
            percentage=percentage,
            extenders=extenders,
            profile_percentage=profile_percentage,
        )

    make.Room = Room
    make.Liking = Liking
    return make
