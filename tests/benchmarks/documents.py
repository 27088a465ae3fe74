"""Result files: what was measured, on which machine, by which command. They can be read back and put together.

One document is one invocation. Ratios are made within an invocation only, run by run, because the machine may have been
another one, or busier, the next time.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.benchmarks import machine

REPOSITORY = Path(__file__).resolve().parents[2]
OUTPUT = REPOSITORY / "build" / "benchmarks"
SIDE_BY_SIDE, CORE, PREEMPTION, STEADY, PLUGINS = "side-by-side", "core", "preemption", "steady", "plugins"
KINDS = (SIDE_BY_SIDE, CORE, PREEMPTION, STEADY, PLUGINS)

Result = dict[str, Any]


class NotAResultFileError(ValueError):
    """The file was not written by a benchmark; the message names it."""


@dataclass(slots=True)
class Document:
    """Results of one invocation.

    Attributes:
        kind: one of ``KINDS``.
        path: where it is kept.
        facts: machine, date and versions (``machine.facts``).
        command: what was typed.
        method: in one sentence.
        notes: what was left out, and why.
        results: one entry a run or case.
    """

    kind: str
    path: Path
    facts: dict[str, Any]
    command: str
    method: str = ""
    notes: list[str] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    @classmethod
    def new(cls, kind: str, path: Path, *, method: str = "") -> Self:
        """Return an empty document about this machine, now."""
        return cls(kind, path, machine.facts(), _command(), method)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a document.

        Raises:
            NotAResultFileError: it is none.
        """
        try:
            whole = json.loads(path.read_text())
            return cls(path=path, **whole)
        except (ValueError, TypeError) as error:
            raise NotAResultFileError(f"{path} is not a result file of a benchmark: {error}") from error

    def add(self, *results: Result) -> None:
        """Take results in and save everything, so that an interrupted invocation has lost nothing."""
        self.results += results
        self.save()

    def save(self) -> None:
        """Write the file: one line a result."""
        names = ("kind", "facts", "command", "method", "notes")
        head = json.dumps({name: getattr(self, name) for name in names}, indent=1)
        lines = ",\n".join(f"  {json.dumps(result)}" for result in self.results)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f'{head[:-2]},\n "results": [\n{lines}\n ]\n}}\n')


def merged(documents: Iterable[Document], kind: str) -> list[Result]:
    """Return the results of all documents of a kind; each says in ``session`` from which invocation it is."""
    found: list[Result] = []
    for session, document in enumerate(documents):
        if document.kind == kind:
            found += ({**result, "session": session} for result in document.results)
    return found


def _command() -> str:
    main = sys.modules["__main__"]
    module = getattr(getattr(main, "__spec__", None), "name", None)
    if module is None or not module.startswith("tests.benchmarks"):
        return "a test"
    arguments = [a for a in sys.argv[1:] if "/" not in a]  # directories of this machine tell nobody anything
    return shlex.join(["python", "-m", module, *(a for a in arguments if a != "--output")])
