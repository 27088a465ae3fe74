"""Why a pod fits nowhere, and upstream's text for it."""

import numpy as np
import pytest

from scheduler.api import Code, Status
from scheduler.framework.diagnosis import Diagnosis, FitError, one_node_fit_error
from scheduler.testing.builders import pod

WEB = pod("web").obj()
CPU = Status.unschedulable("Insufficient cpu").by("NodeResourcesFit")
BOTH = Status.unschedulable("Insufficient cpu", "Insufficient memory").by("NodeResourcesFit")
TAINT = Status.unresolvable("node(s) had untolerated taint(s)").by("TaintToleration")
PENDING = Status.pending("waiting for a device").by("Devices")


def rows(*numbers):
    return np.array(numbers, np.intp)


def names(count):
    return [f"n{i:02}" for i in range(count)]


def nothing(diagnosis):
    del diagnosis


def grouped(diagnosis):
    diagnosis.add_group(TAINT, rows(0))
    diagnosis.add_group(CPU, rows(1, 2))


def several_reasons(diagnosis):
    diagnosis.add_group(BOTH, rows(0, 1))
    diagnosis.add_group(CPU, rows(2))


def ten_before_two(diagnosis):
    diagnosis.add_group(CPU, rows(*range(10)))
    diagnosis.add_group(TAINT, rows(10, 11))


def narrowed(diagnosis):
    diagnosis.add_group(CPU, rows(0))
    diagnosis.absent_status = Status.unresolvable("node(s) didn't satisfy plugin(s) [A B]")


def pre_filter(diagnosis):
    diagnosis.add_group(CPU, rows(0))
    diagnosis.reject_all(Status.unresolvable("claim not found", "really").by("VolumeBinding"))


def single_wins(diagnosis):
    diagnosis.add_group(CPU, rows(0, 1, 2))
    diagnosis.set_node(str(diagnosis.nodes.names[1]), TAINT)


@pytest.mark.parametrize(
    ("count", "fill", "post", "text"),
    [
        pytest.param(3, nothing, "", "0/3 nodes are available:", id="nothing known"),
        pytest.param(
            3,
            grouped,
            "",
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="reasons are counted over nodes",
        ),
        pytest.param(
            3,
            several_reasons,
            "",
            "0/3 nodes are available: 2 Insufficient memory, 3 Insufficient cpu.",
            id="a node may give several reasons",
        ),
        pytest.param(
            12,
            ten_before_two,
            "",
            "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s).",
            id="entries are sorted as texts",
        ),
        pytest.param(
            5,
            narrowed,
            "",
            "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) didn't satisfy plugin(s) [A B].",
            id="absent nodes count with the absent status",
        ),
        pytest.param(
            3,
            pre_filter,
            "",
            "0/3 nodes are available: claim not found, really.",
            id="a PreFilter rejection stands alone",
        ),
        pytest.param(
            3,
            single_wins,
            "",
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="a node's own status replaces its group's",
        ),
        pytest.param(
            3,
            grouped,
            "preemption: not eligible.",
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: not eligible.",
            id="PostFilter has the last word",
        ),
    ],
)
def test_fit_error_text(snapshot_of, count, fill, post, text):
    """The message is upstream's, letter by letter."""
    diagnosis = Diagnosis(snapshot_of(*names(count)))
    fill(diagnosis)
    diagnosis.post_filter_msg = post
    error = FitError(WEB, count, diagnosis)
    assert str(error) == text
    status = error.status()
    assert (status.code, status.message, status.cause) == (Code.UNSCHEDULABLE, text, error)


def test_plugins_behind_rejections(snapshot_of):
    """Every rejecting plugin is recorded; Pending ones in both sets, as upstream."""
    diagnosis = Diagnosis(snapshot_of("a", "b", "c"))
    diagnosis.add_group(CPU, rows(0))
    diagnosis.add_group(TAINT, rows())
    diagnosis.set_node("b", PENDING)
    assert diagnosis.unschedulable_plugins == {"NodeResourcesFit", "Devices"}
    assert diagnosis.pending_plugins == {"Devices"}


def test_statuses_by_node(snapshot_of):
    """PostFilter can look every node of the snapshot up, and only those."""
    diagnosis = Diagnosis(snapshot_of("a", "b", "c"))
    diagnosis.add_group(CPU, rows(0, 1))
    diagnosis.set_node("b", TAINT)
    statuses = diagnosis.statuses
    assert dict(statuses) == {"a": CPU, "b": TAINT, "c": Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)}
    assert len(statuses) == 3
    assert "d" not in statuses
    diagnosis.forget_node("b")
    assert diagnosis.statuses["b"] == CPU


def test_one_node_fit_error(snapshot_of):
    """A rejection by Reserve or Permit speaks of one node."""
    error = one_node_fit_error(WEB, snapshot_of("a", "b"), "b", Status.unschedulable("gang incomplete").by("Gang"))
    assert str(error) == "0/1 nodes are available: 1 gang incomplete."
    assert error.diagnosis.unschedulable_plugins == {"Gang"}


def test_rows_by_code(snapshot_of):
    """Which nodes preemption may look at, with the same order of precedence as single statuses."""
    nodes = snapshot_of("a", "b", "c", "d")
    diagnosis = Diagnosis(nodes)
    diagnosis.absent_status = Status.unresolvable("left out")
    diagnosis.add_group(Status.unschedulable("full"), np.array([0, 1]))
    diagnosis.set_node("b", Status.unresolvable("struck off"))
    diagnosis.set_node("d", Status.unschedulable("no"))
    diagnosis.set_node("gone", Status.unschedulable("no"))
    assert diagnosis.statuses.rows_with(Code.UNSCHEDULABLE).tolist() == [0, 3]
    assert diagnosis.statuses.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).tolist() == [1, 2]
    by_name = [name for name, status in diagnosis.statuses.items() if status.code is Code.UNSCHEDULABLE]
    assert by_name == ["a", "d"]
    diagnosis.reject_all(Status.unschedulable("PreFilter said so"))
    assert diagnosis.statuses.rows_with(Code.UNSCHEDULABLE).tolist() == [0, 2, 3]
