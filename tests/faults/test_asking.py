"""Whoever decides has to say what it believes; silence is noted, with its reason, and so is that nobody is there to ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from tests.faults.asking import Answers, ask
from tests.faults.history.record import Belief

ELECTED = ("podium-a", "podium-b")
DUMP = (
    '{"msg": "cached node", "node": "n", "deleted": false, "allocatable": {}, "pods": []}\n'
    '{"msg": "scheduling queue", "pending": []}\n'
)
TRUTH = {"n": frozenset()}


@dataclass
class Scheduler:
    """As the supervisor shows it; `answer` is what SIGUSR2 adds to its log, None that it ends of it."""

    name: str = "a"
    leads: bool = True
    is_ready: bool = True
    is_running: bool = True
    is_wanted: bool = True
    answer: str | None = DUMP
    before: str = ""
    asked: list[object] = field(default_factory=list)

    @property
    def user(self):
        return f"podium-{self.name}"

    @property
    def daemon(self):
        return SimpleNamespace(
            health=lambda path: (200, "ok") if self.is_ready else (500, f"{path} says no"),
            log=lambda: self.before + (self.answer or "" if self.asked else ""),
            schedulers=["podium"],
            process=self,
        )

    def signal(self, number):
        self.asked.append(number)
        self.is_running = self.answer is not None


def asked(*schedulers):
    return ask(schedulers, ELECTED, dump_s=0.0)


def test_who_decides_is_asked():
    """The standby is not: it lists everything anew before it decides."""
    leader, standby = Scheduler("a"), Scheduler("b", leads=False)
    assert asked(leader, standby) == Answers((Belief("a", TRUTH, frozenset(), frozenset(["podium"]), {"n": {}}),))
    assert standby.asked == []


@pytest.mark.parametrize(
    ("mute", "words"),
    [
        pytest.param(Scheduler(answer=""), "a has not said within 0 s", id="no dump"),
        pytest.param(Scheduler(answer="", before=DUMP), "a has not said within 0 s", id="an older dump only"),
        pytest.param(Scheduler(answer=DUMP[:80]), "a has not said within 0 s", id="half a dump"),
        pytest.param(Scheduler(answer=None), "a ended when it was asked", id="it ends"),
        pytest.param(Scheduler(is_ready=False), "a decides and is not ready: /readyz says no", id="not ready"),
    ],
)
def test_silence_is_no_proof(mute, words):
    """Also when somebody else, who is in no election, has told the truth."""
    answers = asked(mute, Scheduler("w"))
    assert [belief.scheduler for belief in answers.beliefs] == ["w"]
    (why,) = answers.unheard
    assert words in why


@pytest.mark.parametrize(
    ("schedulers", "unheard"),
    [
        pytest.param([Scheduler("a", leads=False)], ["nobody leads, of a"], id="no leader"),
        pytest.param([Scheduler("a", leads=False), Scheduler("b", is_running=False)], ["nobody leads, of a, b"],
                     id="no leader of two, one of them is gone"),
        pytest.param([Scheduler("a", is_running=False), Scheduler("b")], [], id="the other one leads"),
        pytest.param([Scheduler("w", leads=False)], ["w takes part in no election and does not decide"],
                     id="alone, and does not decide"),
        pytest.param([Scheduler("w", is_running=False), Scheduler("a")],
                     ["w takes part in no election and does not decide"], id="alone, and gone"),
        pytest.param([Scheduler("a", is_running=False, is_wanted=False)], [], id="all were asked to end"),
        pytest.param([Scheduler("a", is_running=False, is_wanted=False), Scheduler("b", leads=False)],
                     ["nobody leads, of b"], id="nobody has taken over from one that was asked to end"),
        pytest.param([], [], id="a test without schedulers"),
    ],
)  # fmt: skip
def test_somebody_has_to_decide(schedulers, unheard):
    """Unless all that could have been asked to end."""
    assert asked(*schedulers).unheard == tuple(unheard)
