"""Tolerations against taints."""

from __future__ import annotations

import pytest

from scheduler.model.pod import Toleration
from scheduler.model.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, find_untolerated, tolerates

TAINT = Taint("dedicated", "gpu", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("dedicated", "Equal", "gpu", NO_SCHEDULE), True, id="all fields equal"),
        pytest.param(Toleration("dedicated", "", "gpu", NO_SCHEDULE), True, id="no operator means Equal"),
        pytest.param(Toleration("dedicated", "Equal", "gpu"), True, id="no effect covers every effect"),
        pytest.param(Toleration("dedicated", "Equal", "cpu"), False, id="other value"),
        pytest.param(Toleration("dedicated", "Exists"), True, id="Exists ignores the value"),
        pytest.param(Toleration("dedicated", "Exists", "cpu"), True, id="Exists ignores even a stated value"),
        pytest.param(Toleration("", "Exists"), True, id="no key covers every key"),
        pytest.param(Toleration("", "Equal", "gpu"), True, id="no key, equal value"),
        pytest.param(Toleration("other", "Exists"), False, id="other key"),
        pytest.param(Toleration("dedicated", "Exists", "", NO_EXECUTE), False, id="other effect"),
        pytest.param(Toleration("dedicated", "In", "gpu"), False, id="unknown operator"),
        pytest.param(Toleration("dedicated", "Gt", "1"), False, id="comparison without the gate"),
    ],
)
def test_tolerates(toleration: Toleration, expected: bool) -> None:
    """Empty fields widen a toleration."""
    assert tolerates(toleration, TAINT) is expected


@pytest.mark.parametrize(
    ("operator", "threshold", "actual", "expected"),
    [
        pytest.param("Lt", "10", "9", True, id="the taint is below"),
        pytest.param("Lt", "10", "10", False, id="equal is not below"),
        pytest.param("Gt", "-5", "-4", True, id="the taint is above"),
        pytest.param("Gt", "5", "5", False, id="equal is not above"),
        pytest.param("Gt", "05", "9", False, id="leading zero"),
        pytest.param("Gt", "+5", "9", False, id="plus sign"),
        pytest.param("Gt", "5", "nine", False, id="no number"),
        pytest.param("Gt", "5", "", False, id="no value"),
        pytest.param("Gt", "5", "9223372036854775808", False, id="beyond int64"),
    ],
)
def test_comparison_operators(operator: str, threshold: str, actual: str, expected: bool) -> None:
    """With the gate, Lt and Gt compare the taint's number with the toleration's."""
    taint = Taint("level", actual, NO_SCHEDULE)
    assert tolerates(Toleration("level", operator, threshold), taint, comparison_operators=True) is expected


def test_the_first_untolerated_taint_of_the_effects_is_found() -> None:
    """Order is the node's; other effects are passed over."""
    taints = [Taint("a", "", PREFER_NO_SCHEDULE), Taint("b", "", NO_EXECUTE), Taint("c", "", NO_SCHEDULE)]
    effects = frozenset({NO_SCHEDULE, NO_EXECUTE})
    assert find_untolerated(taints, (), effects) == taints[1]
    assert find_untolerated(taints, (Toleration("b", "Exists"),), effects) == taints[2]
    assert find_untolerated(taints, (Toleration("", "Exists"),), effects) is None
    assert find_untolerated(taints[:1], (), effects) is None
