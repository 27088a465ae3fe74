"""Live profiles in a whole daemon on the embedded API server: objects come, change, go wrong and go."""

import asyncio
import threading
import time

import pytest

from scheduler.app.daemon import Daemon
from scheduler.config.flags import complete, parse_flags
from scheduler.kube.credentials import FileCredentials
from scheduler.testing.apiserver import EmbeddedApiServer
from scheduler.testing.builders import node, pod

CONFIG = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: podium}]
"""
OPTIONS = b"""
apiVersion: podium.dev/v1alpha1
kind: SchedulerOptions
liveProfiles: {enabled: true, resyncSeconds: 1}
"""
DEADLINE_S = 30.0
MOST_ALLOCATED = {
    "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}
}  # fmt: skip


class World:
    def __init__(self, server, daemon):
        self.server = server
        self.daemon = daemon

    def profile(self, name, **spec):
        self.server.create(
            {
                "apiVersion": "scheduling.podium.dev/v1alpha1",
                "kind": "SchedulerProfile",
                "metadata": {"name": name},
                "spec": {"schedulerName": name, **spec},
            }
        )

    def change(self, name, **spec):
        self.server.patch("schedulerprofiles", name, {"spec": spec})

    def pod(self, name, scheduler):
        self.server.create(pod(name).scheduler(scheduler).requests(cpu="100m").create_manifest())

    def node_of(self, name):
        return self.server.get("pods", name)["spec"].get("nodeName", "")

    def wait_bound(self, name):
        return eventually(lambda: self.node_of(name), f"{name} to be bound")

    def wait_reason(self, name, reason):
        def probe():
            status = self.server.get("schedulerprofiles", name).get("status", {})
            conditions = status.get("conditions", [])
            return status if [c["reason"] for c in conditions] == [reason] else None

        return eventually(probe, f"{name} to be {reason}")


def eventually(probe, what):
    deadline_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline_s:
        found = probe()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE_S:g} s: {what}")


@pytest.fixture
def world():
    with EmbeddedApiServer.in_thread() as server:
        for name in ("small", "large"):
            cpu = "4" if name == "small" else "64"
            server.create(node(name).capacity(cpu=cpu, memory="64Gi", pods="110").create_manifest())
        files = {"config.yaml": CONFIG, "options.yaml": OPTIONS}
        flags = ["--config", "config.yaml", "--options", "options.yaml", "--secure-port", "0"]
        daemon = Daemon(complete(parse_flags(flags), files.__getitem__), credentials=FileCredentials(server.url))
        thread = threading.Thread(target=lambda: asyncio.run(daemon.run()), name="service")
        thread.start()
        try:
            yield World(server, daemon)
        finally:
            daemon.stop()
            thread.join(20)
            assert not thread.is_alive()


def test_a_profile_lives_changes_is_refused_and_goes(world):
    world.pod("early", "batch")
    world.profile("batch", pluginConfig=[{"name": "NodeResourcesFit", "args": MOST_ALLOCATED}])
    assert world.wait_bound("early") == "small"
    status = world.wait_reason("batch", "Serving")
    assert "NodeResourcesFit=1" in status["plugins"]["score"]

    world.change("batch", pluginConfig=[])
    eventually(lambda: world.wait_reason("batch", "Serving")["servingGeneration"] == 2, "the change to serve")
    world.pod("spread", "batch")
    assert world.wait_bound("spread") == "large"

    world.change("batch", percentageOfNodesToScore=101, plugins={"score": {"enabled": [{"name": "Nope"}]}})
    status = world.wait_reason("batch", "Outdated")
    assert status["errors"] == ["spec.percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]
    assert (status["observedGeneration"], status["servingGeneration"]) == (3, 2)
    world.pod("still", "batch")
    world.wait_bound("still")
    world.change("batch", percentageOfNodesToScore=None)
    status = eventually(lambda: _about(world.wait_reason("batch", "Outdated"), "Nope"), "the next reason")
    assert (status["observedGeneration"], status["servingGeneration"]) == (4, 2)

    world.server.create(pod("stuck").scheduler("batch").requests(cpu="1000").create_manifest())
    eventually(lambda: "Insufficient cpu" in _condition(world, "stuck"), "the pod to be told")
    world.server.delete("schedulerprofiles", "batch")
    text = 'no profile named "batch" is live: its SchedulerProfile was deleted or renamed'
    eventually(lambda: _condition(world, "stuck") == text, "the pod to be told that nobody schedules it")
    eventually(lambda: text in {e.get("note") or e.get("message") for e in world.server.list("events")}, "the event")
    world.pod("other", "podium")
    assert world.wait_bound("other")
    world.profile("batch")
    eventually(lambda: "Insufficient cpu" in _condition(world, "stuck"), "the pod to be tried again")


def test_nothing_is_lost_when_the_api_server_goes_away(world):
    """A profile deleted and one created just before the outage ends are both seen, whatever kopf's stream missed."""
    world.profile("batch")
    world.wait_reason("batch", "Serving")
    world.server.close_watches()
    world.server.delete("schedulerprofiles", "batch")
    world.profile("second")
    world.wait_reason("second", "Serving")
    eventually(lambda: "batch" not in world.daemon.scheduling.core.profiles, "the deleted one to go")


def _about(status, word):
    return status if any(word in error for error in status.get("errors", ())) else None


def _condition(world, name):
    conditions = world.server.get("pods", name).get("status", {}).get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")
