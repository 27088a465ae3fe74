"""Back-off: how long to wait before asking the API server again.

Delays double from 0.2 s to 5 s, each spread over its upper half so that many clients do not come back together. While
the server is away (no connection, or it has only just started) and for the first 30 s of such an outage, delays stay at
or below 0.5 s: the common outage is short, and what does not reach the server costs it nothing.
"""

from __future__ import annotations

from scheduler.api.handle import Random

__all__ = ["FAST_RETRY_S", "INITIAL_S", "MAX_S", "OUTAGE_GRACE_S", "Backoff"]

INITIAL_S = 0.2
MAX_S = 5.0
FAST_RETRY_S = 0.5
OUTAGE_GRACE_S = 30.0


class Backoff:
    """The delays of one sequence of failures; ``reset`` ends the sequence."""

    __slots__ = ("_away_since_s", "_initial_s", "_max_s", "_next_s", "_random")

    def __init__(self, random: Random, *, initial_s: float = INITIAL_S, max_s: float = MAX_S) -> None:
        self._random = random
        self._initial_s = initial_s
        self._max_s = max_s
        self._next_s = initial_s
        self._away_since_s: float | None = None

    def reset(self) -> None:
        """Forget past failures."""
        self._next_s = self._initial_s
        self._away_since_s = None

    def next_s(self, now_s: float, *, is_away: bool = False) -> float:
        """Return the seconds to wait after a failure at ``now_s``.

        Args:
            now_s: the clock.
            is_away: the request did not reach a server that could carry it out.
        """
        if is_away and self._is_short_outage(now_s):
            return self._spread(FAST_RETRY_S)
        delay_s = self._next_s
        self._next_s = min(delay_s * 2.0, self._max_s)
        return self._spread(delay_s)

    def _is_short_outage(self, now_s: float) -> bool:
        if self._away_since_s is None:
            self._away_since_s = now_s
        return now_s - self._away_since_s < OUTAGE_GRACE_S

    def _spread(self, delay_s: float) -> float:
        return delay_s * (0.5 + 0.5 * self._random.random())
