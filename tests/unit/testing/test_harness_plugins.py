"""What the harness offers to authors of plugins: background work by virtual time, and a look at metrics."""

import pytest

from scheduler.api import FilterPlugin, Status
from scheduler.testing.builders import node, pod
from scheduler.testing.harness import Harness


class Gate(FilterPlugin):
    """Lets pods in once its background work has run twice."""

    name = "Gate"

    def __init__(self, args, handle):
        handle.run_in_background(self.read, every_s=60)
        self.reads = handle.metrics.counter("gate_reads_total", "Reads.")
        self.seconds = handle.metrics.histogram("gate_read_seconds", "Time of reads.", ("source",))
        self.count = 0

    def read(self):
        self.count += 1
        self.reads.inc()
        self.seconds.labels("file").observe(0.1)

    def filter(self, state, pod, node):
        return None if self.count > 1 else Status.unschedulable("closed")


def test_background_work_runs_by_virtual_time():
    """Once when the profile is complete, then whenever its period has passed."""
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Gate"}]}}}
    with Harness(plugins={"Gate": Gate}, profile=profile) as cluster:
        cluster.put(node("n1").capacity(cpu="4", memory="8Gi", pods="110").obj())
        assert cluster.schedule(pod("early").obj()) == ""
        cluster.advance(59)
        assert cluster.metric("podium_plugin_gate_reads_total") == 1
        cluster.advance(1)
        assert cluster.metric("podium_plugin_gate_reads_total", profile="default-scheduler") == 2
        assert cluster.metric("podium_plugin_gate_read_seconds", source="file") == 2
        assert cluster.schedule(pod("late").obj()) == "n1"
        with pytest.raises(KeyError):
            cluster.metric("podium_plugin_other")
