"""A test's side of the failpoints: give orders, wait until they are met, let go.

points = Failpoints(directory)
with points.paused("bind.before_send", match="^ns/p$") as moment:
    moment.wait()
    ...                     # what happens just then
# it goes on
"""

from __future__ import annotations

import ast
import functools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.faults.failpoints.__main__ import VARIABLE
from tests.integration.api import eventually

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 60.0


@functools.cache
def names() -> dict[str, str]:
    """Return every failpoint of the product with the place where it is, found in the source.

    Raises:
        AssertionError: a failpoint has no literal name, or a name stands in two places.
    """
    found: dict[str, str] = {}
    for path in sorted((ROOT / "scheduler").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id not in ("failpoint", "async_failpoint"):
                continue
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            first = node.args[0]
            assert isinstance(first, ast.Constant), f"{place}: the name of a failpoint is not a literal"
            assert first.value not in found, f"{place}: {first.value} is at {found[first.value]} already"
            found[first.value] = place
    return found


@dataclass(frozen=True, slots=True)
class Moment:
    """One order.

    Attributes:
        points: all failpoints.
        name: of this one.
        seen: lines that were there before.
    """

    points: Failpoints
    name: str
    seen: int

    def reached(self) -> list[dict[str, Any]]:
        """Return each time that the order was met."""
        return self.points.reached(self.name)[self.seen :]

    def wait(self, times: int = 1, timeout_s: float = WAIT_S) -> dict[str, Any]:
        """Wait until the order has been met so often; returns the last time."""
        eventually(
            lambda: len(self.reached()) >= times, f"failpoint {self.name} to be reached {times} times",
            timeout_s=timeout_s,
        )  # fmt: skip
        return self.reached()[times - 1]


class Failpoints:
    """The failpoints of all processes that look into one directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory

    @property
    def program(self) -> list[str]:
        """What to start instead of `-m scheduler`."""
        return ["-m", "tests.faults.failpoints"]

    def environment(self, others: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """Return the variables that the process needs, beside others."""
        path = os.pathsep.join(filter(None, [others.get("PYTHONPATH"), str(ROOT)]))
        return {VARIABLE: str(self.directory), "PYTHONPATH": path}

    def order(self, name: str, action: str, *, match: str = "", skip: int = 0, times: int = 0) -> Moment:
        """Give an order in place of an earlier one; see `armed.Order`."""
        assert name in names(), f"there is no failpoint {name}"
        moment = Moment(self, name, len(self.reached(name)))
        draft = self.directory / f"{name}.draft"
        draft.write_text(json.dumps({"action": action, "match": match, "skip": skip, "times": times}))
        draft.rename(self.directory / f"{name}.order")
        return moment

    def withdraw(self, name: str) -> None:
        """Take an order away, which lets go whoever is paused there."""
        (self.directory / f"{name}.order").unlink(missing_ok=True)

    def withdraw_all(self) -> None:
        for file in self.directory.glob("*.order"):
            file.unlink(missing_ok=True)

    @contextmanager
    def paused(self, name: str, *, match: str = "", times: int = 0) -> Iterator[Moment]:
        """Pause whoever comes to a failpoint until the block is left."""
        moment = self.order(name, "pause", match=match, times=times)
        try:
            yield moment
        finally:
            self.withdraw(name)

    def reached(self, name: str) -> list[dict[str, Any]]:
        """Return each time that an order at this failpoint was met."""
        try:
            text = (self.directory / f"{name}.reached").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def is_spent(self, name: str) -> bool:
        """Tell whether a deadly order has been carried out."""
        return (self.directory / f"{name}.spent").exists()
