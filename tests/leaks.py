"""What must never stand in a log: private keys and tokens, and what could break out of its line.

Every log that the suite writes is searched: those of processes when their control plane is stopped
(`ControlPlane.stop`), those that product code writes inside a test when pytest reports the test (`tests/conftest.py`).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_SHAPES = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a signed token": re.compile(r"\beyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    "a bearer token": re.compile(r"(?i)\bbearer +[A-Za-z0-9._~+/-]{16,}"),
}
_KEY_LINE_CHARS = 48
"""A line of base64 in a PEM file has 64; a part of one is too much already."""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?:DEBUG|INFO|WARNING|ERROR) ")
_JSON_KEYS = {"ts", "level", "msg", "logger"}


class LeakError(AssertionError):
    """A log holds what it must not; the message names file and line, and repeats nothing of it."""


def secrets_of(directory: Path) -> set[str]:
    """Return pieces of every private key in the PEM files of a directory and below."""
    pieces: set[str] = set()
    for file in directory.rglob("*.key"):
        lines = file.read_text(errors="replace").splitlines()
        pieces |= {line[:_KEY_LINE_CHARS] for line in lines if len(line) >= _KEY_LINE_CHARS and "-----" not in line}
    return pieces


def leaks(text: str, secrets: Iterable[str] = ()) -> Iterator[str]:
    """Yield what is wrong with each line: which secret it has, never the secret itself."""
    known = set(secrets)
    coded = {base64.b64encode(secret.encode()).decode().rstrip("=")[:-2] for secret in known}
    for number, line in enumerate(text.splitlines(), 1):
        for what, shape in _SHAPES.items():
            if shape.search(line):
                yield f"line {number} has {what}"
        if any(secret in line for secret in known):
            yield f"line {number} has a secret of the test"
        if any(secret in line for secret in coded):
            yield f"line {number} has a secret of the test in base64"


def broken_lines(text: str) -> Iterator[str]:
    """Yield what is wrong with the lines of a log of Podium: each must be one event, in one of the two formats.

    What the interpreter itself says when it dies, and the messages before there is a log, are not lines of the log; the
    last line may have been cut by a SIGKILL.
    """
    for number, line in enumerate(text.split("\n")[:-1], 1):
        if found := _CONTROL.search(line):
            yield f"line {number} has the control character {found[0]!r}"
        elif line.startswith("{") and not _is_event(line):
            yield f"line {number} begins like JSON and is no event: {line[:120]!r}"
        elif line and line[0].isdigit() and not _TEXT_LINE.match(line):
            yield f"line {number} begins like an event and is none: {line[:120]!r}"


def _is_event(line: str) -> bool:
    try:
        event = json.loads(line)
    except ValueError:
        return False
    return isinstance(event, dict) and event.keys() >= _JSON_KEYS


def check_logs(directory: Path) -> int:
    """Search all logs in a directory; returns how many there were.

    Raises:
        LeakError: a secret stands in one, or a line of Podium's is not what a line must be.
    """
    secrets = secrets_of(directory)
    found: list[str] = []
    logs = sorted(directory.glob("*.log"))
    for log in logs:
        text = log.read_text(errors="replace")
        found += [f"{log.name}: {leak}" for leak in leaks(text, secrets)]
        if log.name.startswith("podium"):
            found += [f"{log.name}: {line}" for line in broken_lines(text)]
    if found:
        raise LeakError("\n".join(found[:20]))
    return len(logs)
