"""The comparison finds what differs, and its rules leave out what they name and nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.build import with_version
from tests.conformance.compare import Compared
from tests.conformance.exclusions import RULES

RESULT: dict[str, Any] = {
    "pod": "default/web",
    "verdict": "scheduled",
    "feasible": ["a", "b"],
    "statuses": {"c": {"code": "Unschedulable", "plugin": "NodePorts", "reasons": ["taken"]}},
    "scores": {"ImageLocality": {"a": 1, "b": 2}},
    "totals": {"a": 1, "b": 2},
    "best": ["b"],
    "chosen": "b",
    "nominated": "",
    "victims": [],
    "preemption": {
        "candidates": {"d": {"victims": ["default/x"], "pdbViolations": 0}},
        "rejected": {"e": {"code": "Unschedulable", "plugin": "NodeName", "reasons": []}},
    },
}
DOCS = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"


def compared(want: dict[str, Any], got: dict[str, Any], case: dict[str, Any] | None = None) -> Compared:
    return Compared(expected={"results": [want]}, answered={"results": [got]}, case=case or {}, scored=None)


def test_equal_answers_do_not_differ() -> None:
    """Nothing is found in two equal answers."""
    assert compared(RESULT, copy.deepcopy(RESULT)).found == []


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        pytest.param(("verdict",), "unschedulable", "verdict", id="another verdict"),
        pytest.param(("feasible",), ["a"], "feasible", id="a node less"),
        pytest.param(("statuses", "c", "code"), "Error", "status of NodePorts", id="another code names the plugin"),
        pytest.param(("statuses", "c", "reasons"), [], "status of NodePorts", id="another reason names the plugin"),
        pytest.param(
            ("scores", "ImageLocality", "a"), 7, "scores of ImageLocality", id="another score names the plugin"
        ),
        pytest.param(("totals", "a"), 7, "totals", id="another total"),
        pytest.param(("best",), ["a", "b"], "best", id="another best node"),
        pytest.param(("message",), "no", "message", id="another message"),
        pytest.param(("nominated",), "d", "nominated", id="another nomination"),
        pytest.param(("victims",), ["default/x"], "victims", id="other victims"),
        pytest.param(("unschedulablePlugins",), ["Fit"], "unschedulablePlugins", id="another rejecting plugin"),
        pytest.param(("preemption", "candidates", "d", "victims"), [], "candidate", id="other victims in the dry run"),
        pytest.param(("preemption", "rejected", "e", "code"), "Error", "dry run of NodeName", id="another dry run"),
    ],
)
def test_finds_and_names_a_difference(path: tuple[str, ...], value: object, field: str) -> None:
    """Any change of an answer is found, under the name of its plugin or field."""
    got = copy.deepcopy(RESULT)
    place = got
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert [name for name, _ in compared(RESULT, got).found] == [field]


def test_an_error_on_one_side_differs() -> None:
    """A case that one side refuses is a difference; if both refuse it, whatever the words, it is none."""
    refused, answered = {"error": "no", "results": []}, {"results": [RESULT]}
    assert Compared(expected=answered, answered=refused, case={}, scored=None).found
    assert not Compared(expected=refused, answered={**refused, "error": "never"}, case={}, scored=None).found


def test_victim_order_is_excluded_only_where_it_is_open() -> None:
    """Other victims are excluded on a node with order ties, and nowhere else."""
    want = copy.deepcopy(RESULT)
    got = copy.deepcopy(RESULT)
    got["preemption"]["candidates"]["d"]["victims"] = ["default/y"]
    assert compared(want, got).rule == ""
    want["preemption"]["candidates"]["d"]["orderTies"] = True
    assert compared(want, got).rule == "victim order"


def test_shared_port_is_excluded_only_where_two_pods_share_one() -> None:
    """A difference about ports is excluded if two running pods have the same host port."""
    got = copy.deepcopy(RESULT)
    got["statuses"]["c"]["reasons"] = []

    def running(node: str) -> dict[str, Any]:
        containers = [{"ports": [{"containerPort": 80, "hostPort": 80}]}]
        return {"kind": "Pod", "spec": {"nodeName": node, "containers": containers}}

    assert compared(RESULT, got, {"objects": [running("n1"), running("n2")]}).rule == ""
    assert compared(RESULT, got, {"objects": [running("n1"), running("n1")]}).rule == "shared host port"


def test_rules_are_documented() -> None:
    """docs/conformance.md lists every rule with its reason, and no other."""
    listed = DOCS.read_text().split("<!-- rules -->")[1].split("<!-- end of rules -->")[0]
    rows = [f"| {rule.name} | {rule.reason} |" for rule in RULES]
    assert listed.strip().splitlines()[2:] == rows


def test_version_bump_changes_all_modules_of_kubernetes_and_no_other() -> None:
    """Staging modules follow k8s.io/kubernetes; klog has versions of its own."""
    before = (
        "require (\n\tk8s.io/api v0.36.3\n\tk8s.io/klog/v2 v2.140.0\n\tk8s.io/kubernetes v1.36.3\n)\n"
        "replace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n"
    )
    after = before.replace("v0.36.3", "v0.37.1").replace("v1.36.3", "v1.37.1")
    assert with_version(before, "1.37.1") == after
