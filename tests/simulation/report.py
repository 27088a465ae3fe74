"""Writes the tables of docs/explanation/simulation.md: what ran (given a record), and which mutations were caught.

python -m tests.simulation.report [RECORD]
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.simulation.broken import MUTATIONS
from tests.simulation.mutations import known
from tests.simulation.record import Record

_PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/simulation.md"
_MARK = "<!-- below: made by tests.simulation.report -->\n"


def main() -> None:
    """Write the page's lower part anew."""
    head, _, tables = _PAGE.read_text().partition(_MARK)
    runs = _runs(Record(Path(sys.argv[1]))) if len(sys.argv) > 1 else tables[: tables.index("## Mutations")]
    _PAGE.write_text(f"{head}{_MARK}{runs}{_mutations()}")


def _runs(record: Record) -> str:
    lines = [
        "## What ran",
        "",
        "| date | code | histories | deeds | faults | requests | violated |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for product, model in dict.fromkeys((each.product, each.model) for each in record.batches):
        record.product, record.model = product, model
        total = record.total()
        dates = sorted({each.when for each in record.batches if (each.product, each.model) == (product, model)})
        violated = ", ".join(f"{seed}: {what.split(' ')[0]}" for seed, what in sorted(total.violated.items())) or "none"
        numbers = f"{total.histories:,} | {total.deeds:,} | {total.faults:,} | {total.requests:,}"
        lines.append(f"| {dates[-1]} | `{product}`, `{model}` | {numbers} | {violated} |")
    return "\n".join(lines) + "\n\n"


def _mutations() -> str:
    found = known()
    lines = ["## Mutations", "", "| what is broken | where | seed | what it broke |", "|---|---|--:|---|"]
    for each in MUTATIONS:
        seed, violation = (found[each.name].seed, found[each.name].violation) if each.name in found else ("", "missed")
        lines.append(f"| {each.name} | `{each.where}` | {seed} | {violation[:90].replace('|', '/')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
