"""Preemption in a whole engine: who is evicted, what is said, and what becomes of the pod."""

import pytest

from scheduler.api import ActionType, FilterPlugin, PermitPlugin, PreFilterPlugin, QueueingHint, Status
from scheduler.config.args import DefaultPreemptionArgs
from scheduler.model.policy import PodDisruptionBudget
from scheduler.plugins.default_preemption.candidates import SEARCH, num_candidates
from scheduler.plugins.default_preemption.plugin import NEVER, NOT_HELPFUL, TERMINATING, WAITING
from scheduler.plugins.default_preemption.victims import NO_VICTIMS_FOUND
from scheduler.testing import node, pod
from scheduler.testing.builders import obj
from scheduler.testing.harness import Harness

PREFIX = "no new claims to deallocate, preemption: "


def full(name, cpu="2"):
    return node(name).capacity(cpu=cpu, memory="8Gi", pods="110").obj()


def low(name, on="n1", priority=0, cpu="1", day=1):
    made = pod(name).requests(cpu=cpu).priority(priority).started(f"2026-01-{day:02d}T00:00:00Z").label("app", "low")
    return made.on(on) if on else made


def high(name="high", cpu="1", priority=10):
    return pod(name).requests(cpu=cpu).priority(priority)


def evicted(harness):
    return [victim.name for victim in harness.evicted]


def message(harness):
    return harness.last.status.message


def place_of(harness, name):
    return harness.core.queue.place_of(f"default/{name}")


@pytest.fixture
def harness():
    """One full node: two pods of one core."""
    with Harness() as made:
        made.put(full("n1"), low("a", day=1).obj(), low("b", day=2).obj())
        yield made


def test_least_important_pod_goes_and_the_preemptor_follows(harness):
    """The younger of two equal pods goes; the pod is nominated, woken by the victim's end, and placed."""
    assert harness.schedule(high().obj()) == ""
    assert evicted(harness) == ["b"]
    assert harness.pod("default/high").status.nominated_node_name == "n1"
    assert message(harness) == "0/1 nodes are available: 1 Insufficient cpu."
    harness.advance(2.0)
    assert harness.run() == 1
    assert harness.pod("default/high").node_name == "n1"


def test_what_the_victim_and_its_owner_are_told(harness):
    """A condition on the pod and an event about it."""
    harness.schedule(high().obj())
    (condition,) = harness.evicted[0].status.conditions
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    (event,) = [event for event in harness.events if event.reason == "Preempted"]
    uid = harness.pod("default/high").uid
    assert (event.kind, event.action, event.note) == ("Normal", "Preempting", f"Preempted by pod {uid} on node n1")
    assert (event.regarding.name, event.related.name) == ("b", "high")


@pytest.mark.parametrize(
    ("preemptor", "text"),
    [
        pytest.param(
            high(priority=0),
            f"0/1 nodes are available: 1 {NO_VICTIMS_FOUND}.",
            id="nobody is less important",
        ),
        pytest.param(high(cpu="3"), f"0/1 nodes are available: 1 {NOT_HELPFUL}.", id="the node is too small for it"),
        pytest.param(
            high().node_selector(disk="ssd"), f"0/1 nodes are available: 1 {NOT_HELPFUL}.", id="not for this node"
        ),
        pytest.param(high().preemption_policy("Never"), NEVER, id="it never preempts"),
    ],
)
def test_why_nobody_goes(harness, preemptor, text):
    """The message says what preemption found, behind what the filters said."""
    assert harness.schedule(preemptor.obj()) == ""
    assert evicted(harness) == []
    assert message(harness).split(". ", 1)[1] == PREFIX + text


def test_nomination_is_cleared_if_preemption_cannot_help(harness):
    """The pod is not kept waiting for a node that will not come free."""
    harness.schedule(high(cpu="3").nominated("n1").obj())
    assert harness.pod("default/high").status.nominated_node_name == ""


def test_pod_waits_while_its_victims_terminate(harness):
    """A pod that has its nomination does not evict more before the first victims are gone."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    going = low("b", day=2).terminating().set("status.conditions", [target]).resource_version(2).obj()
    harness.put(going)
    harness.schedule(high(cpu="2").nominated("n1").obj())
    assert message(harness).endswith(PREFIX + TERMINATING)
    assert harness.pod("default/high").status.nominated_node_name == "n1"
    assert evicted(harness) == []


def test_terminating_victims_are_not_deleted_again(harness):
    """They are counted as victims, but only the others are evicted."""
    harness.put(low("b", day=2).terminating().resource_version(2).obj())
    harness.schedule(high(cpu="2").obj())
    assert evicted(harness) == ["a"]


def test_budget_decides_who_goes(harness):
    """The protected pod is put back first, so the other one goes although it is older."""
    spec = {"selector": {"matchLabels": {"guarded": "yes"}}}
    harness.put(obj(PodDisruptionBudget, {"metadata": {"name": "b", "namespace": "default"}, "spec": spec}))
    harness.put(low("b", day=2).label("guarded", "yes").resource_version(2).obj())
    harness.schedule(high().obj())
    assert evicted(harness) == ["a"]


def test_lower_nominations_end():
    """A less important pod that waits for the node looks for another place at once."""
    with Harness() as harness:
        harness.put(full("n1", cpu="1"), low("a").obj())
        harness.put(low("waits", on="", priority=5).nominated("n1").obj())
        assert harness.core.queue.nominated_pods_for_node("n1")
        harness.schedule(high().obj())
        assert harness.pod("default/waits").status.nominated_node_name == ""
        assert [p.name for p in harness.core.queue.nominated_pods_for_node("n1")] == ["high"]


def test_place_of_a_nominated_pod_is_not_taken(harness):
    """A third pod of no higher priority does not get the room that was made."""
    harness.schedule(high().obj())
    assert harness.schedule(low("third", on="").obj()) == ""
    assert "Insufficient cpu" in message(harness)


def test_victims_of_the_whole_search_are_on_record(harness):
    """Explain reads it from the cycle state."""
    harness.put(full("n2", cpu="1"), low("c", on="n2", priority=5).obj())
    harness.schedule(high().obj())
    found = harness.last.state.read(SEARCH)
    assert {name: [v.name for v in each.pods] for name, each in found.candidates.items()} == {"n1": ["b"], "n2": ["c"]}
    assert (found.chosen, found.ties) == ("n1", [])


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [(10, 10), (100, 100), (900, 100), (1_500, 150), (5_000, 500)],
)
def test_number_of_candidates(nodes, wanted):
    """Ten per cent, at least a hundred, at most all."""
    assert num_candidates(DefaultPreemptionArgs(), nodes) == wanted


def test_search_ends_early():
    """Two candidates are enough if the profile says so; where it begins is left to chance."""
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 2}
    config = [{"name": "DefaultPreemption", "args": args}]
    with Harness(profile={"schedulerName": "default-scheduler", "pluginConfig": config}) as harness:
        for i in range(6):
            harness.put(full(f"n{i}", cpu="1"), low(f"p{i}", on=f"n{i}").obj())
        harness.schedule(high().obj())
        assert len(harness.last.state.read(SEARCH).candidates) == 2


# --- the gate --------------------------------------------------------------------------------------------------------


class Slow:
    """Holds the eviction back until told."""

    def __init__(self, harness):
        self.orders = []
        self._plugin = harness.core.profiles["default-scheduler"].plugins["DefaultPreemption"]
        self._plugin._execution._handle = self
        self._handle = self._plugin._handle

    def evict(self, order):
        self.orders.append(order)

    def __getattr__(self, name):
        return getattr(self._handle, name)


def test_gate_is_closed_until_the_victims_are_asked_to_go(harness):
    """An event that comes meanwhile does not lead to another attempt."""
    slow = Slow(harness)
    harness.schedule(high(cpu="2").obj())
    (order,) = slow.orders
    harness.remove(low("a").obj())
    assert place_of(harness, "high") == "gated"
    assert harness.core.queue.get("default/high").gating_plugin == "DefaultPreemption"
    order.on_last()
    harness.remove(low("b").obj())
    assert place_of(harness, "high") == "backoff"
    order.on_end(None, False)


def test_pod_whose_victims_are_gone_waits_for_those_of_others(harness):
    """Its place is taken by the nomination of a pod whose victim has yet to go: it does not evict more meanwhile."""
    slow = Slow(harness)
    harness.schedule(high("first").obj())
    slow.orders[0].on_last()
    harness.remove(low("b").obj())
    slow.orders[0].on_end(None, False)
    harness.schedule(high("second").obj())
    assert [victim.name for order in slow.orders for victim in order.victims] == ["b", "a"]
    harness.put(full("n2", cpu="1"), low("c", on="n2", priority=-5).obj())
    assert harness.try_pod(high("first").obj())
    assert message(harness).endswith(PREFIX + TERMINATING)
    assert len(slow.orders) == 2
    slow.orders[1].on_last()
    harness.remove(low("a").obj())
    slow.orders[1].on_end(None, False)
    harness.advance(5.0)
    harness.run()
    assert {harness.pod(f"default/{name}").node_name for name in ("first", "second")} == {"n1"}


def test_own_nomination_counts_before_the_api_server_shows_it(harness):
    """The status is written beside the evictions and may come later: until then the pod does not evict more, either."""
    slow = Slow(harness)
    harness._patch = lambda patch: None
    harness.schedule(high(cpu="2").obj())
    assert harness.pod("default/high").status.nominated_node_name == ""
    harness.put(full("n2", cpu="2"), low("c", on="n2", priority=-5).obj())
    slow.orders[0].on_last()
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    for name, day in (("a", 1), ("b", 2)):
        harness.put(low(name, day=day).terminating().set("status.conditions", [target]).resource_version(2).obj())
    slow.orders[0].on_end(None, False)
    assert harness.try_pod(high(cpu="2").obj())
    assert message(harness).endswith(PREFIX + TERMINATING)
    assert len(slow.orders) == 1
    harness.remove(low("a").obj(), low("b").obj())
    harness.advance(5.0)
    harness.run()
    assert harness.pod("default/high").node_name == "n1"


def test_gated_status(harness):
    """The gate names its reason."""
    Slow(harness)
    harness.schedule(high().obj())
    plugin = harness.core.profiles["default-scheduler"].plugins["DefaultPreemption"]
    assert plugin.pre_enqueue(harness.pod("default/high")) == Status.unresolvable(WAITING)


def test_failed_eviction_wakes_the_pod(harness):
    """It is tried again at once, and finds other victims or says why not."""
    slow = Slow(harness)
    harness.schedule(high().obj())
    slow.orders[0].on_end(RuntimeError("403"), False)
    assert place_of(harness, "high") == "active"


def test_without_the_feature_there_is_no_gate():
    """SchedulerAsyncPreemption off: no PreEnqueue verdict, no registration."""
    with Harness(features={"SchedulerAsyncPreemption": False}) as harness:
        harness.put(full("n1", cpu="1"), low("a").obj())
        plugin = harness.core.profiles["default-scheduler"].plugins["DefaultPreemption"]
        Slow(harness)
        harness.schedule(high().obj())
        assert plugin.pre_enqueue(harness.pod("default/high")) is None
        assert plugin.events() == ()


def test_registered_event(harness):
    """Deletions make the gate ask again, but are never a reason of their own to retry."""
    plugin = harness.core.profiles["default-scheduler"].plugins["DefaultPreemption"]
    (registration,) = plugin.events()
    assert (registration.event.resource, registration.event.action) == ("Pod", ActionType.DELETE)
    assert registration.hint(pod().obj(), None, None) is QueueingHint.SKIP


# --- victims on their way to the node --------------------------------------------------------------------------------


class HoldsLow(PermitPlugin):
    """Lets pods without priority wait."""

    name = "HoldsLow"

    def permit(self, state, pod, node_name):
        return (Status.wait() if pod.priority == 0 else None), 60.0


def test_pod_on_hold_is_sent_back_instead_of_deleted():
    """It was not started yet: nothing is deleted, and it is tried again later."""
    plugins = {"HoldsLow": lambda args, handle: HoldsLow()}
    profile = {"schedulerName": "default-scheduler", "plugins": {"permit": {"enabled": [{"name": "HoldsLow"}]}}}
    with Harness(profile=profile, plugins=plugins) as harness:
        harness.put(full("n1", cpu="1"))
        assert harness.schedule(low("waits", on="").obj()) == ""
        assert harness.core.cache.num_assumed == 1
        harness.schedule(high().obj())
        assert evicted(harness) == []
        assert harness.core.cache.num_assumed == 0
        assert place_of(harness, "waits") == "backoff"
        (event,) = [event for event in harness.events if event.reason == "Preempted"]
        assert event.note.endswith(" on node n1 (in kube-scheduler memory).")
        harness.advance(5.0)
        harness.run()
        assert harness.pod("default/high").node_name == "n1"


# --- plugins that fail in a dry run ----------------------------------------------------------------------------------


class Breaks(PreFilterPlugin, FilterPlugin):
    """Fits nobody, and cannot follow changes."""

    name = "Breaks"

    def pre_filter(self, state, pod, nodes):
        return None, None

    def filter(self, state, pod, node):
        return Status.unschedulable("full") if node.num_pods else None

    def remove_pod(self, state, pod, removed, node):
        return Status.error("lost track")


def test_errors_of_plugins_in_a_dry_run():
    """If nothing else is left, the error is what preemption says, and the nomination stays."""
    plugins = {"Breaks": lambda args, handle: Breaks()}
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "Breaks"}]}}}
    with Harness(profile=profile, plugins=plugins) as harness:
        for name in ("n1", "n2"):
            harness.put(full(name), low(f"on-{name}", on=name).obj())
        harness.schedule(high().nominated("n1").obj())
        text = 'preemption: running RemovePod on PreFilter plugin "Breaks": lost track'
        assert message(harness) == f"0/2 nodes are available: 2 full. {text}"
        assert harness.pod("default/high").status.nominated_node_name == "n1"
