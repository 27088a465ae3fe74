"""Markdown tables; no third-party packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOTHING = "\N{EN DASH}"
"""A cell without a value."""


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table; numbers stand to the right."""
    shown = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *shown]) for i in range(len(header))]
    is_number = [all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, is_number, strict=True))
        return f"| {' | '.join(padded)} |"

    rule = (f"{'-' * (w - 1)}:" if right else "-" * w for w, right in zip(widths, is_number, strict=True))
    return "\n".join([line(list(header)), f"| {' | '.join(rule)} |", *map(line, shown)])


def _shown(cell: Any) -> str:
    if cell is None:
        return NOTHING
    if isinstance(cell, float):
        return f"{cell:,.2f}" if abs(cell) < 10 else f"{cell:,.1f}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
