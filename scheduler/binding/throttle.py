"""Throttle: when an overloaded API server, or one that does not know us, is asked to bind.

    open ──429 or 503 with Retry-After──▶ closed for that long ──▶ one at a time ──any other answer──▶ open
      └────401, our token has ended─────▶ closed for 0.25 s            │
                                            ▲                          │
                                            └───────── refused again ──┘

differs: client-go keeps each refused request to its Retry-After and goes on sending others, which cost the server as
much as the one that it refused. Here the whole stream of binds waits, and one finds out whether the time has come.
"""

from __future__ import annotations

__all__ = ["Throttle"]

_LONGEST_S = 30.0
"""Longer is not believed: an overload that lasts is found out about by one bind now and then."""


class Throttle:
    """Says how many binds may be under way; all times are of one clock that does not go backwards.

    Attributes:
        is_open: no refusal counts any more.
    """

    __slots__ = ("_closed_until_s", "is_open")

    def __init__(self) -> None:
        self.is_open = True
        self._closed_until_s = 0.0

    def refused(self, retry_after_s: float, now_s: float) -> None:
        """Note that the server does not want to be asked again for so long."""
        self.is_open = False
        self._closed_until_s = max(self._closed_until_s, now_s + min(retry_after_s, _LONGEST_S))

    def answered(self) -> None:
        """Note an answer that is about the bind itself."""
        self.is_open = True

    def limit(self, most: int, now_s: float) -> int:
        """Return how many binds may be under way, if it were ``most`` without a refusal."""
        if self.is_open:
            return most
        return 1 if now_s >= self._closed_until_s else 0
