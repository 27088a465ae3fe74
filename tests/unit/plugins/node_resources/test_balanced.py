"""NodeResourcesBalancedAllocation: facts of upstream's balanced_allocation_test.go."""

import pytest

from scheduler.config.args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from scheduler.plugins.node_resources.balanced import NAME
from scheduler.testing import node, pod

GPU = "nvidia.com/gpu"
EMPTY = pod("p").set("spec.containers", [])


def asking(*containers):
    made = EMPTY
    for wanted in containers:
        names = ("cpu", "memory", GPU)
        made = made.container({name: amount for name, amount in zip(names, wanted, strict=False) if amount is not None})
    return made


def offering(*capacities):
    """Nodes of (milli-CPU, bytes) and perhaps GPUs."""
    return [
        node(f"n{i}").capacity({"cpu": f"{c}m", "memory": m, **({GPU: more[0]} if more else {})})
        for i, (c, m, *more) in enumerate(capacities)
    ]


def args(*names):
    return NodeResourcesBalancedAllocationArgs(tuple(ResourceSpec(name, 1) for name in names))


POD = asking(("1000m", "2000"), ("2000m", "3000"))
CPU_ONLY, BOTH = [("1000m", None), ("2000m", None)], [("1000m", "2000"), ("2000m", "3000")]


@pytest.mark.parametrize(
    ("names", "waiting", "nodes", "running", "scores"),
    [
        pytest.param((), EMPTY, [(4000, 10000)] * 2, [], "Skip", id="a pod that asks for nothing is not scored"),
        pytest.param((), asking(("0", "0")), [(4000, 10000)], [], "Skip", id="asking for 0 is asking for nothing"),
        pytest.param((), POD, [(4000, 10000), (6000, 10000)], [], [68, 75], id="nodes of two sizes"),
        pytest.param((), POD, [(10000, 20000)] * 2, [CPU_ONLY, BOTH], [73, 74], id="pods run already"),
        pytest.param((), POD, [(10000, 20000), (10000, 50000)], [CPU_ONLY, BOTH], [73, 70], id="on nodes of two sizes"),
        pytest.param(
            (), asking((None, "2000"), (None, "3000")), [(3000, 5000)] * 2, [CPU_ONLY], [100, 50], id="best and worst"
        ),
        pytest.param((), asking(*CPU_ONLY), [(6000, 10000)] * 2, [CPU_ONLY, BOTH], [62, 62], id="up to capacity"),
        pytest.param(
            ("cpu", "memory", GPU),
            asking(("0", "0", 1)),
            [(3500, 40000, 8)] * 2,
            [[("1000m", "2000"), ("2000m", "3000", 3)], BOTH],
            [75, 76],
            id="a requested scalar counts",
        ),
        pytest.param(
            ("cpu", "memory", GPU), POD, [(3500, 40000, 8), (3500, 40000)], [], [56, 56], id="another scalar does not"
        ),
        pytest.param(("cpu",), POD, [(4000, 10000)], [], [75], id="one resource is always balanced"),
        pytest.param((), POD, [(0, 10000), (0, 0)], [], [75, 75], id="nodes that lack resources"),
        pytest.param((), POD, [(1000, 1000)], [BOTH], [75], id="more than full is full"),
        pytest.param(
            ("cpu", "memory", "ephemeral-storage"), POD, [(4000, 10000)], [], [68], id="a resource that no node offers"
        ),
    ],
)
def test_score(bench, names, waiting, nodes, running, scores):
    """75 for no change, up to 100 for a better balance, down to 50 for a worse one."""
    bench.cluster(offering(*nodes), [asking(*containers).on(f"n{i}") for i, containers in enumerate(running)])
    plugin = bench.make(NAME, args(*names) if names else None)
    assert bench.scores(plugin, waiting.obj()) == scores
    without = bench.scores(plugin, waiting.obj(), pre_score=False)
    assert without == ([0] * len(nodes) if scores == "Skip" else scores)


def test_requests_are_those_that_count_on_a_node(bench):
    """No defaults for silent containers; pod-level requests and overhead count."""
    bench.cluster(offering((4000, 10000)))
    plugin = bench.make(NAME)
    assert bench.scores(plugin, pod("p").obj()) == "Skip"
    assert bench.scores(plugin, pod("p").pod_requests(cpu="3", memory="5000").obj()) == [68]
    assert bench.scores(plugin, pod("p").overhead(cpu="3", memory="5000").obj()) == [68]


@pytest.mark.parametrize(
    ("capacity", "running", "waiting"),
    [
        pytest.param("1Gi", ["8Ei"], "1", id="an absurd pod runs"),
        pytest.param("1Gi", ["7Ei", "7Ei"], "8Ei", id="the sum is beyond int64"),
        pytest.param("8Ei", ["7Ei"], "7Ei", id="an absurd node"),
        pytest.param("-5", [], "1", id="a negative node"),
    ],
)
def test_absurd_amounts_stay_in_range(bench, capacity, running, waiting):
    """Scores lie in 50..100 and both forms agree."""
    bench.cluster(
        [node("n").capacity(cpu="4", memory=capacity), node("m").capacity(cpu="4", memory="1Gi")],
        [pod("r").requests(memory=amount).on("n") for amount in running],
    )
    for wanted in (pod("p").requests(memory=waiting), pod("p").requests(cpu="1")):
        assert all(50 <= score <= 100 for score in bench.scores(bench.make(NAME), wanted.obj()))


def test_events(bench):
    """Scores reject nobody."""
    assert not bench.make(NAME).events()
