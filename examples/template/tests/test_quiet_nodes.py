"""The engine that the daemon runs, with the plugin in its profile."""

import pytest
from quiet_nodes import QuietNodes

from scheduler.testing import Harness, node, pod


@pytest.fixture
def cluster():
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "QuietNodes"}]}},
        "pluginConfig": [{"name": "QuietNodes", "args": {"maxPods": 1}}],
    }
    with Harness(plugins={"QuietNodes": QuietNodes}, profile=profile) as made:
        made.put(node("n1").capacity(cpu="4", memory="8Gi", pods="110").obj())
        yield made


def test_quiet_nodes_are_taken(cluster):
    assert cluster.schedule(pod("first").obj()) == "n1"


def test_others_are_not(cluster):
    cluster.schedule(pod("first").obj())
    assert cluster.schedule(pod("second").obj()) == ""
    assert "node(s) were not quiet" in cluster.events[-1].note
