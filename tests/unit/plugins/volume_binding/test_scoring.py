"""VolumeBinding: scores by storage, with the gate StorageCapacityScoring; facts of upstream's scorer_test.go."""

import numpy as np
import pytest

from scheduler.api import Code, CycleState
from scheduler.config.args import UtilizationShapePoint, VolumeBindingArgs
from scheduler.plugins.volume_binding.decisions import PodVolumes, Provision, StaticBinding
from scheduler.plugins.volume_binding.plugin import NAME
from scheduler.plugins.volume_binding.scoring import score_volumes, shape_of
from scheduler.testing import node, pod

ZONE = "topology.kubernetes.io/zone"
FALLING = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
SHAPE = shape_of(FALLING)


@pytest.mark.parametrize(
    ("pairs", "score"),
    [
        pytest.param([], 0, id="nothing to judge"),
        pytest.param([("k", "0", "100")], 100, id="empty"),
        pytest.param([("k", "100", "100")], 0, id="full"),
        pytest.param([("k", "33", "100")], 67, id="a third"),
        pytest.param([("k", "150", "100")], 0, id="more than full"),
        pytest.param([("k", "1", "0")], 0, id="no capacity counts as full"),
        pytest.param([("k", "10", "100"), ("k", "30", "100")], 80, id="volumes of a class together"),
        pytest.param([("k", "10", "100"), ("l", "31", "100")], 80, id="mean of classes, half goes up"),
    ],
)
def test_bindings(storage, pairs, score):
    """The share of the chosen volumes that the claims use, by class."""
    bindings = [
        StaticBinding(storage.claim(f"c{i}", requested), storage.volume(f"v{i}", capacity, cls=cls))
        for i, (cls, requested, capacity) in enumerate(pairs)
    ]
    assert score_volumes(SHAPE, PodVolumes(tuple(bindings))) == score


@pytest.mark.parametrize(
    ("plans", "score"),
    [
        pytest.param([("k", "10", "100")], 90, id="one"),
        pytest.param([("k", "10", "100"), ("k", "20", "100")], 70, id="two from one place"),
        pytest.param([("k", "10", None)], 0, id="no capacity published"),
        pytest.param([("k", "10", None), ("l", "20", "100")], 80, id="only those that publish count"),
    ],
)
def test_provisions(storage, plans, score):
    """The share of the places' capacity that new volumes would take, by class."""
    provisions = [
        Provision(
            storage.claim(f"c{i}", requested, cls=cls),
            None if capacity is None else storage.capacity(f"x{i}", capacity, cls=cls),
        )
        for i, (cls, requested, capacity) in enumerate(plans)
    ]
    assert score_volumes(SHAPE, PodVolumes(provisions=tuple(provisions))) == score


def test_scores_of_nodes(bench, storage):
    """Each node is scored by its own decisions; both forms agree."""
    bench.handle.put(
        storage.storage_class(),
        storage.claim("c", "10"),
        storage.driver(),
        storage.capacity("a", "100", zone="a"),
        storage.capacity("b", "20", zone="b"),
    )
    snapshot = bench.cluster([node("n-a").label(ZONE, "a"), node("n-b").label(ZONE, "b"), node("n-c")])
    plugin, state, waiting = bench.make(NAME, VolumeBindingArgs(shape=FALLING)), CycleState(), pod("p").claim("c").obj()
    plugin.pre_filter(state, waiting, snapshot)
    plugin.filter_all(state, waiting, snapshot)
    assert plugin.pre_score(state, waiting, snapshot) is None
    scores = dict(zip(snapshot.names, plugin.score_all(state, waiting, snapshot).tolist(), strict=True))
    assert scores == {"n-a": 90, "n-b": 50, "n-c": 0}
    assert list(scores.values()) == [plugin.score(state, waiting, info) for info in snapshot.infos]


def test_without_the_gate(bench):
    """Without a shape nothing is scored; with one, a pod without claims gets 0 everywhere."""
    snapshot, plain, state = bench.cluster([node("n")]), pod("p").obj(), CycleState()
    assert bench.make(NAME).pre_score(state, plain, snapshot).code is Code.SKIP
    scores = bench.make(NAME, VolumeBindingArgs(shape=FALLING)).score_all(state, plain, snapshot)
    assert scores.tolist() == [0]
    assert scores.dtype == np.int64
