"""A file of what ran: one line a batch of seeds, with what code it ran on, so that a run can be stopped and go on.

{"product": "1f0c…", "model": "77ab…", "first": 0, "count": 500, "when": "2030-01-01", "tally": {…}}
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.simulation.many import Tally

__all__ = ["Batch", "Record", "model_digest", "product_digest", "product_files"]

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

_LOADS = """
import sys
import tests.simulation.history
files = {name: module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "scheduler"}
print(*files.values(), sep="\\n")
"""
"""Prints the names of those files. Nothing is loaded later: a test sees to that."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Seeds that ran one after another.

    Attributes:
        product: digest of the scheduler's modules that a history loads; ``model``: of the simulation's.
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


@functools.cache
def product_digest() -> str:
    """Return what stands for the scheduler's code as it is, as far as a history loads it: not the command line, say."""
    return _digest(product_files())


def product_files() -> list[Path]:
    """Return the files of the scheduler that a history loads."""
    shown = subprocess.run([sys.executable, "-c", _LOADS], cwd=_ROOT, check=True, capture_output=True, text=True)
    return [Path(line) for line in shown.stdout.splitlines()]


def model_digest() -> str:
    """Return what stands for the simulation's code as it is: with another one a seed means another history."""
    return _digest(path for path in (_ROOT / "tests/simulation").rglob("*.py") if path.name not in _NO_MODEL)


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(_ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
