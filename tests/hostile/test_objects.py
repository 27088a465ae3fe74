"""Hostile objects, each through decoding, intake, queue and cycle: told about on itself, and nobody else is worse off.

`pods.py` and `cluster_objects.py` are the table. For every row: what becomes of the object (and of a pod that depends on
it) is what the table says, no line of the log tells of an error that nobody had foreseen, memory stays in proportion to
the object, and a plain pod that comes afterwards gets a node.
"""

from __future__ import annotations

import json
import tracemalloc

import pytest

from tests.hostile import cluster_objects, pods
from tests.hostile.table import Row
from tests.hostile.world import World, line, played

ROWS = (*pods.ROWS, *cluster_objects.ROWS)
MAX_GROWTH = 60  # times the bytes of the object: a number in JSON is two bytes, a value in memory some ten times that
MAX_EXTRA_BYTES = 8 << 20


def test_the_table_is_large_and_has_no_row_twice() -> None:
    """Names are what a failure is found by."""
    names = [str(row) for row in ROWS]
    assert len(names) == len(set(names)) >= 300


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_costs_its_owner(row: Row) -> None:
    """See the module."""
    with World() as world:
        fate, then = played(row, world)
        assert fate.startswith(row.expect), fate
        assert then.startswith(row.then), then
        assert (then == "") == (row.then == ""), then
        assert world.broken() == []
        if row.expect.startswith("rejected: "):
            assert_logged(world, row)
            if row.kind == "Pod":
                assert_told(world)
        assert world.neighbour_is_scheduled()


def assert_logged(world: World, row: Row) -> None:
    """Check that one line of the log names a rejected object by what could be read of it, and the reason."""
    (logged,) = [entry for entry in world.log if entry["event"] == "object rejected"]
    assert logged["log_level"] == "warning"
    assert (logged["kind"], logged["object"]) == (row.kind, identity_of(row))
    assert f"rejected: {logged['err']}".startswith(row.expect)


def identity_of(row: Row) -> str:
    """Return namespace and name as an object's bytes tell them; "" where they are no JSON, or tell nothing."""
    if row.expect.startswith("rejected: watch line cannot be read: "):
        return ""
    is_wire = isinstance(row.made, bytes)
    made = json.loads(row.made.decode(errors="replace"), parse_int=str) if is_wire else row.made
    metadata = (made.get("metadata") if isinstance(made, dict) else None) or {}
    return "/".join(metadata[part] for part in ("namespace", "name") if part in metadata)


def assert_told(world: World) -> None:
    """Check that who could be read of a rejected pod's identity was told."""
    (rejected,) = world.rejected
    is_ours = rejected.scheduler_name == "default-scheduler" and not rejected.node_name
    if rejected.name and rejected.namespace and is_ours:
        (note,) = world.notes(rejected.name)
        assert note == f"the pod cannot be scheduled because it cannot be understood: {rejected.reason}"
        assert len(note.encode()) <= 1_024


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_memory_in_proportion(row: Row) -> None:
    """What an object may cost for a moment is bounded by its size, whatever is in it."""
    with World() as world:
        world.neighbour_is_scheduled()
        tracemalloc.start()
        try:
            played(row, world)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    size = len(line(row.made)) + sum(len(line(other)) for other in row.others)
    assert peak_bytes <= MAX_EXTRA_BYTES + MAX_GROWTH * size
