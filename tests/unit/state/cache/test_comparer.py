"""The comparer finds what is missing and what is too much."""

import pytest

from scheduler.state.cache.cache import Cache
from scheduler.state.cache.comparer import Comparison, Mismatch, compare, report
from scheduler.testing.builders import node, pod

N1, N2 = node("n1").obj(), node("n2").obj()
A, B, C = (pod(name).uid(name).on("n1").obj() for name in "abc")


def cache_with(nodes, pods):
    cache = Cache()
    for n in nodes:
        cache.add_node(n)
    for p in pods:
        cache.add_pod(p)
    return cache


@pytest.mark.parametrize(
    ("cached_nodes", "cached_pods", "pending", "expected"),
    [
        pytest.param([N1, N2], [A], [B], Comparison(Mismatch(), Mismatch()), id="all is well"),
        pytest.param([N1], [A], [B], Comparison(Mismatch(("n2",)), Mismatch()), id="a node is missing"),
        pytest.param(
            [N1, N2, node("n0").obj()], [A], [B], Comparison(Mismatch((), ("n0",)), Mismatch()), id="a node too many"
        ),
        pytest.param([N1, N2], [A], [], Comparison(Mismatch(), Mismatch(("b",))), id="a pod is missing"),
        pytest.param([N1, N2], [A, C], [B], Comparison(Mismatch(), Mismatch((), ("c",))), id="a pod too many"),
        pytest.param(
            [N1, N2], [A, B], [B], Comparison(Mismatch(), Mismatch((), ("b",))), id="a pod both pending and placed"
        ),
        pytest.param([N2], [A, B], [], Comparison(Mismatch(), Mismatch()), id="a placeholder counts as its node"),
    ],
)
def test_compare(cached_nodes, cached_pods, pending, expected):
    """Listed: nodes n1 and n2, pods a and b."""
    cache = cache_with(cached_nodes, cached_pods)

    found = compare(cache, nodes=[N1, N2], pods=[A, B], pending=pending)

    assert expected == found
    assert (expected == Comparison(Mismatch(), Mismatch())) is found.is_clean


class Lines:
    """A Logger that keeps what it is told."""

    def __init__(self):
        self.lines = []

    def info(self, event, **fields):
        self.lines.append((event, fields))


def test_report_writes_one_line_for_each_kind_that_differs():
    """Silence means agreement."""
    log = Lines()

    report(Comparison(Mismatch(), Mismatch(("a",), ("b",))), log)

    assert log.lines == [("cache mismatched", {"kind": "pods", "missed": ("a",), "redundant": ("b",)})]
