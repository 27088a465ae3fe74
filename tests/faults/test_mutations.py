"""The table of deliberate breakages is the one that can be run, and what they break is there to be broken."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.faults import mutations
from tests.faults.mutations import MUTATIONS, SOUND, Mutation, Trial, main
from tests.faults.results import Figure, Result, at_most

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


# --- what counts as caught -------------------------------------------------------------------------------------------

TEST = MUTATIONS[0].test
NO_ETCD = "E   FileNotFoundError: no etcd"
NO_START = "E   AssertionError: not within 30 s: the daemon to be ready; its log:"
NO_PLACE = "E   AssertionError: not within 10 s: the place in bind"


def result(measured: float = 0.0, **promises: int) -> Result:
    made = Result(1, "a fault", f"tests/faults/test_x.py::{TEST}", is_starred=False, seed=1, date="")
    made.figures, made.promises = [Figure.of("N", at_most(3), measured, "")], promises
    made.is_passed = measured <= 3 and not any(promises.values())
    return made


@pytest.mark.parametrize(
    ("trial", "caught_by"),
    [
        (Trial(1, "", (result(G1=2, G2=0),)), ["G1 2"]),
        (Trial(1, "", (result(7),)), ["N 7 (≤ 3)"]),
        (Trial(1, NO_PLACE, (result(),)), ["not within 10 s: the place in bind"]),
        (Trial(1, NO_START, (result(),)), []),
        (Trial(1, NO_PLACE, ()), []),
        (Trial(1, NO_ETCD, ()), []),
        (Trial(0, "", (result(),)), []),
    ],
    ids=["criterion", "figure", "wait", "no scheduler", "no bench", "no control plane", "passed"],
)
def test_what_is_a_catch(trial: Trial, caught_by: list[str]) -> None:
    """What a test says of the product is one; that it could not begin is none."""
    assert trial.caught_by() == caught_by


@pytest.mark.parametrize(
    ("sound", "broken", "code"),
    [
        (Trial(0, "", (result(),)), Trial(1, "", (result(G1=2),)), 0),
        (Trial(0, "", (result(),)), Trial(0, "", (result(),)), 1),
        (Trial(0, "", (result(),)), Trial(1, NO_ETCD, ()), 1),
        (Trial(1, NO_ETCD, ()), Trial(1, "", (result(G1=2),)), 2),
        (Trial(0, "", ()), Trial(1, "", (result(G1=2),)), 2),
    ],
    ids=["caught", "missed", "failed otherwise", "never sound", "not run"],
)
def test_exit_codes(sound: Trial, broken: Trial, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catch means something only where the test passes with nothing broken."""
    monkeypatch.setattr(mutations, "tried", lambda name, tests: sound if name == SOUND else broken)
    assert main([MUTATIONS[0].name]) == code
