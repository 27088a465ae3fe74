"""What a fault test found, as a line of JSON: the figures required and measured, and how the promises fared."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "faults" / "results.jsonl"
BROKEN_RESULTS = RESULTS.with_name("mutations.jsonl")
"""Of runs that ask whether the bench is blind, most with schedulers broken on purpose: no figures of the product."""
KEPT = ROOT / "build" / "faults" / "kept"
PATIENCE = "PODIUM_FAULT_PATIENCE"
DEFAULT_PATIENCE = 5.0


def patience() -> float:
    """Return by how much a duration may exceed its figure on a machine that does other work as well."""
    return float(os.environ.get(PATIENCE, DEFAULT_PATIENCE))


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must be.

    Attributes:
        relation: ``≤``, ``≥`` or ``=``.
        value: the limit.
    """

    relation: str
    value: float

    def holds(self, measured: float, factor: float = 1.0) -> bool:
        """Tell whether a figure is within the bound; an upper bound may be exceeded by a factor."""
        if self.relation == "≤":
            return measured <= self.value * factor
        return measured >= self.value if self.relation == "≥" else measured == self.value

    def __str__(self) -> str:
        return f"{self.relation} {self.value:g}"


def at_most(value: float) -> Bound:
    return Bound("≤", value)


def at_least(value: float) -> Bound:
    return Bound("≥", value)


def exactly(value: float) -> Bound:
    return Bound("=", value)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a test.

    Attributes:
        name: e.g. ``N``.
        required: as in ``≤ 3``.
        measured: what it was.
        unit: ``s`` for durations, which alone are allowed more on a noisy machine.
        is_met: as the figure stands.
        is_accepted: with what this run allows.
    """

    name: str
    required: str
    measured: float
    unit: str
    is_met: bool
    is_accepted: bool

    @classmethod
    def of(cls, name: str, required: Bound | float, measured: float, unit: str) -> Figure:
        bound = required if isinstance(required, Bound) else at_most(required)
        factor = patience() if unit == "s" else 1.0
        shown = measured if math.isfinite(measured) else 1e9
        return cls(name, str(bound), round(shown, 3), unit, bound.holds(measured), bound.holds(measured, factor))

    def __str__(self) -> str:
        measured = "never" if self.measured >= 1e9 else f"{self.measured:g}"
        return f"{self.name} {measured} {self.unit}".rstrip() + f" ({self.required})"


@dataclass(slots=True)
class Result:
    """One run of one test.

    Attributes:
        number: in the table of fault tests.
        fault: in words.
        test: its id.
        is_starred: whether CI runs it at every change.
        seed: of whatever was left to chance.
        date: in UTC, ISO 8601.
        seconds: that the test took.
        promises: how often each criterion was broken.
        figures: measured.
        is_passed: the verdict, figures and all.
        notes: what the reader of the table should know.
    """

    number: int
    fault: str
    test: str
    is_starred: bool
    seed: int
    date: str
    seconds: float = 0.0
    patience: float = 1.0
    promises: dict[str, int] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    is_passed: bool = False
    notes: list[str] = field(default_factory=list)

    def append_to(self, file: Path) -> None:
        """Add the result to a file, as one line."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as output:
            output.write(json.dumps(asdict(self), ensure_ascii=False) + "\n")


def parsed(line: str) -> Result:
    """Return a result from its line."""
    record: Mapping = json.loads(line)
    return Result(**record | {"figures": [Figure(**figure) for figure in record["figures"]]})


def read(file: Path) -> list[Result]:
    """Return all results of a file; of several runs of one test the last one counts."""
    found: dict[str, Result] = {}
    for line in file.read_text().splitlines():
        result = parsed(line)
        found.pop(result.test, None)
        found[result.test] = result
    return sorted(found.values(), key=lambda result: (result.number, result.test))
