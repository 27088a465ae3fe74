"""A bug of our own, at whatever moment, costs an attempt: the pod is tried again, and nothing is kept for it twice."""

import importlib

import pytest
from structlog.testing import capture_logs

from scheduler.api import PermitPlugin, PreBindPlugin, ReservePlugin, Status
from scheduler.testing import Harness, node, pod

PLACES = {
    "decide.popped": "scheduler.cycle.schedule_one",
    "decide.assumed": "scheduler.cycle.schedule_one",
    "decide.permitted": "scheduler.cycle.schedule_one",
    "failure.requeue": "scheduler.cycle.failure",
    "undo.unreserved": "scheduler.cycle.conclude",
    "binding.failed": "scheduler.cycle.conclude",
    "binding.succeeded": "scheduler.binding.binder",
}


class Careful(ReservePlugin, PermitPlugin, PreBindPlugin):
    """Reserves something, waits in Permit if it should, and fails in PreBind once if it should."""

    name = "Careful"
    waits = fails = False

    def __init__(self, args, handle):
        Careful.made = self
        self.reserved = set()

    def reserve(self, state, pod, node_name):
        assert pod.name not in self.reserved, "what an earlier attempt reserved was not given back"
        self.reserved.add(pod.name)

    def unreserve(self, state, pod, node_name):
        self.reserved.discard(pod.name)  # it may be called twice, as with kube-scheduler

    def permit(self, state, pod, node_name):
        if not Careful.waits:
            return None, 0.0
        Careful.waits = False
        return Status.wait(), 5.0

    async def pre_bind(self, state, pod, node_name):
        if Careful.fails:
            Careful.fails = False
            return Status.error("not now")
        return None


@pytest.fixture
def harness():
    Careful.waits = Careful.fails = False
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Careful"}]}}}
    with Harness(profile=profile, plugins={"Careful": Careful}) as made:
        made.put(node("n").capacity(cpu="1", pods="9").obj())
        yield made


@pytest.fixture
def break_at(monkeypatch):
    """Have the product raise once at a failpoint."""

    def arm(name):
        met = []

        def failpoint(here, about=None):
            if here == name and not met:
                met.append(about)
                raise RuntimeError("bug")

        monkeypatch.setattr(importlib.import_module(PLACES[name]), "failpoint", failpoint)
        return met

    return arm


@pytest.mark.parametrize("waits", [False, True], ids=["", "on hold"])
@pytest.mark.parametrize("name", PLACES)
def test_a_bug_costs_an_attempt(name, waits, harness, break_at):
    """In the end the pod runs, has reserved once, and all other room is free."""
    Careful.waits = waits
    Careful.fails = name in {"failure.requeue", "undo.unreserved", "binding.failed"}
    met = break_at(name)
    with capture_logs() as logs:
        harness.put(pod("p").requests(cpu="1").obj())
        for _ in range(20):
            harness.run()
            harness.advance(3.0)
    assert met, "the failpoint was not reached"
    assert any("bug" in str(entry) for entry in logs), "it is logged"
    assert "was not given back" not in str(logs)
    if name != "binding.succeeded":  # the API server shows the pod, the harness that did not hear of it does not
        assert harness.pod("default/p").node_name == "n"
    assert Careful.made.reserved == {"p"}
    core = harness.core
    assert core.queue.pending_pods()[0] == []
    assert core.queue.in_flight_pods() == []
    assert list(core.waiting) == []
    assert core.cache.num_pods == 1
