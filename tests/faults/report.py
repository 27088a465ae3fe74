"""One line for each of the 52 tests, and the table of docs/reliability.md.

python -m tests.faults.report               # what the last run found; exit 1 if a test failed or did not run
python -m tests.faults.report --partial     # the same after a run of some of them; exit 1 if one of these failed
python -m tests.faults.report --docs        # keep it in docs/reliability/results.jsonl and write the page's table
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.faults.results import RESULTS, ROOT, Result, read
from tests.faults.sights import SIGHTS

COUNT = 52
ALERTS_BEGIN, ALERTS_END = "<!-- the alerts, made by tests.faults.report -->", "<!-- end of the alerts -->"
PAGE = ROOT / "docs" / "reliability.md"
KEPT_RESULTS = ROOT / "docs" / "reliability" / "results.jsonl"
BEGIN, END = "<!-- the table, made by tests.faults.report -->", "<!-- end of the table -->"
SUM_OF = ("lost", "double bookings", "double binds", "writes after lease end")
"""The criteria of the last line."""


def by_number(results: Iterable[Result]) -> Mapping[int, list[Result]]:
    """Return the results of each number; a number may have several tests."""
    found: dict[int, list[Result]] = {}
    for result in results:
        found.setdefault(result.number, []).append(result)
    return found


def lines(results: Sequence[Result]) -> list[str]:
    """Return a line for each number, and the sums of the promises."""
    found = by_number(results)
    rows = [_line(number, found.get(number, [])) for number in range(1, COUNT + 1)]
    return [*rows, totals(results)]


def not_run(results: Iterable[Result]) -> list[int]:
    """Return the numbers that no result is of."""
    return sorted({*range(1, COUNT + 1)} - by_number(results).keys())


def totals(results: Iterable[Result]) -> str:
    """Return the last line: how often each promise was broken, over all tests."""
    kept = list(results)
    return ", ".join(f"{name} {sum(result.promises.get(name, 0) for result in kept)}" for name in SUM_OF)


def _line(number: int, results: Sequence[Result]) -> str:
    if not results:
        return f"{number:>2}   not run"
    star = "★" if any(result.is_starred for result in results) else " "
    figures = "; ".join(str(figure) for result in results for figure in result.figures)
    verdict = _verdict(results)
    seeds = " ".join(str(result.seed) for result in results)
    return f"{number:>2} {star} {verdict}  {_faults(results)}: {figures or _promises(results)}  [seed {seeds}]"


def _faults(results: Sequence[Result]) -> str:
    """Return what the tests of one number are about, each fault once."""
    return "; ".join(dict.fromkeys(result.fault for result in results))


def _verdict(results: Sequence[Result]) -> str:
    """Return pass only if every test passed, and every figure was met as it stands."""
    if not all(result.is_passed for result in results):
        return "FAIL"
    return "pass" if all(figure.is_met for result in results for figure in result.figures) else "slow"


def _promises(results: Sequence[Result]) -> str:
    broken = {name: count for result in results for name, count in result.promises.items() if count}
    return ", ".join(f"{name} {count}" for name, count in broken.items()) or "promises kept"


def table(results: Sequence[Result]) -> str:
    """Return the table of docs/reliability.md."""
    head = "| # | fault | required | measured | verdict | date | seed |\n|--:|---|---|---|---|---|--:|\n"
    found = by_number(results)
    return head + "".join(_row(number, found.get(number, [])) for number in range(1, COUNT + 1))


def _row(number: int, results: Sequence[Result]) -> str:
    if not results:
        return f"| {number} | | | | not run | | |\n"
    star = " ★" if any(result.is_starred for result in results) else ""
    figures = [figure for result in results for figure in result.figures]
    required = "<br>".join(
        dict.fromkeys(f"{figure.name} {figure.required} {figure.unit}".rstrip() for figure in figures)
    )
    measured = "<br>".join(f"{figure.name} {figure.measured:g} {figure.unit}".rstrip() for figure in figures)
    fault = _cell(_faults(results)) + "".join(f"<br>*{_cell(note)}*" for note in _notes(results))
    dates = max(result.date for result in results)[:10]
    seeds = " ".join(str(result.seed) for result in results)
    cells = (f"{number}{star}", fault, required or "C", measured or _promises(results), _verdict(results), dates, seeds)
    return f"| {' | '.join(cells)} |\n"


def _notes(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(note for result in results for note in result.notes))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def alerts() -> str:
    """Return the table of the alerts and the faults that bring them about."""
    head = "| alert | fault | its condition came true |\n|---|--:|---|\n"
    rows = [(s.alert, str(s.number), f"no: {s.short_of}" if s.short_of else "yes") for s in SIGHTS]
    return head + "".join(f"| [{a}](runbooks/{a}.md) | {number} | {said} |\n" for a, number, said in sorted(rows))


def with_alerts(text: str) -> str:
    """Return the page with the present table of alerts."""
    before, _, rest = text.partition(ALERTS_BEGIN)
    _, _, after = rest.partition(ALERTS_END)
    return f"{before}{ALERTS_BEGIN}\n\n{alerts()}\n{ALERTS_END}{after}"


def page(text: str, results: Sequence[Result]) -> str:
    """Return the page with the table of these results, and their sums."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(results)}\nOver all: {totals(results)}.\n\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Print the lines; with ``--docs`` write the page too.

    Returns:
        1 if a test failed, or if one of the numbers was not run; with ``--partial`` or ``--docs`` not all have to be.
    """
    results = read(RESULTS) if RESULTS.exists() else []
    print("\n".join(lines(results)))
    if "--docs" in arguments:
        KEPT_RESULTS.parent.mkdir(parents=True, exist_ok=True)
        merge(results, KEPT_RESULTS)
        PAGE.write_text(with_alerts(page(PAGE.read_text(), read(KEPT_RESULTS))))
    missing = [] if {"--partial", "--docs"} & {*arguments} else not_run(results)
    if missing:
        print(f"without a result: {', '.join(map(str, missing))}", file=sys.stderr)
    return 0 if all(result.is_passed for result in results) and not missing else 1


def merge(results: Sequence[Result], file: Path) -> None:
    """Put results into a file in the place of the former ones of the same tests."""
    former = read(file) if file.exists() else []
    latest = {result.test: result for result in [*former, *results]}
    file.unlink(missing_ok=True)
    for result in sorted(latest.values(), key=lambda result: (result.number, result.test)):
        result.append_to(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
