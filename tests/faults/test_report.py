"""The report says what the results say, and the page in docs what the kept results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import report
from tests.faults.loads import recovery_s
from tests.faults.results import PATIENCE, Bound, Figure, Result, at_least, at_most, exactly, read


def _result(number: int, test: str, *, is_passed: bool = True, seconds: float = 2.0, **promises: int) -> Result:
    figure = Figure.of("N", at_most(3), seconds, "s")
    counted = {"lost": 0, "double bookings": 0, "double binds": 0, "writes after lease end": 0} | promises
    return Result(number, "a fault", test, is_starred=True, seed=7, date="2026-01-02T03:04:05+00:00",
                  promises=counted, figures=[figure], is_passed=is_passed)  # fmt: skip


@pytest.mark.parametrize(
    ("bound", "measured", "is_met", "is_accepted"),
    [
        pytest.param(at_most(3), 3.0, True, True, id="at the limit"),
        pytest.param(at_most(3), 5.9, False, True, id="slow, but within patience"),
        pytest.param(at_most(3), 6.1, False, False, id="too slow"),
        pytest.param(at_least(3), 2.9, False, False, id="no patience below a lower bound"),
        pytest.param(exactly(0), 0.0, True, True, id="equal"),
        pytest.param(exactly(0), 1.0, False, False, id="not equal"),
        pytest.param(at_most(3), float("inf"), False, False, id="never"),
    ],
)
def test_durations_alone_may_take_longer(
    monkeypatch: pytest.MonkeyPatch, bound: Bound, measured: float, is_met: bool, is_accepted: bool
) -> None:
    """With a patience of 2; a count is a count on any machine."""
    monkeypatch.setenv(PATIENCE, "2")
    figure = Figure.of("N", bound, measured, "s")
    assert (figure.is_met, figure.is_accepted) == (is_met, is_accepted)
    assert not Figure.of("restarts", at_most(1), 2, "").is_accepted


def test_a_line_for_each_test_and_the_sums(tmp_path: Path) -> None:
    """52 lines: what ran, what failed, what was slow, what did not run; of two runs of a test the last one counts."""
    file = tmp_path / "results.jsonl"
    for result in (
        _result(1, "a", is_passed=False, lost=9),
        _result(1, "a"),
        _result(2, "b", is_passed=False, lost=2),
        _result(2, "c"),
        _result(3, "d", seconds=4.0),
    ):
        result.append_to(file)
    lines = report.lines(read(file))
    assert len(lines) == 53
    assert lines[0] == " 1 ★ pass  a fault: N 2 s (≤ 3)  [seed 7]"
    assert lines[1].startswith(" 2 ★ FAIL")
    assert lines[2].startswith(" 3 ★ slow")
    assert lines[51] == "52   not run"
    assert lines[52] == "lost 2, double bookings 0, double binds 0, writes after lease end 0"


def test_a_number_with_several_tests_names_each_fault() -> None:
    """Once, where two tests are about the same one; in the line and in the table."""
    results = [_result(4, "a"), _result(4, "b"), _result(4, "c"), _result(5, "d")]
    results[1].fault = "another | fault"
    assert report.lines(results)[3].startswith(" 4 ★ pass  a fault; another | fault: N 2 s")
    assert report.lines(results)[4].startswith(" 5 ★ pass  a fault: N 2 s")
    assert "| 4 ★ | a fault; another \\| fault | N ≤ 3 s |" in report.table(results)


def _ends_with(results: list[Result], monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: str) -> int:
    file.unlink(missing_ok=True)
    for result in results:
        result.append_to(file)
    monkeypatch.setattr(report, "RESULTS", file)
    return report.main(arguments)


def test_what_did_not_run_has_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of all ends with failure when a number has no result; a run of some when one of them failed."""
    everything = [_result(number, str(number)) for number in range(1, report.COUNT + 1)]
    some = everything[:6] + everything[7:]
    failed = [*some, _result(7, "7", is_passed=False)]
    file = tmp_path / "results.jsonl"
    assert _ends_with(everything, monkeypatch, file) == 0
    assert _ends_with(some, monkeypatch, file) == 1
    assert capsys.readouterr().err == "without a result: 7\n"
    assert _ends_with(some, monkeypatch, file, "--partial") == 0
    assert _ends_with(failed, monkeypatch, file) == 1
    assert _ends_with(failed, monkeypatch, file, "--partial") == 1
    assert _ends_with([], monkeypatch, file) == 1


def test_make_faults_asks_for_all_of_them() -> None:
    """Without FAULTS; and has promtool at hand before the first test, whose verdict may ask it."""
    makefile = (report.ROOT / "Makefile").read_text()
    rule = makefile.split("\nfaults: ")[1].split("\n\n")[0]
    assert "-m tests.faults.report $(if $(FAULTS),--partial) && exit $$ended" in rule
    assert rule.splitlines()[0] == "dev controlplane prometheus"
    assert "\nsoak: dev controlplane prometheus\n" in makefile


def test_the_page_has_the_table_of_the_kept_results() -> None:
    """`python -m tests.faults.report --docs` writes both."""
    text = report.PAGE.read_text()
    assert report.page(text, read(report.KEPT_RESULTS)) == text


def test_the_page_has_the_table_of_the_alerts() -> None:
    """The same command writes it, from `sights.py`."""
    text = report.PAGE.read_text()
    assert report.with_alerts(text) == text


@pytest.mark.parametrize(
    ("bound_at", "is_complete", "seconds"),
    [
        pytest.param([], False, float("inf"), id="nothing was ever bound"),
        pytest.param([101.0 + i / 10 for i in range(20)], True, 1.0, id="at full rate from the first bind on"),
        pytest.param([101.0, *(105.0 + i / 10 for i in range(20))], True, 5.0, id="one bind, then a pause"),
        pytest.param([101.0 + i / 2 for i in range(8)], True, 4.5, id="all bound, and never at full rate"),
        pytest.param([101.0, 102.0, 104.0], False, float("inf"), id="too slow to the end"),
    ],
)
def test_recovery_begins_with_a_second_at_full_rate(bound_at: list[float], is_complete: bool, seconds: float) -> None:
    """The fault ends at 100 s; the load makes 10 pods a second, so 8 binds in a second are enough."""
    assert recovery_s(bound_at, 100.0, rate=10, is_complete=is_complete) == pytest.approx(seconds)


@pytest.mark.parametrize("bound_at", [[], [90.0, 91.0], [99.0 + i / 5 for i in range(10)]])
def test_recovery_is_not_measured_where_little_was_left_to_bind(bound_at: list[float]) -> None:
    """A load that was over, or nearly, when the fault ended says nothing about the time after it."""
    with pytest.raises(AssertionError, match=r"N was not measured: [0-4] pods were left"):
        recovery_s(bound_at, 100.0, rate=10, is_complete=True)
