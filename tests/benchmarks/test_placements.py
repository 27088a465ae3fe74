"""The checker finds broken rules between pods; those of single nodes are the integration checker's own tests."""

from __future__ import annotations

import pytest

from tests.benchmarks.objects import ZONE, node, pod
from tests.benchmarks.placements import problems

NODES = [{**node(f"n{i}", zone=f"z{i % 2}")} for i in range(4)]
NAMESPACES = [{"metadata": {"name": "ns", "labels": {"team": "devops"}}}]


def placed(name, on, labels=None, **spec):
    made = pod(name, "ns", labels=labels, node_name=on, spec=spec)
    return {**made, "status": {"phase": "Pending"}}


def affinity(kind, key=ZONE):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
           "labelSelector": {"matchLabels": {"app": "a"}}}]  # fmt: skip
A = {"app": "a"}


@pytest.mark.parametrize(
    ("pods", "wrong"),
    [
        pytest.param([placed("p", "n0", A, affinity=affinity("podAntiAffinity")), placed("q", "n1", A)], "",
                     id="repelled pods in different zones are fine"),
        pytest.param([placed("p", "n0", A, affinity=affinity("podAntiAffinity")), placed("q", "n2", A)], "repels",
                     id="a repelled pod in the same zone is found"),
        pytest.param([placed("p", "n0", None, affinity=affinity("podAffinity")), placed("q", "n2", A)], "",
                     id="an attracted pod beside its friend is fine"),
        pytest.param([placed("p", "n0", None, affinity=affinity("podAffinity")), placed("q", "n1", A)], "needs",
                     id="an attracted pod without friend is found"),
        pytest.param([placed("p", "n0", A, affinity=affinity("podAffinity"))], "",
                     id="the first of a group may stand alone"),
        pytest.param([placed(f"p{i}", f"n{i}", A, topologySpreadConstraints=SPREAD) for i in range(3)], "",
                     id="a skew of one is allowed"),
        pytest.param([placed(f"p{i}", on, A, topologySpreadConstraints=SPREAD) for i, on in enumerate(("n0", "n2"))],
                     "maxSkew", id="a skew of two is found, empty zones counted"),
        pytest.param([placed("p", "gone")], "does not exist", id="a node that does not exist is found"),
    ],
)  # fmt: skip
def test_problems_name_the_broken_rule(pods, wrong):
    """Each case breaks at most one rule."""
    found = problems(NODES, pods, NAMESPACES)

    assert bool(found) == bool(wrong), found
    assert all(wrong in problem for problem in found)
