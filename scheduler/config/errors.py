"""What can be wrong with a configuration, and how it is said.

Everything that is wrong is collected and raised once, so that a user repairs a file in one go::

    ConfigError     the file or the flags contradict themselves or the rules: exit 1
    UsageError      the command line cannot be read: exit 2

The texts follow upstream's ``path: Kind: detail`` form (``apimachinery/pkg/util/validation/field``), because people
search for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "ConfigError",
    "Path",
    "Problem",
    "UsageError",
    "aggregate",
    "duplicate",
    "forbidden",
    "go_value",
    "invalid",
    "join",
    "not_supported",
    "required",
]

Path = tuple[str | int, ...]
"""Keys and list positions from the root of a document."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: where, as ``profiles[0].schedulerName``; "" for the file as a whole.
        text: the full sentence as it is printed; most begin with the path.
    """

    path: str
    text: str

    @property
    def message(self) -> str:
        """Return the text without its path."""
        return self.text.removeprefix(f"{self.path}: ") if self.path else self.text


class ConfigError(ValueError):
    """A configuration is refused.

    Attributes:
        details: all problems, in the order of the file.
    """

    def __init__(self, problems: Iterable[Problem | str]) -> None:
        self.details = tuple(p if isinstance(p, Problem) else Problem("", p) for p in problems)
        super().__init__(aggregate(self.problems))

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the texts of all problems."""
        return tuple(problem.text for problem in self.details)


class UsageError(ValueError):
    """The command line cannot be understood."""


def aggregate(texts: Iterable[str]) -> str:
    """Join texts as Go's aggregate does: one stands alone, several stand in brackets, repeated ones once."""
    unique = tuple(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def join(path: Path) -> str:
    """Write a path as ``profiles[0].schedulerName``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:  # a step that is written in brackets already is a map key
            text += f".{step}" if text and not step.startswith("[") else step
    return text


def go_value(value: object) -> str:
    """Print a value as upstream's field errors do: numbers plainly, texts quoted, the rest as compact JSON."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid(path: Path, value: object, detail: str) -> Problem:
    """Say that a value is not allowed."""
    return _problem(path, f"Invalid value: {go_value(value)}: {detail}")


def duplicate(path: Path, value: object) -> Problem:
    """Say that a value occurs twice where it may occur once; a `Path` is printed as a path."""
    text = join(value) if isinstance(value, tuple) else go_value(value)
    return _problem(path, f"Duplicate value: {text}")


def not_supported(path: Path, value: str, supported: Iterable[str]) -> Problem:
    """Say that a value is not one of the allowed ones."""
    allowed = ", ".join(go_value(item) for item in supported)
    return _problem(path, f"Unsupported value: {go_value(value)}: supported values: {allowed}")


def required(path: Path, detail: str = "") -> Problem:
    """Say that a value is missing."""
    return _problem(path, f"Required value: {detail}" if detail else "Required value")


def forbidden(path: Path, detail: str) -> Problem:
    """Say that a field must not be there."""
    return _problem(path, f"Forbidden: {detail}")


def _problem(path: Path, body: str) -> Problem:
    where = join(path)
    return Problem(where, f"{where}: {body}")
