"""Where the API server accepts a hostile object, Podium's verdict is kube-scheduler's, word for word and score by score.

Left out is what a rule of tests/conformance/exclusions.py names, and what a row says of itself (`differs`).
"""

from __future__ import annotations

from collections import Counter

import pytest
import structlog.testing

from scheduler.testing.cases import answer_case
from tests.conformance.compare import Compared
from tests.hostile.table import Row
from tests.hostile.verdicts import ROWS, case_of, digest, read

STORED = read()
ANEW = "the row is new or has changed, run: python -m tests.hostile.verdicts"
EXCLUDED = {"amount beyond int64": 10, "too many affinity terms": 1}


def compared(row: Row) -> Compared:
    case = case_of(row)
    stored = STORED.get(str(row))
    assert stored is not None, ANEW
    assert stored["digest"] == digest(case), ANEW
    with structlog.testing.capture_logs():
        answered = answer_case(case)
    return Compared(expected=stored["answer"], answered=answered, case=case, scored=None)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.differs], ids=str)
def test_same_verdict(row: Row) -> None:
    """See the module."""
    assert compared(row).found == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.differs], ids=str)
def test_what_differs_says_so(row: Row) -> None:
    """A reason that has gone is taken out of the table."""
    assert compared(row).found


def test_rules_touch_no_more_than_they_must() -> None:
    """How many rows each rule leaves out."""
    rules = Counter(rule for row in ROWS if not row.differs and (rule := compared(row).rule))
    assert rules == EXCLUDED
    assert len(ROWS) >= 100
