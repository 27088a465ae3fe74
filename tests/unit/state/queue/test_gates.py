"""Gates: who is asked in which order, and what is written into the record."""

import pytest

from scheduler.api import Code, QueuedPodInfo, Status
from scheduler.state.changes import NODE_ADD
from scheduler.state.queue.gates import Gates
from scheduler.state.queue.profile import QueueProfile
from scheduler.testing import pod


@pytest.fixture
def info():
    return QueuedPodInfo(pod("web").obj(), 0.0)


def make(metrics, *plugins, profile="default-scheduler"):
    ticks = iter(range(100))
    return Gates(
        {profile: QueueProfile(pre_enqueue=plugins)},
        events_of=lambda plugin: (NODE_ADD,) if plugin == "B" else (),
        metrics=metrics,
        perf_counter=lambda: next(ticks),
    )


def test_the_first_no_gates_the_pod(metrics, make_gate, info):
    """Its plugin and that plugin's events are noted, the plugins behind it are not asked."""
    a, b, c = make_gate("A", shut=False), make_gate("B"), make_gate("C")
    make(metrics, a, b, c).run(info)
    assert info.is_gated
    assert (info.gating_plugin, info.gating_plugin_events) == ("B", (NODE_ADD,))
    assert info.unschedulable_plugins == {"B"}
    assert (a.asked, b.asked, c.asked) == (1, 1, 0)
    assert metrics.rejectors == {("B", "default-scheduler"): 1}
    assert metrics.pre_enqueues == [("default-scheduler", 1)]


def test_the_gating_plugin_is_asked_first_and_alone_while_it_says_no(metrics, make_gate, info):
    """Asking the others would be in vain; the rejector is not counted twice."""
    a, b = make_gate("A", shut=False), make_gate("B")
    gates = make(metrics, a, b)
    gates.run(info)
    gates.run(info)
    assert (a.asked, b.asked) == (1, 2)
    assert metrics.rejectors == {("B", "default-scheduler"): 1}


def test_when_all_let_it_in_the_pod_is_free_but_remembers_its_rejector(metrics, make_gate, info):
    """The rejectors are cleared when an attempt ends, not here (parity)."""
    a, b = make_gate("A", shut=False), make_gate("B")
    gates = make(metrics, a, b)
    gates.run(info)
    b.shut = False
    gates.run(info)
    assert not info.is_gated
    assert info.unschedulable_plugins == {"B"}
    assert (a.asked, b.asked) == (2, 2)


def test_another_plugin_may_take_over_the_gate(metrics, make_gate, info):
    """A pod that one plugin lets in may be kept out by the next."""
    a, b = make_gate("A", shut=False), make_gate("B")
    gates = make(metrics, a, b)
    gates.run(info)
    a.shut, b.shut = True, False
    gates.run(info)
    assert (info.gating_plugin, info.gating_plugin_events) == ("A", ())


def test_a_plugin_that_raises_gates_the_pod(metrics, info):
    """As an Error status does; the intake of other pods goes on."""

    class Broken:
        name = "Broken"

        def pre_enqueue(self, waiting):
            raise ValueError(waiting.name)

    make(metrics, Broken()).run(info)
    assert info.gating_plugin == "Broken"


def test_an_explicit_success_lets_in(metrics, info):
    """None is the usual way to say it."""

    class Polite:
        name = "Polite"

        def pre_enqueue(self, waiting):
            return Status(Code.SUCCESS)

    make(metrics, Polite()).run(info)
    assert not info.is_gated


def test_unknown_profiles_and_profiles_without_gates_let_in(metrics, make_gate, info):
    """Also a pod that a plugin of an earlier profile had gated."""
    info.gating_plugin = "Gone"
    make(metrics, make_gate("A"), profile="other").run(info)
    assert not info.is_gated
    assert metrics.pre_enqueues == []


def test_a_gating_plugin_that_is_gone_is_not_missed(metrics, make_gate, info):
    """After a change of profiles."""
    info.gating_plugin = "Gone"
    make(metrics, make_gate("A", shut=False)).run(info)
    assert not info.is_gated


def test_every_tenth_run_times_each_plugin(metrics, make_gate, info):
    """A tenth of the runs, as everywhere; the plugin that shuts the gate is the last that was asked."""
    gates = make(metrics, make_gate("A", shut=False), make_gate("B"), make_gate("C"))
    for _ in range(20):
        info.gating_plugin = ""
        gates.run(info)
    expected = [("PreEnqueue", "A", "Success"), ("PreEnqueue", "B", "UnschedulableAndUnresolvable")]
    assert metrics.plugin_durations == expected * 2
