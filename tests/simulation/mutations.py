"""Ways to break the product on purpose: a bench that misses one of them is not good enough.

python -m tests.simulation.mutations             one history each, of a seed that is known to catch it
python -m tests.simulation.mutations --search    looks for such seeds, from 0 on
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from scheduler.app.confirming import Confirming
from scheduler.binding.bind_call import BindCall
from scheduler.binding.outcome import BindAttempt, Settled
from scheduler.intake.nodes import NodeIntake
from scheduler.intake.pods import PodIntake
from scheduler.kube.election import Election
from scheduler.kube.known import Known
from scheduler.kube.lease import LeaderElector
from scheduler.state.cache.cache import Cache
from scheduler.state.outcome import BindOutcome
from scheduler.state.queue.queue import SchedulingQueue
from tests.simulation.__main__ import repeatable
from tests.simulation.history import run_history
from tests.simulation.plan import make_plan
from tests.simulation.promises import Violation
from tests.simulation.quiet import silence

__all__ = ["MUTATIONS", "Mutation", "caught"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the product.

    Attributes:
        name: in words: what is wrong.
        owner: class or module; ``attribute``: its function; ``broken``: what to put there instead.
        seed: of a history that shows it.
        unrepaired: binds that the server does not list are not decided anew either, which would repair it.
    """

    name: str
    owner: Any
    attribute: str
    broken: Callable[..., Any]
    seed: int = 0
    unrepaired: bool = False

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Break it for a while."""
        with ExitStack() as undone:
            undone.enter_context(_replaced(self.owner, self.attribute, self.broken))
            if self.unrepaired:
                undone.enter_context(_replaced(Confirming, "_decide_anew_if_unbound", _nothing))
            yield


@contextmanager
def _replaced(owner: Any, attribute: str, broken: Callable[..., Any]) -> Iterator[None]:
    sound = owner.__dict__[attribute]
    setattr(owner, attribute, broken)
    try:
        yield
    finally:
        setattr(owner, attribute, sound)


def caught(mutation: Mutation, seeds: range) -> tuple[int, Violation] | None:
    """Return the seed of the first history that the mutation spoils, and what it broke; None if there is none.

    A history counts only if the sound product keeps every promise in it.
    """
    for seed in seeds:
        with mutation.applied():
            violations = run_history(make_plan(seed)).violations
        if violations and not run_history(make_plan(seed)).violations:
            return seed, violations[0]
    return None


def _nothing(*_args: Any, **_named: Any) -> None:
    """Do nothing."""


async def _nothing_later(*_args: Any, **_named: Any) -> None:
    """Do nothing."""


def _yes(*_args: Any, **_named: Any) -> bool:
    return True


def _taken_for_failure(self: BindAttempt, sent_s: float) -> Settled:
    return self._settle(BindOutcome.UNREACHABLE, "taken for a failure")


def _taken_for_success(self: BindAttempt, sent_s: float) -> Settled:
    return self._settle(BindOutcome.BOUND)


def _conflict_is_final(self: BindAttempt, now_s: float) -> Settled:
    return self._settle(BindOutcome.BOUND)


def _nothing_is_gone(self: Known) -> int:
    self._listed = None
    return 0


def _last_forever(self: Election, now_s: float) -> bool:
    return True


def _only_the_newest(self: PodIntake, old: Any, new: Any) -> None:
    """Miss that a pod has got its node."""
    if bool(old.node_name) == bool(new.node_name):
        _POD_CHANGED(self, old, new)


def _assume_by_name(self: Cache, pod: Any) -> None:
    """Count nothing until the watch confirms it."""


_SEARCHED = 400
_POD_CHANGED = PodIntake.changed

MUTATIONS = (
    Mutation("a pod whose binding failed is not forgotten", Cache, "forget_pod", _nothing, 28),
    Mutation("a decision takes no room until it is seen", Cache, "assume_pod", _assume_by_name, 1),
    Mutation("an unknown outcome is taken for a failure", BindAttempt, "_become_unknown", _taken_for_failure, 63),
    Mutation(
        "an unknown outcome is taken for a success",
        BindAttempt,
        "_become_unknown",
        _taken_for_success,
        16,
        unrepaired=True,
    ),
    Mutation(
        "a conflict is taken for a success", BindAttempt, "_read_unbound", _conflict_is_final, 16, unrepaired=True
    ),
    Mutation("the lease is not looked at before a write", LeaderElector, "may_write", _yes, 6),
    Mutation("another's lease never runs out", Election, "_is_reserved", _last_forever, 1),
    Mutation("deletions missed by a watch are not made up", Known, "finish_list", _nothing_is_gone, 53),
    Mutation("a deleted pod stays in the cache", Cache, "remove_pod", _nothing, 3),
    Mutation("a pod that others bound is not noticed", PodIntake, "changed", _only_the_newest, 0),
    Mutation("a node's change is not noticed", NodeIntake, "changed", _nothing, 24),
    Mutation("a node that goes away is not noticed", NodeIntake, "removed", _nothing, 3),
    Mutation("a failed pod does not come back", SchedulingQueue, "add_unschedulable_if_not_present", _yes, 0),
    Mutation("events move no pod", SchedulingQueue, "move_all_to_active_or_backoff_queue", _nothing, 5),
    Mutation("back-off never ends", SchedulingQueue, "_flush_backoff", _nothing, 28),
    Mutation("a pod that is deleted while it waits stays in the queue", SchedulingQueue, "delete", _nothing, 128),
    Mutation("a bind is sent once and never read back", BindCall, "_read", _nothing_later, 63),
)


def main() -> int:
    """Try all mutations; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutations", description=__doc__)
    parser.add_argument("--search", action="store_true", help="look for seeds that show them")
    given = parser.parse_args()
    repeatable()
    silence()
    missed = 0
    for mutation in MUTATIONS:
        found = caught(mutation, range(_SEARCHED) if given.search else range(mutation.seed, mutation.seed + 1))
        missed += found is None
        said = "missed" if found is None else f"caught by seed {found[0]}: {str(found[1])[:120]}"
        print(f"{mutation.name}: {said}", flush=True)
    print(f"{len(MUTATIONS) - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
