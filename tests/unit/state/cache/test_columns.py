"""Columns: bounds, garbage and extremes that ordinary clusters do not reach."""

import pytest

from scheduler.state.cache import columns
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.columns import CodedStore
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node, pod

INT64_MAX = (1 << 63) - 1


def test_coded_store_renews_a_dictionary_of_garbage():
    """Values that no row has are dropped; rows keep theirs."""
    store = CodedStore(["keep", None, "x"])
    before = store.column
    for i in range(10 * columns._SLACK):
        store.write(2, f"v{i}")

    column = store.column
    assert len(column.values) <= 2 * 3 + columns._SLACK
    assert ["keep", None, f"v{10 * columns._SLACK - 1}"] == [column.values[c] if c >= 0 else None for c in column.codes]
    assert all(column.values[code] == value for value, code in column.code_of.items())
    assert before.values[before.codes[0]] == "keep"


def test_coded_store_without_missing_values_renews_too():
    """The first code in use may be 0."""
    store = CodedStore(["a", "b"])
    for i in range(5 * columns._SLACK):
        store.write(1, f"v{i}")

    column = store.column
    assert ["a", f"v{5 * columns._SLACK - 1}"] == [column.values[c] for c in column.codes]


def test_resource_columns_are_bounded_and_come_back():
    """The oldest rare resource gives way and is built again when asked for; core resources stay."""
    cache, snapshot = Cache(), Snapshot()
    count = columns._MAX_SCALARS + 5
    for i in range(count):
        cache.add_node(node(f"n{i}").capacity({"cpu": 1, f"example.com/r{i}": i + 1}).obj())
    cache.update_snapshot(snapshot)
    cpu = snapshot.allocatable("cpu")

    for i in range(count):
        column = snapshot.allocatable(f"example.com/r{i}")
        assert (i + 1, i + 1) == (column[i], column.sum())

    assert cpu is snapshot.allocatable("cpu")
    assert len(snapshot._allocatable._data) == columns._MAX_SCALARS + 1
    cache.update_node(node("n0").capacity({"example.com/r0": 9}).obj())
    cache.update_snapshot(snapshot)
    assert 9 == snapshot.allocatable("example.com/r0")[0] == snapshot.allocatable("example.com/r0").sum()


def test_holders_of_a_resource_are_forgotten_with_their_nodes():
    """Years of nodes that come and go leave nothing behind."""
    cache, snapshot = Cache(), Snapshot()
    for i in range(8 * columns._SLACK):
        cache.add_node(node(f"n{i}").capacity({"example.com/gpu": 1}).obj())
        if i > 1:
            cache.remove_node(f"n{i - 2}")
        cache.update_snapshot(snapshot)

    assert len(snapshot._allocatable._holders["example.com/gpu"]) < 2 * columns._SLACK
    assert snapshot.allocatable("example.com/gpu").tolist() == [1, 1]


def test_holders_of_a_resource_are_forgotten_with_their_pods():
    """Anybody may make pods that name resources of their own and a node; what they named goes when they go."""
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(node("n0").capacity({"cpu": 1}).obj())
    for i in range(3):
        wanted = {f"example.com/r{i}-{j}": 1 for j in range(100)}
        one = pod(f"p{i}").requests(wanted).on("n0").obj()
        cache.add_pod(one)
        cache.update_snapshot(snapshot)
        assert snapshot.requested(f"example.com/r{i}-7").tolist() == [1]
        cache.remove_pod(one)
        cache.update_snapshot(snapshot)
        assert snapshot.requested(f"example.com/r{i}-7").tolist() == [0]

    assert snapshot._requested._holders == {}
    assert snapshot._requested._held_by == {}


def test_label_columns_are_bounded():
    """Users decide which keys are asked for, so there is an end to it."""
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(node("n0").label("k0", "v").obj())
    cache.update_snapshot(snapshot)

    for i in range(2 * columns._MAX_LABELS):
        snapshot.label(f"k{i}")

    assert len(snapshot._labels._stores) == columns._MAX_LABELS
    assert [snapshot.label("k0").values[c] for c in snapshot.label("k0").codes] == ["v"]


@pytest.mark.parametrize("asked_before", [pytest.param(True, id="written"), pytest.param(False, id="built")])
@pytest.mark.parametrize("resource", [pytest.param("memory", id="core"), pytest.param("example.com/gpu", id="scalar")])
def test_sums_beyond_int64_stop_at_its_end(asked_before, resource):
    """Two pods that each ask for everything do not wrap around."""
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(node("n1").obj())
    cache.update_snapshot(snapshot)
    if asked_before:
        snapshot.requested(resource)
    for name in "ab":
        cache.add_pod(pod(name).requests({resource: str(INT64_MAX)}).on("n1").obj())

    cache.update_snapshot(snapshot)

    assert snapshot.requested(resource).tolist() == [INT64_MAX]
