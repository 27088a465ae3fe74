"""Ways to break the product on purpose, each with the fault test that must then fail: is the bench blind?

python -m tests.faults.mutations            all of them, one after another, half an hour; prints what caught each
python -m tests.faults.mutations NAME ...   some of them

First the named tests run with nothing broken, and must pass: exit code 2 if they do not. A test has caught a mutation if
a criterion was broken, a figure missed, or something that it waits for did not come; a scheduler that does not start, or
a bench that does not, is no catch: exit code 1.

A scheduler under test is broken by the start program of its failpoints (`failpoints/__main__.py`), if PODIUM_MUTATION
names how; nothing of it is in the product.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.results import BROKEN_RESULTS, ROOT, Result, parsed

__all__ = ["MUTATIONS", "SOUND", "Mutation", "Trial", "apply", "main", "wanted"]

VARIABLE = "PODIUM_MUTATION"
SOUND = "sound"
"""Instead of a mutation's name: the same start program, and nothing broken."""
_TIMEOUT_S = 900.0
_WAIT = re.compile(r"^E +AssertionError: (not within [0-9.e+]+ s: (?!the daemon to be ready).*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the product.

    Attributes:
        name: to ask for it by.
        what: is wrong, in words.
        target: ``module:Class.attribute`` or ``module:function`` of the product.
        broken: makes what to put there, from what is there.
        test: the name of the fault test that must fail.
    """

    name: str
    what: str
    target: str
    broken: Callable[[Any], Any]
    test: str


# --- how things are broken: each is given the sound function ---------------------------------------------------------


def _nothing(sound: Any) -> Any:
    return lambda *given, **named: None


def _yes(sound: Any) -> Any:
    return lambda *given, **named: True


def _unless_drift(sound: Any) -> Any:
    return lambda self, cause="requested": 0 if cause == "drift" else sound(self, cause)


def _without_uid(sound: Any) -> Any:
    import msgspec

    async def bind(transport: Any, pod: Any, node_name: str, **named: Any) -> None:
        nobody = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=""))
        await sound(transport, nobody, node_name, **named)

    return bind


def _unreachable(sound: Any) -> Any:
    from scheduler.state.outcome import BindOutcome

    return lambda self, *given: self._settle(BindOutcome.UNREACHABLE, "taken for a failure")


def _conflict_at_once(sound: Any) -> Any:
    from scheduler.state.outcome import BindOutcome

    def refused(self: Any, error: Any, now_s: float) -> Any:
        is_conflict = error.status == 409
        return self._settle(BindOutcome.CONFLICT, "a conflict") if is_conflict else sound(self, error, now_s)

    return refused


def _nothing_is_gone(sound: Any) -> Any:
    def finish_list(self: Any) -> int:
        self._listed = None
        return 0

    return finish_list


def _first_delay(sound: Any) -> Any:
    def failed(engine: Any, job: Any, status: Any) -> None:
        sound(engine, job, status)
        job.info.consecutive_errors_count = 0

    return failed


def _wall_clock(sound: Any) -> Any:
    return lambda self: time.time()


MUTATIONS = (
    Mutation(
        "no-repair", "what a watch has lost is found, and not listed again",
        "scheduler.kube.reflector:Reflector.request_relist", _unless_drift, "test_lost_lines",
    ),
    Mutation(
        "no-last-look", "the node is not looked at again before a bind is sent",
        "scheduler.binding.node_check:NodeCheck.objection", _nothing, "test_node_changed_before_the_bind",
    ),
    Mutation(
        "no-uid", "binds are sent without the pod's UID",
        "scheduler.kube.writes:bind", _without_uid, "test_pod_replaced_before_its_bind",
    ),
    Mutation(
        "kept-room", "the place of a pod that is deleted in flight is kept until its binding ends",
        "scheduler.intake.pods:PodIntake._assumed_pod_deleted", _nothing, "test_pod_deleted_in_flight",
    ),
    Mutation(
        "not-forgotten", "the place of a pod whose binding failed is not given back",
        "scheduler.state.cache.cache:Cache.forget_pod", _nothing, "test_requests_dropped",
    ),
    Mutation(
        "unknown-is-failure", "a bind whose outcome is unknown is taken for one that failed",
        "scheduler.binding.outcome:BindAttempt._become_unknown", _unreachable, "test_answers_lost_and_watch_late",
    ),
    Mutation(
        "conflict-is-failure", "a conflict is not read back",
        "scheduler.binding.outcome:BindAttempt._refused", _conflict_at_once, "test_conflict_that_is_none",
    ),
    Mutation(
        "no-deletions", "deletions that a watch has missed are not made up from the list",
        "scheduler.kube.known:Known.finish_list", _nothing_is_gone, "test_gone_after_compaction",
    ),
    Mutation(
        "no-gate", "the lease is not looked at before a write",
        "scheduler.kube.lease:LeaderElector.may_write", _yes, "test_frozen_leader",
    ),
    Mutation(
        "eager", "refused binds are tried again after the first, short back-off",
        "scheduler.cycle.conclude:_REFUSED_ERRORS", lambda sound: 0, "test_binds_forbidden_in_a_namespace",
    ),
    Mutation(
        "wall-clock", "time is read from the wall clock",
        "scheduler.app.clock:SystemClock.now", _wall_clock, "test_wall_clock_jumps",
    ),
    Mutation(
        "mute", "a scheduler that is asked what it believes says nothing",
        "scheduler.app.daemon:Daemon.dump", _nothing, "test_pod_deleted_in_flight",
    ),
)  # fmt: skip


def wanted() -> str:
    """Return how the schedulers of this run are to be broken, or `SOUND`; "" in a run of the product."""
    return os.environ.get(VARIABLE, "")


def apply(name: str) -> None:
    """Break this process."""
    if name == SOUND:
        return
    (mutation,) = (mutation for mutation in MUTATIONS if mutation.name == name)
    module_name, _, path = mutation.target.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, attribute = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    sound = getattr(owner, attribute)
    broken = mutation.broken(sound)
    setattr(owner, attribute, broken)
    for module in list(sys.modules.values()):  # a function may have been imported by name
        if module.__name__.startswith("scheduler.") and callable(sound) and getattr(module, attribute, None) is sound:
            setattr(module, attribute, broken)


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of tests under a mutation, or under none.

    Attributes:
        code: that pytest ended with.
        output: of pytest.
        results: of the tests that came as far as the bench.
    """

    code: int
    output: str
    results: tuple[Result, ...]

    def passed(self, tests: Collection[str]) -> bool:
        """Tell whether each of the tests has run and passed."""
        return self.code == 0 and {_name(r) for r in self.results if r.is_passed} >= set(tests)

    def caught_by(self) -> list[str]:
        """Return the criteria that were broken, the figures that were missed, or else what was waited for in vain."""
        figures = [str(figure) for result in self.results for figure in result.figures if not figure.is_accepted]
        criteria = [f"{name} {count}" for result in self.results for name, count in result.promises.items() if count]
        waits = _WAIT.findall(self.output) if self.results else []
        return criteria + figures or waits[:1]


def _name(result: Result) -> str:
    return result.test.rpartition("::")[2]


def tried(name: str, tests: Collection[str]) -> Trial:
    """Run fault tests under a mutation, or under `SOUND`."""
    known = len(_result_lines())
    arguments = ["-q", "--faults", "-p", "no:cacheprovider", *map(_node_id, tests)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env={**os.environ, VARIABLE: name},
        check=False,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S * len(tests),
    )
    return Trial(done.returncode, done.stdout + done.stderr, tuple(map(parsed, _result_lines()[known:])))


def _result_lines() -> list[str]:
    return BROKEN_RESULTS.read_text().splitlines() if BROKEN_RESULTS.exists() else []


def _node_id(test: str) -> str:
    (file,) = (file for file in Path(__file__).parent.glob("test_*.py") if f"def {test}(" in file.read_text())
    return f"{file}::{test}"


def main(given: Sequence[str]) -> int:
    """Try mutations, all if none is given; returns the exit code."""
    unknown = set(given) - {mutation.name for mutation in MUTATIONS}
    assert not unknown, f"no such mutation: {', '.join(sorted(unknown))}"
    chosen = [mutation for mutation in MUTATIONS if not given or mutation.name in given]
    tests = sorted({mutation.test for mutation in chosen})
    sound = tried(SOUND, tests)
    if not sound.passed(tests):
        print(f"nothing is broken, and not all tests pass: nothing follows\n{sound.output[-3000:]}")
        return 2
    print(f"{SOUND}: {len(tests)} tests pass", flush=True)
    missed = [mutation.name for mutation in chosen if not _is_caught(mutation)]
    return 1 if missed else 0


def _is_caught(mutation: Mutation) -> bool:
    trial = tried(mutation.name, [mutation.test])
    if trial.code == 0:
        told = "MISSED"
    elif not (found := trial.caught_by()):
        told = f"NOT CAUGHT, the test failed otherwise:\n{trial.output[-1000:]}"
    else:
        told = "; ".join(found)
    print(f"{mutation.name}: {mutation.test}: {told}", flush=True)
    return trial.code == 1 and bool(trial.caught_by())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
