"""Asks the oracle: cases in, kube-scheduler's answers out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.conformance.generator.feature import Json


def ask(oracle: Path, cases: Iterable[Json], *, workers: int = 2) -> list[Json]:
    """Return the answers, in the order of the cases.

    Raises:
        subprocess.CalledProcessError: the oracle failed; it has said why on standard error.

    """
    lines = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    command = [str(oracle), f"--workers={workers}"]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, check=True, encoding="utf-8")
    return [json.loads(line) for line in done.stdout.splitlines()]
