"""KeyedHeap: order, stability, look-up, and the removal of dead entries."""

from hypothesis import given
from hypothesis import strategies as st

from scheduler.state.queue.heap import KeyedHeap


class Item:
    """Something that cannot be compared."""


def drain(heap):
    found = []
    while (item := heap.pop()) is not None:
        found.append(item)
    return found


def test_items_leave_smallest_rank_first_and_in_order_of_arrival_among_equals():
    """Equal ranks: first come, first served."""
    heap = KeyedHeap()
    for key, rank in [("c", 2), ("a", 1), ("d", 2), ("b", 1)]:
        assert heap.push(key, rank, key)
    assert drain(heap) == ["a", "b", "c", "d"]
    assert len(heap) == 0


def test_an_item_keeps_its_place_among_equals_when_it_is_re_ranked():
    """A re-ranked item does not fall behind those that came later."""
    heap = KeyedHeap()
    for key in "abc":
        heap.push(key, 5, key)
    assert not heap.push("a", 9, "a")
    assert not heap.push("a", 5, "a")
    assert drain(heap) == ["a", "b", "c"]


def test_items_are_never_compared():
    """Equal ranks and a replaced item of the same key must not reach the items themselves."""
    heap = KeyedHeap()
    first, second, third = Item(), Item(), Item()
    heap.push("a", 1, first)
    heap.push("a", 1, second)
    heap.push("b", 1, third)
    assert heap.get("a") is second
    assert drain(heap) == [second, third]


def test_removed_items_are_gone_at_once():
    """Neither peek nor pop nor look-up sees them."""
    heap = KeyedHeap()
    for rank, key in enumerate("abc"):
        heap.push(key, rank, key)
    assert heap.remove("a") == "a"
    assert heap.remove("a") is None
    assert "a" not in heap
    assert heap.peek() == "b"
    assert list(heap) == ["b", "c"]


def test_dead_entries_do_not_pile_up():
    """However often items are re-ranked or replaced, the heap stays within a small multiple of its living items."""
    heap = KeyedHeap()
    for rank in range(1000):
        heap.push("same", rank, "same")
        heap.push(f"other-{rank}", rank, "other")
        heap.remove(f"other-{rank}")
    assert len(heap) == 1
    assert len(heap._heap) < 100
    assert heap.pop() == "same"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(0, 3)))))
def test_it_behaves_like_a_sorted_dictionary(steps):
    """Any mix of pushes (a rank) and removals (None) pops in order of rank, then of arrival."""
    heap, model = KeyedHeap(), {}
    for arrival, (key, rank) in enumerate(steps):
        if rank is None:
            assert heap.remove(key) == (key if key in model else None)
            model.pop(key, None)
        else:
            assert heap.push(key, rank, key) == (key not in model)
            model[key] = (rank, model[key][1] if key in model else arrival)
        assert len(heap) == len(model)
    assert drain(heap) == sorted(model, key=model.get)
