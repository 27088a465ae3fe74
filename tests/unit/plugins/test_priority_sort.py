"""PrioritySort: facts of upstream's priority_sort_test.go."""

import pytest

from scheduler.api import QueuedPodInfo
from scheduler.plugins.priority_sort import NAME
from scheduler.testing import pod


def queued(priority, timestamp_s):
    made = pod("p") if priority is None else pod("p").priority(priority)
    return QueuedPodInfo(made.obj(), timestamp_s)


@pytest.mark.parametrize(
    ("first", "second", "is_less"),
    [
        pytest.param(queued(10, 1), queued(100, 1), False, id="lower priority goes later"),
        pytest.param(queued(100, 1), queued(10, 1), True, id="higher priority goes first"),
        pytest.param(queued(100, 1), queued(100, 2), True, id="equal priority: who came earlier goes first"),
        pytest.param(queued(100, 2), queued(100, 1), False, id="equal priority: who came later goes later"),
        pytest.param(queued(100, 1), queued(100, 1), False, id="equal in both is not less"),
        pytest.param(queued(100, 2), queued(10, 1), True, id="priority beats time"),
        pytest.param(queued(None, 1), queued(0, 2), True, id="no priority is priority 0"),
        pytest.param(queued(None, 1), queued(-5, 0), True, id="negative priorities go last"),
    ],
)
def test_order(bench, first, second, is_less):
    """``less`` and ``sort_key`` say the same."""
    plugin = bench.make(NAME)
    assert plugin.less(first, second) is is_less
    assert (plugin.sort_key(first) < plugin.sort_key(second)) is is_less


def test_events(bench):
    """Sorting rejects nobody."""
    assert not bench.make(NAME).events()
