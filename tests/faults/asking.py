"""G5's question: every scheduler that decides is asked what it believes, and who should have answered and did not is noted.

A standby may believe what it likes: it lists everything anew before it decides. One that was asked to end for good need
not answer; for all others silence is no proof of truth.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tests.faults.history import beliefs
from tests.faults.history.record import Belief
from tests.faults.supervisor import SupervisedScheduler

DUMP_S = 30.0
_POLL_S = 0.1
NOT_ASKED = "nobody was asked what he believes: settle() comes before the verdict"


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of asking once.

    Attributes:
        beliefs: what those that decide believe.
        unheard: who should have answered and did not, and why, in words.
    """

    beliefs: tuple[Belief, ...] = ()
    unheard: tuple[str, ...] = ()


def ask(schedulers: Iterable[SupervisedScheduler], elected: Collection[str], dump_s: float = DUMP_S) -> Answers:
    """Ask every scheduler that decides for its cache and queue.

    Args:
        schedulers: all of the test.
        elected: the users of those that take part in the election: one of them must lead; each of the others decides.
        dump_s: how long one may take to answer.
    """
    everyone = list(schedulers)
    deciding = [s for s in everyone if s.is_running and s.leads]
    said = [_belief(s, dump_s) for s in deciding]
    found = tuple(each for each in said if isinstance(each, Belief))
    silent = [each for each in said if isinstance(each, str)]
    return Answers(found, (*_missing(everyone, deciding, elected), *silent))


def _missing(
    everyone: Iterable[SupervisedScheduler], deciding: Collection[SupervisedScheduler], elected: Collection[str]
) -> list[str]:
    """Return who should decide and does not."""
    idle = [s for s in everyone if s.is_wanted and s not in deciding]
    missing = [f"{s.name} takes part in no election and does not decide" for s in idle if s.user not in elected]
    candidates = [s.name for s in idle if s.user in elected]
    if candidates and not any(s.user in elected for s in deciding):
        missing.append(f"nobody leads, of {', '.join(candidates)}")
    return missing


def _belief(scheduler: SupervisedScheduler, dump_s: float) -> Belief | str:
    """Return what the scheduler believes, or why it has not said so."""
    daemon = scheduler.daemon
    status, page = daemon.health("/readyz")
    if status != 200:
        return f"{scheduler.name} decides and is not ready: {page}"
    before = beliefs.dumps(daemon.log())
    scheduler.signal(signal.SIGUSR2)
    deadline = time.monotonic() + dump_s
    while beliefs.dumps(daemon.log()) <= before:
        if not daemon.process.is_running:
            return f"{scheduler.name} ended when it was asked what it believes"
        if time.monotonic() > deadline:
            return f"{scheduler.name} has not said within {dump_s:g} s what it believes"
        time.sleep(_POLL_S)
    return beliefs.read_belief(scheduler.name, daemon.log(), daemon.schedulers) or f"{scheduler.name} believes nothing"
