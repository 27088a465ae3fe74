"""Fail-safe: pods that need a plugin that does not exist yet stay pending, others hear what the real plugin says."""

import pytest

from scheduler.api import Code, CycleState, Status
from scheduler.config.load import default_configuration
from scheduler.plugins import IN_TREE
from scheduler.plugins.fail_safe import FAIL_SAFE, NO_STATE, NOT_SCHEDULABLE, NOTHING_TO_DEALLOCATE, not_built
from scheduler.testing import node, pod
from scheduler.testing.harness import Harness

PLAIN, CLAIMING = pod("p").obj(), pod("p").resource_claim("gpu", claim="c").obj()


def test_pods_that_need_a_missing_plugin(bench):
    """The reason names the plugin and the pod's need; no node can help."""
    bench.cluster([node("n")])
    _, status = bench.pre_filter(bench.make("DynamicResources"), CLAIMING)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (not_built("DynamicResources", "has resource claims"),)


def test_other_pods_are_left_alone(bench):
    """A stand-in rejects no pod that does not need it, and ranks no node."""
    bench.cluster([node("n"), node("m")])
    plugin = bench.make("DynamicResources")
    _, status = bench.pre_filter(plugin, PLAIN)
    assert status.code is Code.SKIP
    assert bench.scores(plugin, PLAIN) == [0, 0]


@pytest.mark.parametrize(
    ("waiting", "was_asked", "status"),
    [
        pytest.param(PLAIN, True, Status.unschedulable(NOTHING_TO_DEALLOCATE), id="plain pod"),
        pytest.param(CLAIMING, True, Status.unschedulable(NOT_SCHEDULABLE), id="pod with claims"),
        pytest.param(PLAIN, False, Status.error(NO_STATE), id="PreFilter was not reached"),
    ],
)
def test_post_filter(bench, waiting, was_asked, status):
    """The texts stand in kube-scheduler's messages."""
    bench.cluster([node("n")])
    plugin, state = bench.make("DynamicResources"), CycleState()
    if was_asked:
        plugin.pre_filter(state, waiting, bench.handle.snapshot)
    assert plugin.post_filter(state, waiting, {}) == (None, status)


def test_message_of_a_pod_with_claims():
    """The owner reads why the pod waits; preemption cannot help."""
    with Harness() as harness:
        harness.put(node("n").capacity(cpu="1", memory="1Gi", pods="9").obj())
        harness.schedule(CLAIMING)
        reason = not_built("DynamicResources", "has resource claims")
        assert harness.last.status.message == (
            f"0/1 nodes are available: {reason}. still not schedulable, "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )


@pytest.mark.parametrize("name", FAIL_SAFE)
def test_no_event_resolves_a_missing_plugin(bench, name):
    """What a pod asks for stays so while it pends; it must not be woken by everything either."""
    assert bench.make(name).events() == ()


def test_every_default_plugin_exists():
    """A default profile names no plugin that the table lacks."""
    plugins = default_configuration().profiles[0].plugins
    names = {ref.name for ref in plugins.multi_point.enabled}
    assert names <= set(IN_TREE)
