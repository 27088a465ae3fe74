"""PodTopologySpread in dry runs: pods that come and go in a clone of the state."""

import random

import pytest

from scheduler.api import CycleState
from scheduler.plugins.topology_spread import NAME
from scheduler.plugins.topology_spread.filtering import STATE
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing import node, pod

FOO = {"foo": ""}
NODES = [node(f"n{i}").label("zone", f"z{i % 2}").label("node", f"n{i}") for i in range(4)]
WAITING = pod("p").labels(FOO).spread("zone", FOO, max_skew=1)


def running(i, name, labels=FOO):
    return pod(f"r{i}").labels(labels).on(name)


def cluster(nodes, pods):
    cache, snapshot = Cache(), Snapshot()
    for made in nodes:
        cache.add_node(made.obj())
    for made in pods:
        cache.add_pod(made.obj())
    cache.update_snapshot(snapshot)
    return snapshot


def prepared(plugin, waiting, snapshot):
    state = CycleState()
    plugin.pre_filter(state, waiting, snapshot)
    return state


def verdicts(plugin, state, waiting, snapshot):
    """Return node name -> status, asked for in both forms."""
    single = [plugin.filter(state, waiting, info) for info in snapshot.infos]
    assert plugin.filter_all(state, waiting, snapshot).ok.tolist() == [status is None for status in single]
    return dict(zip(snapshot.names, single, strict=True))


@pytest.mark.parametrize("seed", range(150))
def test_a_changed_clone_equals_a_changed_cluster(bench, seed):
    """Whatever came and went, also in several domains; the original state is as it was."""
    rng = random.Random(seed)
    nodes = [
        node(f"n{i}").labels(
            {k: v for k, v in (("zone", f"z{rng.randint(0, 2)}"), ("node", f"n{i}")) if rng.random() < 0.9}
        )
        for i in range(rng.randint(1, 6))
    ]
    nodes = [made.taint("gpu") if rng.random() < 0.2 else made for made in nodes]
    names = [made.obj().name for made in nodes]
    pods = {i: running(i, rng.choice(names), rng.choice((FOO, {}))) for i in range(rng.randint(0, 12))}
    waiting = pod("p").labels(rng.choice((FOO, {})))
    for key in rng.sample(("zone", "node"), rng.randint(1, 2)):
        fields = {"minDomains": rng.randint(1, 4)} if rng.random() < 0.3 else {}
        fields |= {"nodeTaintsPolicy": "Honor"} if rng.random() < 0.5 else {}
        waiting = waiting.spread(key, FOO, max_skew=rng.randint(1, 2), **fields)
    if rng.random() < 0.3:
        waiting = waiting.node_selector(zone="z0")
    waiting = waiting.obj()
    before = cluster(nodes, pods.values())
    plugin = bench.make(NAME)
    state = prepared(plugin, waiting, before)
    first = verdicts(plugin, state, waiting, before)

    trial = state.clone()
    for number in range(100, 100 + rng.randint(1, 6)):
        if pods and rng.random() < 0.6:
            gone = pods.pop(rng.choice(sorted(pods))).obj()
            plugin.remove_pod(trial, waiting, gone, before.get(gone.node_name))
        else:
            pods[number] = running(number, rng.choice(names), rng.choice((FOO, {})))
            come = pods[number].obj()
            plugin.add_pod(trial, waiting, come, before.get(come.node_name))
        if rng.random() < 0.3:
            verdicts(plugin, trial, waiting, before)  # looking changes nothing
        trial = trial.clone()

    after = cluster(nodes, pods.values())
    again = prepared(plugin, waiting, after)
    assert verdicts(plugin, trial, waiting, before) == verdicts(plugin, again, waiting, after)
    assert verdicts(plugin, state, waiting, before) == first


def test_evicting_the_crowd_makes_room(bench):
    """The usual question of preemption."""
    crowd = [running(i, "n0") for i in range(2)]
    snapshot = cluster(NODES, crowd)
    plugin, waiting = bench.make(NAME), WAITING.obj()
    state = prepared(plugin, waiting, snapshot)
    assert plugin.filter(state, waiting, snapshot.get("n0")) is not None

    for made in crowd:
        plugin.remove_pod(state, waiting, made.obj(), snapshot.get("n0"))
    assert plugin.filter(state, waiting, snapshot.get("n0")) is None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(running(9, "n0").in_ns("other"), id="another namespace"),
        pytest.param(running(9, "n0", {"bar": ""}), id="not selected"),
    ],
)
def test_pods_that_do_not_matter(bench, other):
    """Nothing is noted for them."""
    snapshot = cluster(NODES, [])
    plugin, waiting = bench.make(NAME), WAITING.obj()
    state = prepared(plugin, waiting, snapshot)
    plugin.add_pod(state, waiting, other.obj(), snapshot.get("n0"))

    assert [rule.changed for rule in state.read(STATE)._rules] == [{}]


def test_terminating_pods_count_in_dry_runs(bench):
    """parity: the first count leaves terminating pods out, yet evicting one counts down."""
    dying = running(0, "n0").terminating()
    snapshot = cluster(NODES, [dying, running(1, "n0")])
    plugin, waiting = bench.make(NAME), WAITING.obj()
    state = prepared(plugin, waiting, snapshot)
    assert plugin.filter(state, waiting, snapshot.get("n0")) is not None

    plugin.remove_pod(state, waiting, dying.obj(), snapshot.get("n0"))
    assert plugin.filter(state, waiting, snapshot.get("n0")) is None
