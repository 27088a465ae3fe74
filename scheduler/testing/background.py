"""The background of the test harness: what plugins do now and then is done when virtual time comes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.testing.clock import FakeClock

__all__ = ["VirtualBackground"]


@dataclass(slots=True, eq=False)
class _Repeated:
    function: Callable[[], None]
    every_s: float
    due_s: float


class VirtualBackground:
    """Calls functions on the caller's thread: at once, and by ``run`` when their time has come."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._repeated: list[_Repeated] = []

    def __call__(self, name: str, function: Callable[[], None], every_s: float) -> Callable[[], None]:
        """Call ``function`` now and from then on until the returned function is called."""
        del name
        repeated = _Repeated(function, every_s, self._clock.now() + every_s)
        self._repeated.append(repeated)
        function()
        return lambda: self._repeated.remove(repeated)

    def run(self) -> None:
        """Call what is due, once each however long ago that was."""
        now_s = self._clock.now()
        for repeated in list(self._repeated):
            if repeated.due_s <= now_s:
                repeated.due_s = now_s + repeated.every_s
                repeated.function()
