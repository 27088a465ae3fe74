"""Patience: a service that is slow to fail is left alone for a while.

    asked ──three slow failures in a row──▶ left alone for 10 s ──▶ asked once ──slow failure──▶ left alone for longer
      ▲                                                              │ answer, or a quick failure
      └──────────────────────────────────────────────────────────────┘

The scheduling cycle waits for extenders, so one that times out for every pod it cares about would hold up all others,
which have nothing to do with it. Quick failures cost nothing and do not count.
"""

from __future__ import annotations

__all__ = ["LONGEST_PAUSE_S", "PAUSE_S", "SLOW_S", "TRIES", "Patience"]

TRIES = 3
SLOW_S = 0.5
PAUSE_S = 10.0
LONGEST_PAUSE_S = 60.0


class Patience:
    """The state of one service; all times are of one clock that does not go backwards."""

    __slots__ = ("_pause_s", "_until_s", "failures")

    def __init__(self) -> None:
        self.failures = 0
        """Slow failures in a row."""
        self._pause_s = PAUSE_S
        self._until_s = float("-inf")

    def remaining_s(self, now_s: float) -> float:
        """Return for how long the service must still be left alone; 0 if it may be asked."""
        return max(0.0, self._until_s - now_s)

    def answered(self) -> None:
        """Note an answer, whatever it says."""
        self.failures = 0
        self._pause_s = PAUSE_S

    def failed(self, began_s: float, now_s: float) -> bool:
        """Note that a call that began then has just failed; returns whether the service is left alone from now on."""
        if now_s - began_s < SLOW_S:
            self.answered()
            return False
        self.failures += 1
        if self.failures < TRIES:
            return False
        self._until_s = now_s + self._pause_s
        self._pause_s = min(self._pause_s * 2.0, LONGEST_PAUSE_S)
        return True
