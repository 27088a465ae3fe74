"""Each command of the bench's page selects a test."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.faults.selections import PAGE, ROOT, commands


@pytest.mark.timeout(300)
def test_each_command_selects_a_test() -> None:
    """A name that has changed, or an id with spaces that `-k` cannot find, would make a row of the page mean nothing."""
    asked = [sys.executable, "-m", "tests.faults.selections"]
    done = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    selected = json.loads(done.stdout)
    assert selected.keys() == {command.text for command in commands(PAGE.read_text())}
    assert len(selected) >= 35
    assert [command for command, count in selected.items() if not count] == []


def test_every_row_of_the_track_record_has_a_command() -> None:
    """Or is shown by that of the row before."""
    record = PAGE.read_text().split("## Track record")[1].split("\n## ")[0]
    rows = [line for line in record.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 45
    assert [row for row in rows if not commands(row) and not row.endswith("| the same |")] == []


def test_commands_are_read_with_their_options() -> None:
    """From tables and from indented blocks, without what is said about them."""
    text = """
    pytest tests/faults --faults -k crash --fault-seed 7      # one test again
    make soak
    pytest tests                                              # all of them
| a bug | `pytest tests/unit tests/fuzz -k "a or b"`, `pytest tests/unit/x.py` | the same |
"""
    found = [(command.paths, command.keywords, command.has_faults) for command in commands(text)]
    assert found == [
        (("tests/faults",), "crash", True),
        (("tests/unit", "tests/fuzz"), "a or b", False),
        (("tests/unit/x.py",), "", False),
    ]
