"""The handle passes a plugin's wishes on to the engine, in the name of its profile."""

import random

import pytest

from scheduler.api import CycleState, Eviction, Handle, Status
from scheduler.framework.handle import EngineServices, ProfileHandle
from scheduler.framework.waiting import WaitingPods
from scheduler.model.node import Node
from scheduler.state.outbox import EmitEvent, PatchPodStatus
from scheduler.state.store import Stores
from scheduler.testing.builders import pod

WEB = pod("web").obj()


class Nominated:
    nominated_nodes = ("n1",)

    def nominated_pods_for_node(self, name):
        return [WEB] if name == "n1" else []


@pytest.fixture
def services(clock, snapshot_of):
    snapshot = snapshot_of("n1")
    calls = []
    made = EngineServices(
        clock=clock,
        random=random.Random(1),
        nodes=lambda: snapshot,
        lister=Stores().of,
        is_placed=lambda uid: uid == WEB.pod_uid,
        bind=lambda pod, node_name: ("bound", pod, node_name),
        emit=calls.append,
        call_soon_threadsafe=lambda callback: callback(),
        waiting=WaitingPods(clock),
    )
    return made, calls


def test_handle(services, clock):
    """Everything that a plugin may ask for arrives."""
    engine, calls = services
    handle: Handle = ProfileHandle("batch", engine)
    assert (handle.profile_name, handle.clock, handle.random) == ("batch", clock, engine.random)
    assert list(handle.nodes().names) == ["n1"]
    assert list(handle.lister(Node).list()) == []
    assert [handle.is_placed(uid) for uid in (WEB.pod_uid, "another")] == [True, False]
    assert handle.bind(WEB, "n1") == ("bound", WEB, "n1")
    handle.emit_event(WEB, kind="Normal", reason="R", action="A", note="N")
    handle.call_soon_threadsafe(lambda: calls.append("soon"))
    assert calls == [EmitEvent(WEB, "batch", "Normal", "R", "A", "N"), "soon"]


@pytest.mark.parametrize("field", ["kind", "reason", "action", "note"])
def test_event_whose_text_is_none_is_refused_at_once(services, field):
    """It is the plugin's own call that fails, not the writing of everybody's events."""
    engine, calls = services
    texts = {"kind": "Normal", "reason": "R", "action": "A", "note": "N", field: RuntimeError("odd")}
    with pytest.raises(TypeError, match="not RuntimeError"):
        ProfileHandle("batch", engine).emit_event(WEB, **texts)
    assert calls == []


def test_callback_that_raises_does_not_end_the_scheduling_thread(services, metrics):
    """It is run between two decisions, where nobody else would catch it."""
    engine, _ = services
    engine.metrics = metrics
    ProfileHandle("batch", engine, "Carbon").call_soon_threadsafe(lambda: {}["missing"])
    assert metrics.faults == [("Carbon", "Background", "exception")]


def test_waiting_pods(services):
    """A plugin finds the pods on hold."""
    engine, _ = services
    handle = ProfileHandle("batch", engine)
    held = engine.waiting.add(WEB, {"P": 10})
    assert handle.waiting_pod(WEB.pod_uid) is held
    assert list(handle.waiting_pods()) == [held]


def test_queue_side_is_connected_later(services):
    """Before the queue exists nothing is nominated and nothing can be activated."""
    engine, calls = services
    handle = ProfileHandle("batch", engine)
    handle.activate({"default/web": WEB})
    assert handle.nominated_pods("n1") == ()
    engine.nominations = Nominated()
    engine.activate = calls.append
    handle.activate({"default/web": WEB})
    assert handle.nominated_pods("n1") == (WEB,)
    assert calls == [{"default/web": WEB}]


class WhatIf:
    """A profile's framework that tells what it was asked."""

    def run_filter_on_node_with_nominated_pods(self, state, pod, node):
        return Status.unschedulable(f"filter {pod.name} on {node}")

    def run_pre_filter_add_pod(self, state, pod, added, node):
        return Status.error(f"add {added.name} for {pod.name} on {node}")

    def run_pre_filter_remove_pod(self, state, pod, removed, node):
        return Status.error(f"remove {removed.name} for {pod.name} on {node}")


def test_what_if(services):
    """Evaluations of single nodes are those of the plugin's own profile."""
    engine, _ = services
    engine.frameworks = {"batch": WhatIf()}
    handle, other, state = ProfileHandle("batch", engine), pod("other").obj(), CycleState()
    assert handle.run_filters(state, WEB, "n").message == "filter web on n"
    assert handle.add_pod(state, WEB, other, "n").message == "add other for web on n"
    assert handle.remove_pod(state, WEB, other, "n").message == "remove other for web on n"


def test_preemption(services):
    """Evictions and nominations are handed on as instructions; the numbers are measured."""
    engine, calls = services
    engine.evict = engine.patch_status = calls.append
    engine.extenders = ("extender",)
    engine.metrics = measured = Measured()
    engine.is_enabled = {"SomeGate": True}.__getitem__
    handle = ProfileHandle("batch", engine)
    order = Eviction(WEB, "n1", (WEB,), 3, "P", lambda: None, lambda error, was_gone: None)
    handle.note_preemption()
    handle.evict(order)
    handle.clear_nomination(WEB)
    assert calls == [order, PatchPodStatus(WEB, None, "")]
    assert (measured.attempts, measured.victims) == (1, [3])
    assert handle.extenders() == ("extender",)
    assert handle.is_enabled("SomeGate")
    with pytest.raises(KeyError):
        handle.is_enabled("AnotherGate")


class Measured:
    def __init__(self):
        self.attempts, self.victims = 0, []

    def preemption_attempt(self):
        self.attempts += 1

    def preemption_victims(self, count):
        self.victims.append(count)
