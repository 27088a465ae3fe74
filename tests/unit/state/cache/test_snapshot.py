"""Snapshot: columns in row order, lazily made, updated row by row."""

import numpy as np
import pytest

from scheduler.api import NodeFacts
from scheduler.state.cache import snapshot as snapshot_module
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node, pod


def cluster():
    """Four nodes in two zones; rows are a1 b1 a2 b2."""
    cache, snapshot = Cache(), Snapshot()
    base = node().capacity(cpu="4", memory="8Gi", pods="110")
    for made in (
        base.set("metadata.name", "a1").zone("a").label("disk", "ssd").image("app", size_bytes=10),
        base.set("metadata.name", "a2").zone("a").capacity({"example.com/gpu": 2}).taint("gpu"),
        base.set("metadata.name", "b1").zone("b").label("disk", "hdd").cordoned(),
        base.set("metadata.name", "b2").zone("b").label("disk", "ssd").taint("gpu").image("app", size_bytes=10),
    ):
        cache.add_node(made.obj())
    cache.add_pod(pod("p1").requests(cpu="1").host_port(80).on("b1").obj())
    cache.add_pod(pod("p2").claim("data").pod_anti_affinity("zone", {"a": "b"}).on("a2").obj())
    cache.add_pod(pod("p3").pod_affinity("zone", {"a": "b"}).on("a1").obj())
    cache.update_snapshot(snapshot)
    return cache, snapshot


def decoded(column):
    return [column.values[code] if code >= 0 else None for code in column.codes.tolist()]


def test_rows_are_zone_interleaved():
    """Names, infos, row and get agree."""
    _, snapshot = cluster()

    assert ["a1", "b1", "a2", "b2"] == snapshot.names == [info.name for info in snapshot.infos]
    assert 4 == len(snapshot) == snapshot.num_all_nodes
    assert (snapshot.row("a2"), snapshot.row("zz")) == (2, None)
    assert snapshot.infos[2] is snapshot.get("a2")
    assert snapshot.get("zz") is None


def test_columns():
    """Each column has what the nodes have, in row order."""
    _, snapshot = cluster()

    assert snapshot.allocatable("cpu").tolist() == [4000] * 4
    assert snapshot.allocatable("example.com/gpu").tolist() == [0, 0, 2, 0]
    assert snapshot.allocatable("pods").tolist() == [110] * 4
    assert snapshot.allocatable("example.com/unheard").tolist() == [0] * 4
    assert snapshot.requested("cpu").tolist() == [0, 1000, 0, 0]
    assert snapshot.non_zero_requested("cpu").tolist() == [100, 1000, 100, 0]
    assert snapshot.requested("example.com/gpu") is snapshot.non_zero_requested("example.com/gpu")
    assert snapshot.num_pods.tolist() == [1, 1, 1, 0]
    assert snapshot.unschedulable.tolist() == [False, True, False, False]
    assert decoded(snapshot.label("disk")) == ["ssd", "hdd", None, "ssd"]
    assert decoded(snapshot.label("unheard")) == [None] * 4
    assert [len(taints) for taints in decoded(snapshot.taints)] == [0, 0, 1, 1]
    assert snapshot.taints.codes[2] == snapshot.taints.codes[3]
    assert np.int64 == snapshot.requested("cpu").dtype == snapshot.num_pods.dtype
    assert np.int32 == snapshot.label("disk").codes.dtype


def test_lists_of_rows():
    """Ports, affinity, claims and images name their rows."""
    _, snapshot = cluster()

    assert snapshot.rows_using_host_ports() == (1,)
    assert snapshot.rows_with_affinity == (0, 2)
    assert snapshot.rows_with_required_anti_affinity == (2,)
    assert {"default/data"} == set(snapshot.used_claims)
    rows, state = snapshot.image("app")
    assert rows.tolist() == [0, 3]
    assert (state.size_bytes, state.num_nodes) == (10, 2)
    assert snapshot.image("unheard") is None


def test_arrays_refuse_writes():
    """No plugin can spoil the snapshot."""
    _, snapshot = cluster()

    for column in (
        snapshot.allocatable("cpu"),
        snapshot.requested("cpu"),
        snapshot.num_pods,
        snapshot.unschedulable,
        snapshot.label("disk").codes,
        snapshot.generations,
        snapshot.take(np.array([1])).num_pods,
    ):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_update_rewrites_the_changed_row_in_place():
    """Arrays stay the same objects while the set of nodes does; a label's column is another one once a label changed."""
    cache, snapshot = cluster()
    requested, disk, names = snapshot.requested("cpu"), snapshot.label("disk"), snapshot.names
    zones = snapshot.label("topology.kubernetes.io/zone")

    cache.assume_pod(pod("new").requests(cpu="2").on("b2").obj())
    cache.update_node(node("a1").zone("a").label("disk", "nvme").obj())
    cache.update_snapshot(snapshot)

    assert requested.tolist() == [0, 1000, 0, 2000]
    assert requested is snapshot.requested("cpu")
    assert disk is not snapshot.label("disk")
    assert zones is snapshot.label("topology.kubernetes.io/zone")
    assert names is snapshot.names
    assert decoded(snapshot.label("disk")) == ["nvme", "hdd", None, "ssd"]
    assert snapshot.allocatable("cpu")[0] == 0
    assert snapshot.image("app")[0].tolist() == [3]


def test_assumed_pod_shows_in_columns_after_the_update():
    """Within its own cycle a decision is in infos only."""
    cache, snapshot = cluster()
    requested = snapshot.requested("cpu")

    cache.assume_pod(pod("new").requests(cpu="2").on("b2").obj())

    assert snapshot.infos[3].requested == {"cpu": 2000}
    assert requested[3] == 0


def test_nodes_that_come_and_go_change_the_order():
    """Columns made before follow."""
    cache, snapshot = cluster()
    snapshot.requested("cpu"), snapshot.label("disk"), snapshot.allocatable("example.com/gpu"), snapshot.image("app")

    cache.remove_node("a1")
    cache.remove_pod(pod("p3").obj())
    cache.add_node(node("c1").zone("c").label("disk", "tape").obj())
    cache.update_snapshot(snapshot)

    assert snapshot.names == ["a2", "b1", "c1", "b2"]
    assert snapshot.requested("cpu").tolist() == [0, 1000, 0, 0]
    assert snapshot.allocatable("example.com/gpu").tolist() == [2, 0, 0, 0]
    assert decoded(snapshot.label("disk")) == [None, "hdd", "tape", "ssd"]
    assert snapshot.num_pods.tolist() == [1, 1, 0, 0]
    assert snapshot.rows_using_host_ports() == (1,)
    assert (0,) == snapshot.rows_with_affinity == snapshot.rows_with_required_anti_affinity
    assert {"default/data"} == set(snapshot.used_claims)
    assert snapshot.image("app")[0].tolist() == [3]


def test_zone_change_alone_keeps_the_order():
    """The new zone counts when a node comes or goes."""
    cache, snapshot = cluster()

    cache.update_node(node("a1").zone("b").obj())
    cache.update_snapshot(snapshot)
    assert snapshot.names == ["a1", "b1", "a2", "b2"]

    cache.remove_node("b2")
    cache.update_snapshot(snapshot)
    assert snapshot.names == ["a2", "b1", "a1"]


def test_changed_rows():
    """Readers learn which rows to compute again."""
    cache, snapshot = cluster()
    start = snapshot.generation
    assert snapshot.changes_since(start) == []

    for name in ("x", "y"):
        cache.assume_pod(pod(name).on("b2").obj())
        cache.update_snapshot(snapshot)
    middle = snapshot.generation
    cache.update_node(node("b1").zone("b").obj())
    cache.update_snapshot(snapshot)

    assert {3, 1} == set(snapshot.changes_since(start))
    assert len(snapshot.changes_since(start)) == 2
    assert snapshot.changes_since(middle) == [1]


def test_changed_rows_beyond_the_log_come_from_the_generations():
    """A reader that was away for long still gets the right rows."""
    cache, snapshot = cluster()
    start = snapshot.generation
    cache.assume_pod(pod("x").on("b2").obj())
    cache.update_snapshot(snapshot)
    snapshot._log.floor = snapshot.generation

    assert snapshot.changes_since(start) == [3]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda cache: cache.add_node(node("zz").obj()), id="a node came"),
        pytest.param(lambda cache: cache.remove_node("b2"), id="a node went without leaving a generation"),
    ],
)
def test_changed_rows_after_a_new_order_are_unknown(change):
    """Row numbers from before mean other nodes now."""
    cache, snapshot = cluster()
    start = snapshot.generation

    change(cache)
    cache.update_snapshot(snapshot)

    assert snapshot.changes_since(start) is None
    assert snapshot.changes_since(snapshot.generation) == []


def test_image_changes_elsewhere_are_seen_without_touching_rows():
    """A count that changes on another node has its own generation."""
    cache, snapshot = cluster()
    before = snapshot.images_generation

    cache.update_node(node("b1").zone("b").image("app", size_bytes=10).obj())
    cache.update_snapshot(snapshot)

    assert snapshot.images_generation > before
    assert snapshot.image("app")[0].tolist() == [0, 1, 3]


def test_memory_of_image_rows_is_bounded():
    """Pods name any images they like."""
    cache, snapshot = Cache(), Snapshot()
    made = node("n1")
    images = [f"app:{i}" for i in range(snapshot_module._MAX_IMAGES + 3)]
    cache.add_node(made.image(*images, size_bytes=1).obj())
    cache.update_snapshot(snapshot)

    assert all(snapshot.image(name)[0].tolist() == [0] for name in images)
    assert len(snapshot._image_rows) <= snapshot_module._MAX_IMAGES


def test_two_snapshots_of_one_cache_do_not_disturb_each_other():
    """Each has its own generation."""
    cache, first = cluster()
    second = Snapshot()
    cache.assume_pod(pod("x").requests(cpu="3").on("b2").obj())

    cache.update_snapshot(second)
    cache.update_snapshot(first)

    assert first.requested("cpu").tolist() == second.requested("cpu").tolist() == [0, 1000, 0, 3000]


def test_empty_snapshot():
    """A cluster without nodes has empty columns."""
    snapshot = Snapshot()
    Cache().update_snapshot(snapshot)

    assert (
        0 == len(snapshot) == len(snapshot.requested("cpu")) == len(snapshot.label("x").codes) == len(snapshot.num_pods)
    )
    assert snapshot.rows_using_host_ports() == ()


# --- views of some rows ---


def test_view_of_some_rows():
    """Rows in the given order; everything is renumbered."""
    _, snapshot = cluster()
    view = snapshot.take(np.array([3, 1, 0]))

    assert (len(view), view.num_all_nodes) == (3, 4)
    assert ["b2", "b1", "a1"] == view.names == [info.name for info in view.infos]
    assert (view.row("b1"), view.row("a2"), view.row("zz")) == (1, None, None)
    assert view.requested("cpu").tolist() == [0, 1000, 0]
    assert view.allocatable("cpu").tolist() == [4000] * 3
    assert view.non_zero_requested("cpu").tolist() == [0, 1000, 100]
    assert view.num_pods.tolist() == [0, 1, 1]
    assert view.unschedulable.tolist() == [False, True, False]
    assert decoded(view.label("disk")) == ["ssd", "hdd", "ssd"]
    assert [len(taints) for taints in decoded(view.taints)] == [1, 0, 0]
    assert view.rows_using_host_ports() == [1]
    assert {0, 2} == set(view.image("app")[0].tolist())
    assert view.image("app")[1].num_nodes == 2
    assert view.image("unheard") is None


def test_view_without_the_image_still_knows_it():
    """None means that no node of the cluster has it."""
    _, snapshot = cluster()

    rows, state = snapshot.take(np.array([1])).image("app")

    assert rows.tolist() == []
    assert state.num_nodes == 2


def test_columns_of_a_view_are_gathered_once():
    """The second use is free."""
    _, snapshot = cluster()
    view = snapshot.take(np.array([1, 2]))

    assert view.requested("cpu") is view.requested("cpu")
    assert view.label("disk") is view.label("disk")
    assert view.names is view.names


def test_view_of_a_view():
    """Rows of the outer view are rows of the inner one's choice."""
    _, snapshot = cluster()
    view = snapshot.take(np.array([3, 1, 0])).take(np.array([2, 0]))

    assert view.names == ["a1", "b2"]
    assert view.row("b2") == 1
    assert view.row("b1") is None
    assert decoded(view.label("disk")) == ["ssd", "ssd"]
    assert view.rows_using_host_ports() == []
    assert view.num_all_nodes == 4


def test_empty_view():
    """No rows are fine."""
    _, snapshot = cluster()
    view = snapshot.take(np.array([], np.intp))

    assert 0 == len(view) == len(view.requested("cpu")) == len(view.names)
    assert view.row("a1") is None


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param([1.0], id="too few"),
        pytest.param([1.0, 2.0, 3.0], id="too many"),
        pytest.param([1.0, "x"], id="no number"),
        pytest.param([1.0, 10**400], id="no float"),
    ],
)
def test_facts_of_a_bad_definition_raise_each_time(facts):
    """Not once, with the rest of a column after that."""
    _, snapshot = cluster()
    bad = NodeFacts(2, lambda node: facts if node.name == "b1" else (1.0, 2.0))
    for _ in range(3):
        with pytest.raises((ValueError, OverflowError)):
            snapshot.facts(bad)
