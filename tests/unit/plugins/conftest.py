"""A workbench for plugins: clusters as snapshots, both forms of a plugin at once, hints by event."""

import random

import numpy as np
import pytest

from scheduler.api import Code, CycleState, PreFilterPlugin, PreScorePlugin, QueueingHint
from scheduler.config.gates import FeatureGates
from scheduler.config.load import default_configuration
from scheduler.plugins import IN_TREE
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.store import Stores
from scheduler.testing import FakeClock


class Handle:
    """As much of the engine as in-tree plugins ask for."""

    def __init__(self):
        self.snapshot = Snapshot()
        self.stores = Stores()
        self.bound = []
        self.clock = FakeClock()
        self.random = random.Random(0)
        self.patched = []

    def nodes(self):
        return self.snapshot

    def is_enabled(self, feature):
        return FeatureGates().enabled(feature)

    def lister(self, kind):
        return self.stores.of(kind)

    def put(self, *objects):
        for obj in objects:
            self.stores.of(type(obj)).put(obj)

    async def patch(self, obj, changes):
        self.patched.append((type(obj).__name__, obj.key, changes))
        return obj

    async def sleep(self, seconds):
        self.clock.advance(seconds)

    def bind(self, pod, node_name):
        self.bound.append((pod.name, node_name))
        return "an awaitable"


class PluginBench:
    """One plugin with its surroundings. Every answer is asked for in both forms, which must agree."""

    def __init__(self):
        self.handle = Handle()

    def make(self, name, args=None):
        """Make a plugin as the registry does, by default with the default profile's args."""
        if args is None:
            args = default_configuration().profiles[0].plugin_config.get(name)
        return IN_TREE[name](args, self.handle)

    def cluster(self, nodes, pods=()):
        """Build the snapshot of these nodes and pods (builders)."""
        cache = Cache()
        for node in nodes:
            cache.add_node(node.obj())
        for i, pod in enumerate(pods):
            cache.add_pod(pod.uid(f"running-{i}").obj())
        self.handle.snapshot = Snapshot()
        cache.update_snapshot(self.handle.snapshot)
        return self.handle.snapshot

    def pre_filter(self, plugin, pod):
        """Return what PreFilter answers: (node names or None, status or None)."""
        result, status = plugin.pre_filter(CycleState(), pod, self.handle.snapshot)
        return None if result is None else result.node_names, status

    def verdicts(self, plugin, pod, *, pre_filter=True):
        """Return node name -> status (None: the pod fits); "Skip" if PreFilter steps aside."""
        snapshot, state = self.handle.snapshot, CycleState()
        if pre_filter and isinstance(plugin, PreFilterPlugin):
            _, status = plugin.pre_filter(state, pod, snapshot)
            if status is not None and status.code is Code.SKIP:
                return "Skip"
        single = [plugin.filter(state, pod, info) for info in snapshot.infos]
        answer = plugin.filter_all(state, pod, snapshot)
        failing = np.flatnonzero(~answer.ok)
        of_all = [None] * len(snapshot)
        for status, rows in answer.explain(failing):
            for row in rows.tolist():
                assert of_all[row] is None, "a row is explained once"
                of_all[row] = status
        assert of_all == single, "both forms agree"
        assert answer.ok.tolist() == [status is None for status in single]
        return dict(zip(snapshot.names, single, strict=True))

    def verdict(self, plugin, pod, **options):
        """Return the status of the only node."""
        answer = self.verdicts(plugin, pod, **options)
        return answer if isinstance(answer, str) else next(iter(answer.values()))

    def scores(self, plugin, pod, *, pre_score=True):
        """Return the normalized scores in row order; "Skip" if PreScore steps aside, its text if it fails."""
        snapshot, state = self.handle.snapshot, CycleState()
        if pre_score and isinstance(plugin, PreScorePlugin):
            status = plugin.pre_score(state, pod, snapshot)
            if status is not None:
                return "Skip" if status.code is Code.SKIP else status.message
        single = [plugin.score(state, pod, info) for info in snapshot.infos]
        of_all = plugin.score_all(state, pod, snapshot)
        assert of_all.dtype in (np.int16, np.int64), "what the engine adds up as it is"
        assert of_all.tolist() == single, "both forms agree"
        return plugin.normalize(state, pod, snapshot, of_all).tolist()

    def hint(self, plugin, event, pod, old, new):
        """Return what the plugin says to the event; None if it did not register it."""
        answers = [
            registration.hint(pod, old, new) if registration.hint else QueueingHint.QUEUE
            for registration in plugin.events()
            if registration.event.matches(event)
        ]
        return None if not answers else QueueingHint.QUEUE if QueueingHint.QUEUE in answers else QueueingHint.SKIP

    def registered(self, plugin):
        """Return the registered events as (resource, action)."""
        return {(r.event.resource.value, r.event.action) for r in plugin.events()}


@pytest.fixture
def bench():
    return PluginBench()
