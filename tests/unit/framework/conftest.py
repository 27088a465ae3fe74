"""Fixtures: a snapshot of named nodes, a framework of plugin instances, metrics that remember."""

import itertools

import pytest

from scheduler.framework.runtime import Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node
from scheduler.testing.clock import FakeClock


class RecordingMetrics:
    """FrameworkMetrics that keep what they are told."""

    def __init__(self):
        self.points, self.durations, self.faults, self.waits, self.evaluations = [], [], [], [], {}

    def extension_point(self, point, status, profile, duration_s):
        self.points.append((point, status))

    def plugin_duration(self, point, plugin, status, duration_s):
        self.durations.append((point, plugin, status))

    def evaluation_counter(self, plugin, point, profile):
        def add(count):
            self.evaluations[plugin, point] = self.evaluations.get((plugin, point), 0) + count

        return add

    def permit_wait(self, result, duration_s):
        self.waits.append((result, duration_s))

    def plugin_fault(self, plugin, point, kind):
        self.faults.append((plugin, point, kind))


@pytest.fixture
def metrics():
    return RecordingMetrics()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def snapshot_of():
    """Return a function: node names or builders -> Snapshot."""

    def make(*nodes):
        cache, snapshot = Cache(), Snapshot()
        for item in nodes:
            builder = node(item).capacity(cpu="4", memory="8Gi", pods="110") if isinstance(item, str) else item
            cache.add_node(builder.obj())
        cache.update_snapshot(snapshot)
        return snapshot

    return make


@pytest.fixture
def framework_of(metrics, clock):
    """Return a function: plugins by point -> Framework with recording metrics and a ticking stop watch."""

    def make(weights=None, **points):
        plugins = {plugin.name: plugin for group in points.values() for plugin in group}
        ticks = itertools.count()
        return Framework(
            "default-scheduler",
            plugins,
            {point: [plugin.name for plugin in group] for point, group in points.items()},
            weights=weights,
            waiting=WaitingPods(clock),
            perf_counter=lambda: next(ticks) * 0.001,
            metrics=metrics,
        )

    return make
