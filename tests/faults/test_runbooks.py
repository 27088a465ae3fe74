"""Runbooks and alerts name only what exists, each alert is tried or said not to be, and the trial can fail."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.monitoring.generate.alerts import ALERTS
from tests.faults.history.record import Sample
from tests.faults.results import ROOT
from tests.faults.runbooks import KNOWN, OURS, Runbook, check, expressions, metrics_of, without_result
from tests.faults.sights import SHOWN, SIGHTS, Sight

NAMES = sorted({alert.name for alert in ALERTS})
CONFLICT = next(sight for sight in SIGHTS if sight.alert == "BindConflictRate")


def fault_tests() -> dict[str, set[int]]:
    """Return the numbers in the markers of each fault test, by its function."""
    found: dict[str, set[int]] = {}
    for file in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                marks = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
                numbers = {ast.literal_eval(m.args[0]) for m in marks if ast.unparse(m.func) == "fault"}
                if numbers:
                    found[node.name] = numbers
    return found


def test_each_alert_is_brought_about() -> None:
    assert sorted({sight.alert for sight in SIGHTS}) == NAMES


def test_the_faults_exist() -> None:
    tests = fault_tests()
    assert {sight.test: sight.number for sight in SIGHTS if sight.number not in tests.get(sight.test, ())} == {}
    assert SHOWN.keys() <= tests.keys()


@pytest.mark.parametrize("sight", SIGHTS, ids=lambda sight: sight.alert)
def test_what_is_looked_for_stands_in_the_runbook(sight: Sight) -> None:
    """Words of the log, of readiness, and the pieces that are left out."""
    text = Runbook.read(sight.alert).text.lower()
    words = [*sight.logs, *sight.pages, *sight.unseen]
    assert [each for each in words if each.strip('":').lower() not in text] == []
    assert [each for each in sight.names if each not in Runbook.read(sight.alert).text] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_names_metrics_that_exist(name: str) -> None:
    """Of ours; those of others' programs are theirs."""
    named = {metric for code in Runbook.read(name).codes if "kubectl" not in code for metric in metrics_of(code)}
    assert {metric for metric in named if metric.startswith(OURS)} - KNOWN == set()


def _samples(lost: int) -> list[Sample]:
    """Return a minute in which of a hundred binds so many were lost."""
    return [
        Sample(
            "a",
            "podium-a",
            0,
            0.0,
            1_000.0 + second,
            1_000.1 + second,
            ready=200,
            page="readyz check passed",
            live=200,
            metrics=(
                f'podium_bind_outcomes_total{{outcome="lost"}} {lost * second / 60}',
                f'podium_bind_outcomes_total{{outcome="bound"}} {(100 - lost) * second / 60}',
            ),
        )
        for second in range(60)
    ]


SCHEDULED = [("Scheduled", "Successfully assigned default/p to n")]


def test_an_alert_that_sees_its_fault_passes(tmp_path: Path) -> None:
    assert check(CONFLICT, _samples(20), "", SCHEDULED, tmp_path) == []


def test_an_alert_that_is_blind_is_seen(tmp_path: Path) -> None:
    """4 % are below its limit, and without a lost bind a query of ours has no result."""
    (blind,) = check(CONFLICT, _samples(4), "", SCHEDULED, tmp_path)
    assert blind.startswith("BindConflictRate: never a result: ((sum by (namespace, job) (rate(")
    assert len(check(CONFLICT, _samples(0), "", SCHEDULED, tmp_path)) == 2


def test_a_runbook_that_finds_nothing_is_seen(tmp_path: Path) -> None:
    """An event that nobody wrote; a grep of the log; words of the log and of readiness."""
    assert check(CONFLICT, _samples(20), "", [], tmp_path) == ["BindConflictRate: no event Scheduled"]
    drift = replace(next(s for s in SIGHTS if s.alert == "CacheDrift"), short_of="here", shows=(), pages=("never",))
    queries = tuple(Runbook.read("CacheDrift").queries)
    missing = check(replace(drift, unseen=queries), _samples(0), "nothing", [], tmp_path)
    assert [each.partition(": ")[2] for each in missing] == [
        '`kubectl -n NAMESPACE logs POD | grep -i -e "differs from the api server" -e "cache mismatched"` finds nothing',
        *(f"the log does not say {words!r}" for words in drift.logs),
        "/readyz?verbose does not say 'never'",
    ]


@pytest.mark.parametrize(("days", "sees"), [pytest.param(3, True, id="soon"), pytest.param(9, False, id="not soon")])
def test_moments_are_compared_with_the_moment_of_the_recording(tmp_path: Path, days: int, sees: bool) -> None:
    """An end in three days is within a week, one in nine is not."""
    end = f'podium_certificate_expiry_timestamp_seconds{{certificate="serving"}} {1_000 + days * 86_400}'
    ending = [replace(sample, metrics=(end,)) for sample in _samples(0)]
    (expression,) = expressions("CertificateExpiring")
    assert without_result([expression], ending, tmp_path) == ([] if sees else [expression])


def test_a_process_that_is_not_asked_is_scraped_in_vain(tmp_path: Path) -> None:
    """Its series end, as in Prometheus: what it said last does not hold on."""
    first, *_, last = _samples(0)
    leads = tuple(
        replace(sample, metrics=('leader_election_master_status{name="podium"} 1',)) for sample in (first, last)
    )
    gone = "absent(leader_election_master_status)"
    assert without_result([gone], leads, tmp_path) == []
    assert without_result([gone], [replace(leads[0], answered_s=1_000.0 + s) for s in range(60)], tmp_path) == [gone]


def test_the_pages_of_runbooks_are_read() -> None:
    """Commands of several lines and pieces in the text."""
    runbook = Runbook.read("WatchStale")
    assert runbook.greps
    assert "podium_watch_staleness_seconds" in runbook.queries
    assert (ROOT / "docs" / "runbooks" / "WatchStale.md").exists()
