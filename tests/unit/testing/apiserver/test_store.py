"""The store's history: bounded, and the past read from it equals the past that was."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from scheduler.testing.apiserver.resources import BY_PATH
from scheduler.testing.apiserver.store import Change, Store, Stored

NODES = BY_PATH[("", "v1", "nodes")]
writes = st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=40)


def write(store: Store, name: str, *, remove: bool) -> None:
    if remove and name in store.table(NODES).objects:
        store.remove(NODES, name)
    else:
        store.put(NODES, name, {"metadata": {"name": name}})


@given(writes)
def test_past_is_read_back(steps: list[tuple[str, bool]]) -> None:
    """The objects at any remembered version are those that were there."""
    store = Store()
    table = store.table(NODES)
    past = {store.revision: dict(table.objects)}
    for name, remove in steps:
        write(store, name, remove=remove)
        past[store.revision] = dict(table.objects)
    for revision, objects in past.items():
        assert table.at(revision) == objects


@given(writes)
def test_replayed_changes_lead_to_the_present(steps: list[tuple[str, bool]]) -> None:
    """A watcher that follows every change ends with what is stored, in key order."""

    class Follower:
        def __init__(self) -> None:
            self.seen: dict[str, Stored] = {}

        def offer(self, change: Change) -> None:
            if change.after is None:
                del self.seen[change.key]
            else:
                self.seen[change.key] = change.after

    store, follower = Store(), Follower()
    table = store.table(NODES)
    table.subscribers[follower] = None
    for name, remove in steps:
        write(store, name, remove=remove)
    assert follower.seen == table.objects
    assert [key for key, _ in table.scan("")] == sorted(table.objects)


def test_history_is_bounded() -> None:
    """What falls out of the history moves the compacted version."""
    store = Store(history_limit=3)
    for name in "abcde":
        write(store, name, remove=False)
    table = store.table(NODES)
    assert len(table.history) == 3
    assert [change.revision for change in table.changes_after(table.compacted)] == [4, 5, 6]


def test_stored_values_are_never_changed_by_later_writes() -> None:
    """A change's `before` still shows what was."""
    store = Store()
    store.put(NODES, "a", {"metadata": {"name": "a"}, "spec": {}})
    first = store.table(NODES).objects["a"]
    kept = copy.deepcopy(first.data)
    store.put(NODES, "a", {**first.data, "metadata": dict(first.data["metadata"]), "spec": {"unschedulable": True}})
    assert first.data == kept


def test_line_is_encoded_once() -> None:
    """However many watchers there are."""
    store = Store()
    store.put(NODES, "a", {"metadata": {"name": "a"}})
    (change,) = store.table(NODES).history
    line = change.line("ADDED", NODES)
    assert change.line("ADDED", NODES) is line
    assert line.startswith(b'{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":')
