"""The law of dry runs: what preemption finds out on a copy of one node is what a cluster without the victims would say."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.api import CycleState
from scheduler.config.load import default_configuration
from scheduler.framework.handle import EngineServices, ProfileHandle
from scheduler.framework.nominations import editable_copy
from scheduler.framework.profile import Workshop, build_profiles
from scheduler.framework.registry import Registry
from scheduler.framework.waiting import WaitingPods
from scheduler.model.meta import Namespace
from scheduler.model.policy import PodDisruptionBudget
from scheduler.plugins import IN_TREE
from scheduler.plugins.default_preemption.budgets import NamespaceBudgets
from scheduler.plugins.default_preemption.victims import DryRun
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.store import Stores
from scheduler.testing import FakeClock
from scheduler.testing import builders as b
from tests.properties.test_plugin_forms import NAMESPACES, _random_node, _random_pod

PROFILE = "default-scheduler"
CONFIGURATION = default_configuration()


class Engine:
    """The default profile over a snapshot."""

    def __init__(self, nodes, pods):
        cache, self.snapshot = Cache(), Snapshot()
        for each in nodes:
            cache.add_node(each)
        for each in pods:
            cache.add_pod(each)
        cache.update_snapshot(self.snapshot)
        stores, clock = Stores(), FakeClock()
        for name, labels in NAMESPACES.items():
            stores.of(Namespace).put(b.obj(Namespace, {"metadata": {"name": name, "labels": labels}}))
        self.services = services = EngineServices(
            clock=clock,
            random=random.Random(1),
            nodes=lambda: self.snapshot,
            lister=stores.of,
            is_placed=lambda uid: cache.get_pod(uid) is not None,
            bind=None,
            emit=None,
            call_soon_threadsafe=None,
            waiting=WaitingPods(clock),
            is_enabled=lambda feature: True,
        )
        profiles = build_profiles(
            CONFIGURATION,
            Workshop(registry=Registry(IN_TREE, ()), waiting=services.waiting, perf_counter=clock.now),
            lambda profile, plugin: ProfileHandle(profile, services, plugin),
        )
        self.framework = profiles[PROFILE]
        services.frameworks = profiles
        self.state = CycleState()

    def prepare(self, pod):
        """Run PreFilter; says whether the search would go on."""
        outcome = self.framework.run_pre_filter(self.state, pod, self.snapshot)
        return outcome.status is None

    def judge(self, pod, node_name):
        return self.framework.run_filter_on_node(self.state, pod, self.snapshot.get(node_name))


def cluster(rng):
    nodes = [_random_node(rng, f"n{i}") for i in range(rng.randint(1, 6))]
    pods = [_random_pod(rng, f"run-{i}").on(rng.choice(nodes).name).obj() for i in range(rng.randint(1, 14))]
    return nodes, pods


@pytest.mark.parametrize("puts_back", [False, True], ids=["victims gone", "some put back"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_dry_run_equals_a_cluster_without_the_victims(puts_back, seed):
    """For random clusters, pods and victims: the same status, by the same plugin, with the same reasons."""
    rng = random.Random(seed)
    nodes, pods = cluster(rng)
    target = rng.choice(pods).node_name
    here = [p for p in pods if p.node_name == target]
    gone = rng.sample(here, rng.randint(1, len(here)))
    new = _random_pod(rng, "new").obj()
    engine = Engine(nodes, pods)
    assume(engine.prepare(new))
    state, node = engine.state.clone(), editable_copy(engine.snapshot.get(target))
    for victim in gone:
        node.remove_pod(victim)
        assert engine.framework.run_pre_filter_remove_pod(state, new, victim, node) is None
    if puts_back:
        for survivor in gone[: len(gone) // 2 + 1]:
            node.add_pod(survivor)
            assert engine.framework.run_pre_filter_add_pod(state, new, survivor, node) is None
        gone = gone[len(gone) // 2 + 1 :]
    found = engine.framework.run_filter_on_node(state, new, node)
    without = Engine(nodes, [p for p in pods if p not in gone])
    assume(without.prepare(new))
    assert found == without.judge(new, target)
    unchanged = Engine(nodes, pods)
    unchanged.prepare(new)
    assert engine.judge(new, target) == unchanged.judge(new, target), "the dry run leaves no trace"


@given(seed=st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_the_short_cut_of_a_dry_run_finds_the_victims_that_the_steps_find(seed):
    """Where resources alone decide the answer comes at once; victims, their order and the reasons are the same."""
    rng = random.Random(seed)
    nodes, _ = cluster(rng)
    pods = [
        _sized(rng, _random_pod(rng, f"run-{i}") if rng.random() < 0.1 else b.pod(f"run-{i}"))
        .priority(rng.randrange(3))
        .on(rng.choice(nodes).name)
        .obj()
        for i in range(rng.randint(1, 14))
    ]
    new = _sized(rng, _random_pod(rng, "new") if rng.random() < 0.3 else b.pod("new")).priority(2).obj()
    engine = Engine(nodes, pods)
    assume(engine.prepare(new))
    budgets = {"default": _budgets(rng)}
    handle = ProfileHandle(PROFILE, engine.services, "DefaultPreemption")
    spare = handle.sparing(engine.state, new)
    assume(spare is not None)
    for info in engine.snapshot.infos:
        short = DryRun(handle, engine.state, new, budgets, 0.0, spare).on(info)
        assert short == DryRun(handle, engine.state, new, budgets, 0.0).on(info)


def _sized(rng, pod):
    return pod.requests(cpu=f"{rng.choice((0, 100, 700, 1500))}m", memory=f"{rng.choice((0, 100, 1000))}Mi")


def _budgets(rng):
    manifest = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": rng.randrange(3)},
    }
    return NamespaceBudgets([b.obj(PodDisruptionBudget, manifest)])
