"""Rows: sets, logs and moves of row numbers."""

import numpy as np
import pytest

from scheduler.state.cache import rows
from scheduler.state.cache.rows import ChangeLog, Reorder, RowSet, read_only

SWAP_AND_GROW = Reorder(np.array([2, -1, 0], np.intp), 3)  # old rows 0 1 2 → row 1 is gone, a new node stands there


def test_reorder_moves_columns_lists_and_rows():
    """Known rows move, new rows get the fill, gone rows have no place."""
    assert SWAP_AND_GROW.move(np.array([10, 20, 30])).tolist() == [30, 0, 10]
    assert SWAP_AND_GROW.move(np.array([10, 20, 30]), fill=-1).tolist() == [30, -1, 10]
    assert SWAP_AND_GROW.move_list(["a", "b", "c"], None) == ["c", None, "a"]
    assert [SWAP_AND_GROW.row(old) for old in range(3)] == [2, -1, 0]


def test_reorder_from_nothing_and_to_nothing():
    """The first and the last node are no special cases."""
    assert Reorder(np.array([-1, -1], np.intp), 0).move(np.zeros(0, np.int64)).tolist() == [0, 0]
    assert Reorder(np.zeros(0, np.intp), 2).move(np.array([1, 2])).tolist() == []


def test_row_set_lists_ascending_and_keeps_the_list_until_it_changes():
    """Reading is free while nothing changes."""
    some = RowSet()
    for row in (5, 1, 3):
        some.put(row, True)
    some.put(3, False)
    listed = some.rows()
    some.put(5, True)
    some.put(7, False)

    assert listed == (1, 5)
    assert listed is some.rows()
    assert 5 in some


def test_row_set_follows_a_reorder():
    """Rows of gone nodes leave the set."""
    some = RowSet()
    for row in range(3):
        some.put(row, True)

    some.reorder(SWAP_AND_GROW)

    assert some.rows() == (0, 2)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(9, None, id="before the log began"),
        pytest.param(10, [4, 2], id="since its beginning, each row once"),
        pytest.param(12, [4], id="the last change only"),
        pytest.param(13, [], id="nothing after"),
    ],
)
def test_change_log(since, expected):
    """Rows that changed after a generation."""
    log = ChangeLog()
    log.floor = 10
    for generation, row in ((11, 4), (12, 2), (13, 4)):
        log.add(generation, row)

    assert expected == log.since(since)


def test_change_log_is_bounded():
    """Old changes are dropped, and the log says so."""
    log = ChangeLog()
    for generation in range(1, 3 * rows._LOG_LIMIT):
        log.add(generation, generation % 7)

    assert log.since(1) is None
    assert len(log.since(log.floor)) == 7
    assert len(log._rows) < rows._LOG_LIMIT


def test_read_only_view_follows_the_column_and_refuses_writes():
    """Plugins cannot spoil a column."""
    column = np.array([1, 2])
    view = read_only(column)
    column[0] = 7

    assert view.tolist() == [7, 2]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
