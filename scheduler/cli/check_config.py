"""``podium check-config FILE``: says whether the daemon would start with this file, and everything that is wrong.

Exit codes: 0 the file is good, 1 it is not, 2 the command line cannot be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.config.errors import ConfigError, Problem, UsageError
from scheduler.config.flags import read_file
from scheduler.config.gates import FeatureGates, parse_feature_gates
from scheduler.config.load import Loaded, load_with_notes

if TYPE_CHECKING:
    from scheduler.framework.registry import Registry

__all__ = ["USAGE", "check_config"]

USAGE = "usage: podium check-config FILE [--output text|json] [--feature-gates LIST]"
_OUTPUTS = ("text", "json")


@dataclass(frozen=True, slots=True)
class _Arguments:
    file: str
    output: str
    gates: FeatureGates


def check_config(argv: Sequence[str], installed: Callable[[], Registry] | None = None) -> int:
    """Check a file and print the result.

    Args:
        argv: the words after ``check-config``.
        installed: returns the plugins that could be loaded, of which those that the file names are; None stands for
            Podium's and those of installed packages.

    Returns:
        The exit code.
    """
    if "-h" in argv or "--help" in argv:
        print(USAGE)
        return 0
    try:
        arguments = _parse(argv)
    except UsageError as error:
        print(f"error: {error}\n{USAGE}", file=sys.stderr)
        return 2
    problems, notes = _check(arguments, installed)
    if arguments.output == "json":
        _print_json(arguments.file, problems, notes)
    else:
        _print_text(arguments.file, problems, notes)
    return 1 if problems else 0


def _parse(argv: Sequence[str]) -> _Arguments:
    files: list[str] = []
    values = {"output": "text", "feature-gates": ""}
    words = iter(argv)
    for word in words:
        if word.startswith("-") and word != "-":
            name, equals, value = word.removeprefix("--").removeprefix("-").partition("=")
            name = {"o": "output"}.get(name, name)
            if name not in values:
                raise UsageError(f"unknown flag: {word}")
            taken = value if equals else next(words, None)
            if taken is None:
                raise UsageError(f"flag needs an argument: {word}")
            values[name] = taken
        else:
            files.append(word)
    if len(files) != 1:
        raise UsageError("exactly one FILE is needed")
    if values["output"] not in _OUTPUTS:
        raise UsageError(f"--output must be one of {', '.join(_OUTPUTS)}, not {values['output']!r}")
    return _Arguments(files[0], values["output"], parse_feature_gates([values["feature-gates"]]))


def _check(
    arguments: _Arguments, installed: Callable[[], Registry] | None
) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    try:
        data = sys.stdin.buffer.read() if arguments.file == "-" else read_file(arguments.file)
        loaded: Loaded = load_with_notes(data, arguments.gates)
    except ConfigError as error:
        return error.details, ()
    from scheduler.cli.configuration_problems import (  # noqa: PLC0415  most of a start's time
        configuration_problems,
        installed_plugins,
    )

    registry = (installed or installed_plugins)()
    return tuple(configuration_problems(loaded.configuration, registry)), loaded.notes


def _print_text(file: str, problems: Sequence[Problem], notes: Sequence[str]) -> None:
    for problem in problems:
        print(problem.text)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if not problems:
        print(f"{file}: ok")


def _print_json(file: str, problems: Sequence[Problem], notes: Sequence[str]) -> None:
    report = {
        "file": file,
        "ok": not problems,
        "problems": [{"path": problem.path, "message": problem.message} for problem in problems],
        "notes": list(notes),
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))
