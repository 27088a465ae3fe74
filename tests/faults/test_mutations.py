"""The table of deliberate breakages is the one that can be run, and what they break is there to be broken."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.faults.mutations import MUTATIONS, Mutation

HERE = Path(__file__).parent


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_what_is_broken_exists(mutation: Mutation) -> None:
    """A renamed function or test would make the mutation mean nothing."""
    module, _, path = mutation.target.partition(":")
    owner = importlib.import_module(module)
    for part in path.split("."):
        owner = getattr(owner, part)
    assert any(f"def {mutation.test}(" in file.read_text() for file in HERE.glob("test_*.py"))


def test_the_page_lists_them() -> None:
    """Each with its test."""
    text = (HERE / "README.md").read_text()
    rows = [f"| `{mutation.name}`: {mutation.what} | `{mutation.test}` |" for mutation in MUTATIONS]
    assert len(rows) >= 10
    assert [row for row in rows if row not in text] == []
