"""The small parts that volume plugins share: lists found by labels, lines, affinity, grouped verdicts."""

import numpy as np
import pytest

from scheduler.api import Status
from scheduler.plugins.shared.broken_line import line_value
from scheduler.plugins.shared.pinned_list import Pin, PinnedList, affinity_pin, selector_pin
from scheduler.plugins.shared.rowwise import group_rows, grouped_verdicts
from scheduler.plugins.shared.volume_affinity import NO_TERM_MATCHES, affinity_problem, is_reachable, reachable_rows
from scheduler.testing import node, obj

ITEMS = PinnedList(
    [
        ("a", Pin("zone", ["1"])),
        ("b", None),
        ("c", Pin("zone", ["1", "2", "1"])),
        ("d", Pin("host", ["h"])),
        ("e", None),
    ]
)


@pytest.mark.parametrize(
    ("labels", "offered"),
    [
        pytest.param({}, "be", id="no label: only what is not pinned"),
        pytest.param({"zone": "1"}, "abce", id="in order, each once"),
        pytest.param({"zone": "2", "host": "h"}, "bcde", id="pins of several labels"),
        pytest.param({"zone": "9"}, "be", id="a value that no item names"),
    ],
)
def test_pinned_list(labels, offered):
    """A node is offered what is pinned to its labels and what is not pinned, in the list's order."""
    assert "".join(ITEMS.offered_to(labels)) == offered


def affinity(*terms):
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}
    return obj("PersistentVolume", {"metadata": {"name": "pv"}, "spec": spec}).spec.node_affinity


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


NOT_IN, IN = expression("zone", "NotIn", "b"), expression("zone", "In", "a", "c")
FIELD = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}
BAD = {"matchExpressions": [expression("zone", "Near", "a")]}


@pytest.mark.parametrize(
    ("given", "pin"),
    [
        pytest.param(None, None, id="no affinity"),
        pytest.param(affinity({"matchExpressions": [NOT_IN, IN]}), ("zone", ("a", "c")), id="first list of values"),
        pytest.param(affinity({"matchExpressions": [NOT_IN]}), None, id="no list of values"),
        pytest.param(affinity({"matchExpressions": [IN]}, {"matchExpressions": [IN]}), None, id="two terms"),
    ],
)
def test_affinity_pin(given, pin):
    """Only a single term that names values pins a volume."""
    assert affinity_pin(given) == pin


@pytest.mark.parametrize(
    ("selector", "pin"),
    [
        pytest.param({}, None, id="matches all"),
        pytest.param({"matchLabels": {"k": "v"}}, ("k", ("v",)), id="a label"),
        pytest.param({"matchExpressions": [NOT_IN, IN]}, ("zone", ("a", "c")), id="an expression"),
    ],
)
def test_selector_pin(selector, pin):
    """A selector pins by its first label or list of values."""
    capacity = obj("CSIStorageCapacity", {"metadata": {"name": "c", "namespace": "d"}, "nodeTopology": selector})
    assert selector_pin(capacity.node_topology) == pin
    assert selector_pin(None) is None


@pytest.mark.parametrize(
    ("given", "reachable", "problem"),
    [
        pytest.param(None, "nabm", None, id="no affinity"),
        pytest.param(affinity({"matchExpressions": [IN]}), "a", NO_TERM_MATCHES, id="values"),
        pytest.param(affinity({"matchExpressions": [NOT_IN]}), "nam", NO_TERM_MATCHES, id="other values, or none"),
        pytest.param(affinity(FIELD), "nabm", None, id="fields are not looked at"),
        pytest.param(affinity({**FIELD, "matchExpressions": [IN]}), "a", NO_TERM_MATCHES, id="fields and values"),
        pytest.param(affinity({}), "", NO_TERM_MATCHES, id="an empty term reaches nothing"),
        pytest.param(affinity(BAD, {"matchExpressions": [IN]}), "a", "nodeSelectorTerms[0]", id="a bad term of two"),
    ],
)
def test_reach(bench, given, reachable, problem):
    """Both forms agree; the name of the node plays no part."""
    nodes = [node("n"), *(node(name).label("zone", name) for name in "abm")]
    snapshot = bench.cluster(nodes)
    rows = reachable_rows(given, snapshot)
    for name, info, reaches in zip(snapshot.names, snapshot.infos, rows.tolist(), strict=True):
        assert is_reachable(given, info.labels) is reaches is (name in reachable), name
        said = affinity_problem(given, info.labels)
        assert said is None if reaches else said.startswith(problem)


@pytest.mark.parametrize(
    ("x", "y"), [(-5, 10), (0, 10), (5, 10), (7, 10), (8, 9), (20, 5), (21, 5), (25, 3), (30, 0), (99, 0)]
)
def test_line(x, y):
    """Level outside of the points; quotients are cut toward zero."""
    assert line_value(((5, 10), (20, 5), (30, 0)), x) == y


def test_rows_are_grouped_by_labels_and_columns(bench):
    """Rows share a group if no key and no column tells them apart."""
    names = {"a": "1", "b": "1", "c": "2", "d": None}
    nodes = [node(name) if zone is None else node(name).label("zone", zone) for name, zone in names.items()]
    snapshot = bench.cluster(nodes)
    first, group = group_rows(snapshot, {"zone"})
    zones = [names[name] for name in snapshot.names]
    assert len(first) == 3
    assert [zones[first[g]] for g in group.tolist()] == zones
    marked = np.array([name == "b" for name in snapshot.names], np.int32)
    assert len(group_rows(snapshot, {"zone"}, [marked])[0]) == 4
    assert group_rows(snapshot, set())[1].tolist() == [0, 0, 0, 0]


def test_grouped_verdicts():
    """Equal statuses are explained together; errors are told apart from rejections."""
    no, broken = Status.unschedulable("no"), Status.error("broken")
    verdicts = grouped_verdicts([no, None, broken, no], np.array([0, 1, 2, 3, 0], np.intp))
    assert verdicts.ok.tolist() == [False, True, False, False, False]
    assert verdicts.errors.tolist() == [False, False, True, False, False]
    explained = {status: rows.tolist() for status, rows in verdicts.explain(np.array([0, 2, 3, 4], np.intp))}
    assert explained == {no: [0, 3, 4], broken: [2]}
    assert grouped_verdicts([no, None], np.array([0, 1], np.intp)).errors is None
