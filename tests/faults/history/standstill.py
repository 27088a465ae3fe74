"""The moments in which the whole machine stood still, as a virtual machine does that is saved or moved.

No process can see it: its clock stands still, too. Only the time of day is set forward afterwards, and whoever compares
times of day from before and after finds durations in which nobody lived: a lease that had run out, a silence that was not
told. So the bench notes each such step, and times are judged with it taken out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from tests.faults.history.record import History, Standstill

STEP_S = 0.3
"""Steps that are smaller are those by which the clock is kept right."""
_PERIOD_S = 0.05


class StandstillWatch:
    """Compares the time of day with the clock that only counts what was lived, until `stop`.

    Attributes:
        found: oldest first.
    """

    def __init__(self) -> None:
        self.found: list[Standstill] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standstill", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(10)

    def _run(self) -> None:
        offset_s, before_s = time.time() - time.monotonic(), time.time()
        while not self._ending.wait(_PERIOD_S):
            now_s = time.time()
            step_s = now_s - time.monotonic() - offset_s
            if step_s > STEP_S:
                self.found.append(Standstill(before_s, step_s))
            offset_s, before_s = offset_s + step_s, now_s


def lived(history: History) -> History:
    """Return the history as if the machine had never stood still; what came after is that much earlier."""
    steps = history.standstills
    if not steps:
        return history
    return replace(
        history,
        versions=[_earlier(each, steps) for each in history.versions],
        requests=[_earlier(each, steps) for each in history.requests],
        samples=[_earlier(each, steps) for each in history.samples],
        since_s=lived_s(history.since_s, steps),
    )


def lived_s(at_s: float, steps: Sequence[Standstill]) -> float:
    """Return a time of day with the steps before it taken out; 0 means never, and stays."""
    return at_s - sum(step.for_s for step in steps if at_s > step.at_s)


def _earlier(record: Any, steps: Sequence[Standstill]) -> Any:
    times = (each.name for each in fields(record) if each.name.endswith("_s"))
    return replace(record, **{name: lived_s(getattr(record, name), steps) for name in times})
