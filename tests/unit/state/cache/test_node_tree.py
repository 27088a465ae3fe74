"""NodeTree: zones take turns."""

import pytest

from scheduler.state.cache.node_tree import NodeTree


def tree(*pairs):
    made = NodeTree()
    for name, zone in pairs:
        made.put(name, zone)
    return made


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param([], [], id="no nodes"),
        pytest.param([("a", ""), ("b", ""), ("c", "")], ["a", "b", "c"], id="one zone keeps the order of arrival"),
        pytest.param(
            [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")],
            ["a1", "b1", "c1", "a2", "c2", "a3"],
            id="first of each zone, then second, exhausted zones are skipped",
        ),
        pytest.param([("b1", "b"), ("a1", "a"), ("b2", "b")], ["b1", "a1", "b2"], id="zones by first appearance"),
    ],
)
def test_order(pairs, expected):
    """Zones are interleaved."""
    assert expected == tree(*pairs).names()


def test_zone_that_comes_back_stands_last():
    """An emptied zone loses its place."""
    made = tree(("a1", "a"), ("b1", "b"))

    made.remove("a1")
    made.put("a2", "a")

    assert made.names() == ["b1", "a2"]


def test_node_that_moves_goes_to_the_end_of_its_new_zone_and_keeps_the_version():
    """A zone change alone does not ask for a new order."""
    made = tree(("a1", "a"), ("a2", "a"), ("b1", "b"))
    version = made.version

    made.put("a1", "b")

    assert version == made.version
    assert made.names() == ["a2", "b1", "a1"]
    assert len(made) == 3


def test_version_counts_names_only():
    """Coming and going count, being put again does not."""
    made = tree(("a1", "a"))
    version = made.version

    made.put("a1", "a")
    assert version == made.version
    assert not made.remove("zz")
    assert version == made.version
    assert made.remove("a1")
    assert version + 1 == made.version
    made.put("a1", "a")
    assert version + 2 == made.version
