"""Runs many histories after one another, and adds up what they had in them."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from tests.simulation.history import Outcome, run_history
from tests.simulation.plan import make_plan

__all__ = ["Tally", "run_many", "undisturbed"]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Collect no garbage within: it would end what is forgotten at a moment that depends on the histories before."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@dataclass(slots=True)
class Tally:
    """What histories had in them.

    Attributes:
        histories: how many.
        violated: seeds of those that broke a promise, with the first violation.
        deeds: what users, kubelets, other schedulers and crashes did; ``faults``: of the network, each for a while.
        by_kind: both, by their kind: in how many histories.
        requests: that schedulers sent; ``writes``: those that would change something; ``lines``: of watches.
        bound: pods on a node in the end; ``pending``: not.
        virtual_s: length of all histories.
        cpu_s: what it took of one core; ``wall_s``: of the clock.
    """

    histories: int = 0
    violated: dict[int, str] = field(default_factory=dict)
    deeds: int = 0
    faults: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    writes: int = 0
    lines: int = 0
    bound: int = 0
    pending: int = 0
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def add(self, other: Tally) -> None:
        """Take in another one."""
        self.violated |= other.violated
        self.by_kind = dict(Counter(self.by_kind) + Counter(other.by_kind))
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def take(self, seed: int, outcome: Outcome) -> None:
        """Take in one history."""
        plan = make_plan(seed)
        self.histories += 1
        if outcome.violations:
            self.violated[seed] = str(outcome.violations[0])
        self.deeds += len(plan.deeds)
        self.faults += len(plan.faults)
        for kind in {each.kind for each in (*plan.deeds, *plan.faults)}:
            self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        for name in ("requests", "writes", "lines", "bound", "pending", "virtual_s"):
            setattr(self, name, getattr(self, name) + getattr(outcome, name))

    def __str__(self) -> str:
        return (
            f"{self.histories} histories, {len(self.violated)} violated, {self.deeds} deeds, {self.faults} faults, "
            f"{self.bound} pods bound, {self.requests} requests, {self.writes} writes, {self.lines} watch lines, "
            f"{self.virtual_s / 3600:.1f} h of virtual time"
        )

    @property
    def speed(self) -> str:
        """Return in words how fast it was."""
        of_cpu = self.histories / max(self.cpu_s, 1e-9) * 60
        of_clock = self.histories / max(self.wall_s, 1e-9) * 60
        return f"{of_cpu:.0f} histories a minute of one core's time, {of_clock:.0f} of the clock's"


_NUMBERS = tuple(each.name for each in fields(Tally) if each.name not in {"violated", "by_kind"})


def run_many(seeds: Iterable[int]) -> Iterator[tuple[int, Outcome, Tally]]:
    """Run histories one by one, and yield each with the sum so far."""
    tally = Tally()
    with undisturbed():
        for seed in seeds:
            cpu_s, wall_s = time.process_time(), time.perf_counter()
            outcome = run_history(make_plan(seed))
            gc.collect()
            gc.freeze()  # what is still there are caches: the next collection need not look at them again
            tally.cpu_s += time.process_time() - cpu_s
            tally.wall_s += time.perf_counter() - wall_s
            tally.take(seed, outcome)
            yield seed, outcome, tally
