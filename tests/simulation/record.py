"""A file of what ran: one line a batch of seeds, with what code it ran on, so that a run can be stopped and go on.

{"product": "1f0c…", "model": "77ab…", "first": 0, "count": 500, "when": "2030-01-01", "tally": {…}}
"""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.simulation.many import Tally

__all__ = ["Batch", "Record", "model_digest", "product_digest"]

_ROOT = Path(__file__).resolve().parents[2]

_NO_MODEL = frozenset(
    f"{name}.py"
    for name in (
        "__main__",
        "broken",
        "many",
        "mutations",
        "quiet",
        "record",
        "regressions",
        "report",
        "shrink",
        "test_model",
        "test_simulation",
    )
)
"""Modules that make no history different."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Seeds that ran one after another.

    Attributes:
        product: digest of the scheduler's code; ``model``: of the simulation's.
        first: seed; ``count``: of seeds.
        when: date.
        tally: what they had in them.
    """

    product: str
    model: str
    first: int
    count: int
    when: str
    tally: Tally


class Record:
    """Batches in a file.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.product = product_digest()
        self.model = model_digest()
        lines = path.read_bytes().splitlines() if path.exists() else []
        self.batches = [msgspec.json.decode(line, type=Batch) for line in lines]

    def has(self, first: int, count: int) -> bool:
        """Say whether these seeds have run on the present code."""
        wanted = (self.product, self.model, first, count)
        return any((each.product, each.model, each.first, each.count) == wanted for each in self.batches)

    def add(self, first: int, count: int, tally: Tally) -> None:
        """Write a batch down."""
        today = dt.datetime.now(dt.UTC).date().isoformat()
        batch = Batch(self.product, self.model, first, count, today, tally)
        self.batches.append(batch)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(batch) + b"\n")

    def total(self) -> Tally:
        """Return the sum of the batches that ran on the present code."""
        tally = Tally()
        for each in self.batches:
            if (each.product, each.model) == (self.product, self.model):
                tally.add(each.tally)
        return tally


def product_digest() -> str:
    """Return what stands for the scheduler's code as it is."""
    return _digest("scheduler")


def model_digest() -> str:
    """Return what stands for the simulation's code as it is: with another one a seed means another history."""
    return _digest("tests/simulation", left_out=_NO_MODEL)


def _digest(folder: str, left_out: frozenset[str] = frozenset()) -> str:
    digest = hashlib.sha256()
    for path in sorted((_ROOT / folder).rglob("*.py")):
        if path.name in left_out:
            continue
        digest.update(f"{path.relative_to(_ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
