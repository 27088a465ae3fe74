"""The framework's search on columns agrees with upstream's loop over nodes and plugins, on random verdict tables."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import CycleState, FilterPlugin, Status, Verdicts
from scheduler.framework.runtime import Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node, pod
from scheduler.testing.clock import FakeClock

STATUSES = (Status.unschedulable("a"), Status.unresolvable("b", "c"), Status.pending("d"))
WEB = pod("web").obj()


class PerNode(FilterPlugin):
    def __init__(self, name, table):
        self.name = name
        self.table = table

    def filter(self, state, pod, node):
        return self.table.get(node.name)


class OnColumns(PerNode):
    def filter_all(self, state, pod, nodes):
        names = list(nodes.names)
        ok = np.array([name not in self.table for name in names], bool)
        return Verdicts(ok, lambda rows: [(self.table[names[row]], np.array([row])) for row in rows])


@st.composite
def cases(draw):
    """Return node names, plugins with their tables, and rows that count as visited."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 12)))]
    tables = draw(st.lists(st.dictionaries(st.sampled_from(names), st.sampled_from(STATUSES)), min_size=1, max_size=5))
    kinds = draw(st.lists(st.sampled_from([PerNode, OnColumns]), min_size=len(tables), max_size=len(tables)))
    plugins = [kind(f"P{i}", table) for i, (kind, table) in enumerate(zip(kinds, tables, strict=True))]
    visited = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    return names, plugins, np.array(visited, bool)


@settings(deadline=None)
@given(cases())
def test_columns_agree_with_the_loop(case):
    """Who passes, who owns a rejection, and the visited mask: the same in every mixture of forms."""
    names, plugins, visited = case
    cache, snapshot = Cache(), Snapshot()
    for name in names:
        cache.add_node(node(name).obj())
    cache.update_snapshot(snapshot)
    framework = Framework(
        "p",
        {plugin.name: plugin for plugin in plugins},
        {"filter": [plugin.name for plugin in plugins]},
        waiting=WaitingPods(FakeClock()),
        perf_counter=lambda: 0.0,
    )
    expected = {}
    for info in snapshot.infos:
        for plugin in plugins:
            status = plugin.filter(CycleState(), WEB, info)
            if status is not None:
                expected[info.name] = status.by(plugin.name)
                break
        assert framework.run_filter_on_node(CycleState(), WEB, info) == expected.get(info.name)
    outcome = framework.run_filter(CycleState(), WEB, snapshot)
    assert {snapshot.names[row] for row in np.flatnonzero(outcome.ok)} == set(names) - set(expected)
    groups = outcome.explain(visited)
    assert not isinstance(groups, Status)
    got = {snapshot.names[row]: status for status, rows in groups for row in rows.tolist()}
    assert got == {name: status for name, status in expected.items() if visited[snapshot.row(name)]}
    assert sum(len(rows) for _, rows in groups) == len(got)
