"""NodeName: facts of upstream's node_name_test.go."""

import pytest

from scheduler.api import ActionType, Code
from scheduler.plugins.node_name import NAME, REASON_OTHER_NODE
from scheduler.state.changes import NODE_ADD
from scheduler.testing import node, pod


@pytest.mark.parametrize(
    ("wanted", "fitting"),
    [
        pytest.param("", ["foo", "bar"], id="a pod that names no node fits everywhere"),
        pytest.param("foo", ["foo"], id="a pod that names its node fits there only"),
        pytest.param("gone", [], id="a node that does not exist fits nowhere"),
    ],
)
def test_filter(bench, wanted, fitting):
    """All other nodes are rejected for good."""
    bench.cluster([node("foo"), node("bar")])
    verdicts = bench.verdicts(bench.make(NAME), pod("p").on(wanted).obj())
    assert [name for name, status in verdicts.items() if status is None] == fitting
    for status in filter(None, verdicts.values()):
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == (REASON_OTHER_NODE,)


def test_events(bench):
    """A new node may be the named one; always worth a try."""
    plugin = bench.make(NAME)
    assert bench.registered(plugin) == {("Node", ActionType.ADD)}
    assert bench.hint(plugin, NODE_ADD, pod("p").obj(), None, node("n").obj()).value == "Queue"
