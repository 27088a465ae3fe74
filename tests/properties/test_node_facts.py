"""Verdicts and scores from kept columns are those of the per-node form, whatever happened to the nodes in between."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import CycleState, NodeFacts
from scheduler.config.args import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy
from scheduler.plugins.node_resources import blocks
from scheduler.plugins.node_resources.balanced import BalancedAllocation
from scheduler.plugins.node_resources.bounded import MAX_EXACT_CAPACITY
from scheduler.plugins.node_resources.fit import NodeResourcesFit
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing import builders as b

CAPACITIES = (1, 2, 3, 7, 100, 1_000, 3_999, 32_000, 2**30, 2**37 + 1, MAX_EXACT_CAPACITY)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few nodes fill several blocks."""
    monkeypatch.setattr(blocks, "_BLOCK", 3)


def _node(rng: random.Random, name: str, *, is_usual: bool):
    cpu, memory = rng.choice(CAPACITIES), rng.choice(CAPACITIES)
    if not is_usual and rng.random() < 0.2:
        cpu, memory = rng.choice([(0, 5), (5, 0), (0, 0), (MAX_EXACT_CAPACITY + 1, 5)])
    return b.node(name).capacity(cpu=f"{cpu}m", memory=str(memory), pods=rng.choice(("1", "1000"))).obj()


def _amount(rng: random.Random) -> int:
    return rng.choice((0, 1, 2, 50, 99, rng.randrange(1, 1_000), rng.randrange(1, 2**37), 2**45, 2**53 + 1, 2**60))


def _pod(rng: random.Random, name: str):
    return b.pod(name).requests(cpu=f"{min(_amount(rng), 2**50)}m", memory=str(_amount(rng)))


@given(seed=st.integers(0, 2**32), is_usual=st.booleans())
@settings(max_examples=150, deadline=None)
def test_kept_columns_judge_and_score_as_single_nodes_do(seed: int, is_usual: bool) -> None:
    """Nodes come, go and change, pods come and go; both plugins are asked in between, about all nodes and about some."""
    rng = random.Random(seed)
    weights = tuple(ResourceSpec(name, rng.choice((1, 1, 3))) for name in ("cpu", "memory"))
    fit = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("LeastAllocated", weights)))
    plugins = (fit, BalancedAllocation(("cpu", "memory")))
    cache, snapshot, running = Cache(), Snapshot(), []
    for i in range(rng.randint(1, 8)):
        cache.add_node(_node(rng, f"n{i}", is_usual=is_usual))
    for number in range(12):
        names = [info.name for info in cache.dump().nodes.values() if info.has_node]
        kind = rng.random()
        if kind < 0.6:
            running.append(_pod(rng, f"p{number}").on(rng.choice(names)).obj())
            cache.add_pod(running[-1])
        elif kind < 0.7 and running:
            cache.remove_pod(running.pop(rng.randrange(len(running))))
        elif kind < 0.8 and len(names) > 1:
            cache.remove_node(rng.choice(names))
        else:
            cache.add_node(_node(rng, f"n{rng.randrange(10)}", is_usual=is_usual))
        cache.update_snapshot(snapshot)
        if rng.random() < 0.7:
            _agree(rng, plugins, _pod(rng, "new").obj(), snapshot)


def _agree(rng: random.Random, plugins, pod, snapshot: Snapshot) -> None:
    rows = [row for row in range(len(snapshot)) if rng.random() < 0.6]
    fit, balanced = plugins
    for view in (snapshot, snapshot.take(rows)):
        for plugin in (fit, balanced):
            state = CycleState()
            plugin.pre_score(state, pod, view)
            single = [plugin.score(state, pod, info) for info in view.infos]
            assert plugin.score_all(state, pod, view).tolist() == single, plugin.name
        state = CycleState()
        fit.pre_filter(state, pod, view)
        fitting = [fit.filter(state, pod, info) is None for info in view.infos]
        assert fit.filter_all(state, pod, view).ok.tolist() == fitting


def test_a_definition_that_raises_is_asked_again() -> None:
    """The trouble belongs to the one who asks; what was missed is made up for at the next use."""
    cache, snapshot, failing = Cache(), Snapshot(), [True]
    for name in "ab":
        cache.add_node(b.node(name).capacity(cpu="1").obj())
    cache.update_snapshot(snapshot)

    def pods(node):
        if failing[0]:
            raise RuntimeError("broken")
        return [node.num_pods]

    definition = NodeFacts(1, pods)
    with pytest.raises(RuntimeError):
        snapshot.facts(definition)
    failing[0] = False
    assert snapshot.facts(definition).tolist() == [[0.0, 0.0]]
    cache.add_pod(b.pod("p").on("b").obj())
    cache.update_snapshot(snapshot)
    assert snapshot.facts(definition)[0, snapshot.row("b")] == 1.0
