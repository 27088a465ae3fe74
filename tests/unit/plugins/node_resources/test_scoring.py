"""The three strategies of NodeResourcesFit: facts of upstream's *_allocated_test.go and requested_to_capacity_ratio_test.go."""

import pytest

from scheduler.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from scheduler.config.args import RequestedToCapacityRatio as Ratio
from scheduler.plugins.node_resources.fit import NAME
from scheduler.plugins.node_resources.scoring import RequestedToCapacityRatio, strategy_for
from scheduler.testing import node, pod

GPU, FOO, BAR = "abc.com/xyz", "intel.com/foo", "intel.com/bar"
EMPTY = pod("p").set("spec.containers", [])


def args(strategy, resources=(("cpu", 1), ("memory", 1)), shape=None):
    points = None if shape is None else Ratio(tuple(UtilizationShapePoint(u, s) for u, s in shape))
    specs = tuple(ResourceSpec(name, weight) for name, weight in resources)
    return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, specs, points))


def asking(*containers):
    """A pod of containers that ask for (cpu, memory) or for a mapping."""
    made = EMPTY
    for wanted in containers:
        made = made.container(
            dict(zip(("cpu", "memory"), wanted, strict=True)) if isinstance(wanted, tuple) else wanted
        )
    return made


def offering(*capacities):
    return [node(f"n{i}").capacity({"cpu": c, "memory": m, **dict(more)}) for i, (c, m, *more) in enumerate(capacities)]


POD = asking(("1000", "2000"), ("2000", "3000"))
WITH_GPU = (("cpu", 1), ("memory", 1), (GPU, 1))
GPU_HEAVY = ((GPU, 2), ("cpu", 1), ("memory", 1))


@pytest.mark.parametrize(
    ("resources", "waiting", "nodes", "running", "least", "most"),
    [
        pytest.param(None, EMPTY, [("4000", "10000")] * 2, [], [100, 100], [0, 0], id="nothing at all"),
        pytest.param(
            None, POD, [("4000", "10000"), ("6000", "10000")], [], [37, 50], [62, 50], id="nodes of two sizes"
        ),
        pytest.param(
            None,
            EMPTY,
            [("10000", "20000")] * 2,
            [(0, ("3000", "0")), (0, ("3000", "0")), (1, ("3000", "0")), (1, ("3000", "5000"))],
            [70, 57],
            [30, 42],
            id="pods run already",
        ),
        pytest.param(
            None,
            POD,
            [("10000", "20000")] * 2,
            [(0, ("3000", "0")), (1, ("3000", "5000"))],
            [57, 45],
            [42, 55],
            id="pods run already and one waits",
        ),
        pytest.param(
            None,
            POD,
            [("10000", "20000"), ("10000", "50000")],
            [(0, ("3000", "0")), (1, ("3000", "5000"))],
            [57, 60],
            [42, 40],
            id="pods run on nodes of two sizes",
        ),
        pytest.param(
            None,
            asking(("3000", "0")),
            [("4000", "10000")] * 2,
            [(0, ("3000", "0")), (1, ("3000", "5000"))],
            [50, 25],
            [50, 75],
            id="more than there is",
        ),
        pytest.param(
            None,
            asking(("2000", "4000"), ("3000", "5000")),
            [("5000", "10000"), ("10000", "9000")],
            [],
            [5, 25],
            [95, 75],
            id="full",
        ),
        pytest.param(
            None, EMPTY, [("0", "0")] * 2, [(0, ("3000", "0"))], [0, 0], [0, 0], id="nodes that offer nothing"
        ),
        pytest.param(
            (("memory", 2), ("cpu", 1)),
            POD,
            [("4000", "10000"), ("6000", "10000")],
            [],
            [41, 50],
            [58, 50],
            id="weights",
        ),
        pytest.param(
            WITH_GPU,
            POD,
            [("6000", "10000"), ("6000", "10000", (GPU, 4))],
            [],
            [50, 50],
            [50, 50],
            id="scalar not requested",
        ),
        pytest.param(
            WITH_GPU,
            asking({"cpu": "3000", "memory": "5000", GPU: 2}),
            [("6000", "10000", (GPU, 4)), ("6000", "10000", (GPU, 10))],
            [],
            [50, 60],
            [50, 40],
            id="scalar requested",
        ),
        pytest.param(
            GPU_HEAVY,
            asking({"cpu": "3000", "memory": "4000", GPU: 1}),
            [("6000", "10000"), ("6000", "10000", (GPU, 4))],
            [],
            [55, 65],
            [45, 35],
            id="a node without the scalar is scored by the rest",
        ),
        pytest.param(
            (("ephemeral-storage", 1),),
            EMPTY,
            [("1", "1", ("ephemeral-storage", 8))],
            [],
            [100],
            [0],
            id="native, not requested",
        ),
        pytest.param(
            None,
            asking({}),
            [("250m", "1000Mi")] * 2,
            [(0, {}), (0, {})],
            [20, 70],
            [80, 30],
            id="defaults for silent containers",
        ),
        pytest.param(
            None,
            pod("p").pod_requests(cpu="200m", memory="800Mi"),
            [("250m", "1000Mi")],
            [],
            [70],
            [30],
            id="pod-level requests do not count in this score",
        ),
    ],
)
def test_least_and_most_allocated(bench, resources, waiting, nodes, running, least, most):
    """The emptier and the fuller the better; per resource in whole per cent, then the weighted mean."""
    bench.cluster(
        offering(*nodes),
        [(EMPTY.container(w) if isinstance(w, dict) else asking(w)).on(f"n{i}") for i, w in running],
    )
    given = {} if resources is None else {"resources": resources}
    for pre_score in (True, False):
        options = {"pre_score": pre_score}
        assert bench.scores(bench.make(NAME, args(LEAST_ALLOCATED, **given)), waiting.obj(), **options) == least
        assert bench.scores(bench.make(NAME, args(MOST_ALLOCATED, **given)), waiting.obj(), **options) == most


LESS_IS_BETTER = ((0, 10), (100, 0))
BIN_PACKING = ((0, 0), (100, 1))
FOO_FIRST, BAR_FIRST = ("4000", "1", (FOO, 8), (BAR, 4)), ("4000", "1", (FOO, 4), (BAR, 8))
BOTH = ((FOO, 3), (BAR, 5))


@pytest.mark.parametrize(
    ("resources", "shape", "waiting", "nodes", "running", "scores"),
    [
        pytest.param(None, LESS_IS_BETTER, EMPTY, [("4000", "10000")] * 2, [], [100, 100], id="empty nodes"),
        pytest.param(
            None, LESS_IS_BETTER, POD, [("4000", "10000"), ("6000", "10000")], [], [38, 50], id="37.5 is rounded up"
        ),
        pytest.param(
            None,
            LESS_IS_BETTER,
            EMPTY,
            [("4000", "10000"), ("6000", "10000")],
            [(0, ("3000", "5000")), (1, ("3000", "5000"))],
            [38, 50],
            id="pods run already",
        ),
        pytest.param(
            ((FOO, 1),), BIN_PACKING, EMPTY, [FOO_FIRST, BAR_FIRST], [], [0, 0], id="one extended: not requested"
        ),
        pytest.param(((FOO, 1),), BIN_PACKING, asking({FOO: 2}), [FOO_FIRST, BAR_FIRST], [], [2, 5], id="one extended"),
        pytest.param(
            ((FOO, 1),),
            BIN_PACKING,
            asking({FOO: 2}),
            [FOO_FIRST, BAR_FIRST],
            [(1, {FOO: 2})],
            [2, 10],
            id="one extended: in use",
        ),
        pytest.param(
            ((FOO, 1),), BIN_PACKING, asking({FOO: 4}), [FOO_FIRST, BAR_FIRST], [], [5, 10], id="one extended: more"
        ),
        pytest.param(BOTH, BIN_PACKING, EMPTY, [FOO_FIRST, BAR_FIRST], [], [0, 0], id="two extended: not requested"),
        pytest.param(
            BOTH, BIN_PACKING, asking({FOO: 2, BAR: 2}), [FOO_FIRST, BAR_FIRST], [], [4, 3], id="two extended"
        ),
        pytest.param(
            BOTH,
            BIN_PACKING,
            asking({FOO: 2, BAR: 2}),
            [FOO_FIRST, BAR_FIRST],
            [(1, {FOO: 4, BAR: 2})],
            [4, 7],
            id="two extended: in use beyond what there is",
        ),
        pytest.param(
            BOTH, BIN_PACKING, asking({FOO: 4, BAR: 2}), [FOO_FIRST, BAR_FIRST], [], [5, 5], id="two extended: more"
        ),
        pytest.param(
            None,
            ((0, 0), (100, 10)),
            asking(("3", "0")),
            [("4", "10"), ("2", "10")],
            [],
            [75, 100],
            id="0 leaves a resource out",
        ),
        pytest.param(None, LESS_IS_BETTER, EMPTY, [("0", "0")], [], [0], id="a node that offers nothing"),
    ],
)
def test_requested_to_capacity_ratio(bench, resources, shape, waiting, nodes, running, scores):
    """Scores above 0 are averaged by weight and rounded to the nearest."""
    bench.cluster(
        offering(*nodes),
        [(EMPTY.container(w) if isinstance(w, dict) else asking(w)).on(f"n{i}") for i, w in running],
    )
    given = {} if resources is None else {"resources": resources}
    plugin = bench.make(NAME, args(REQUESTED_TO_CAPACITY_RATIO, shape=shape, **given))
    assert bench.scores(plugin, waiting.obj()) == scores


@pytest.mark.parametrize(
    ("points", "values"),
    [
        pytest.param(
            ((10, 1), (90, 9)),
            {-10: 1, 0: 1, 9: 1, 10: 1, 15: 1, 19: 1, 20: 2, 89: 8, 90: 9, 99: 9, 100: 9},
            id="rising",
        ),
        pytest.param(((0, 2), (40, 10), (100, 0)), {0: 2, 20: 6, 30: 8, 40: 10, 70: 5, 100: 0}, id="up and down"),
        pytest.param(((0, 2), (40, 2), (100, 2)), {0: 2, 20: 2, 40: 2, 70: 2, 100: 2}, id="level"),
        pytest.param(
            ((0, 10), (100, 0)), {1: 10, 9: 10, 10: 9, 99: 1, 100: 0}, id="a falling slope truncates toward its start"
        ),
    ],
)
def test_broken_line(points, values):
    """Level outside, straight between, integers as Go divides them."""
    line = RequestedToCapacityRatio(points)
    assert {utilization: line.at(utilization) for utilization in values} == values


def test_unknown_strategy():
    """Validation lets none through; the error says what it was."""
    with pytest.raises(ValueError, match="scoring strategy Roulette is not supported"):
        strategy_for(ScoringStrategy("Roulette"))


@pytest.mark.parametrize("strategy", [LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO])
@pytest.mark.parametrize(
    ("capacity", "running", "waiting"),
    [
        pytest.param("1Gi", ["8Ei"], "1", id="an absurd pod runs"),
        pytest.param("1Gi", ["7Ei", "7Ei"], "1", id="the sum is beyond int64"),
        pytest.param("1Gi", ["8Ei", "8Ei"], "8Ei", id="an absurd pod waits beside absurd ones"),
        pytest.param("8Ei", ["7Ei"], "7Ei", id="an absurd node"),
        pytest.param("8Ei", [], "1", id="an absurd empty node"),
        pytest.param("-5", ["1"], "1", id="a negative node"),
    ],
)
def test_absurd_amounts_stay_in_range(bench, strategy, capacity, running, waiting):
    """Scores lie in 0..100 and both forms agree, so a hostile pod cannot make the scores of others invalid."""
    bench.cluster(
        [node("n").capacity(cpu="4", memory=capacity), node("m").capacity(cpu="4", memory="1Gi")],
        [pod("r").requests(memory=amount).on("n") for amount in running],
    )
    plugin = bench.make(NAME, args(strategy, shape=LESS_IS_BETTER))
    for wanted in (pod("p").requests(memory=waiting), pod("p").requests(cpu="1", memory="0"), pod("p")):
        assert all(0 <= score <= 100 for score in bench.scores(plugin, wanted.obj()))
