"""Token bucket: ``clientConnection.qps`` and ``burst``, for those who set them.

differs: unset means no limit of our own (upstream: 50/100); the server's 429 and Retry-After are obeyed instead.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

__all__ = ["TokenBucket"]


class TokenBucket:
    """Lets ``qps`` calls a second pass, and ``burst`` at once after a pause; callers pass in the order they came."""

    __slots__ = ("_burst", "_monotonic", "_qps", "_sleep", "_tokens", "_updated_s")

    def __init__(
        self, qps: float, burst: int, *, monotonic: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be positive and burst at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._monotonic = monotonic
        self._sleep = sleep
        self._updated_s = monotonic()

    def reserve(self, max_wait_s: float = math.inf) -> float | None:
        """Take one token, possibly a future one, and return the seconds until it is there.

        None, and no token is taken, if that is later than ``max_wait_s``.
        """
        now_s = self._monotonic()
        self._tokens = min(self._burst, self._tokens + (now_s - self._updated_s) * self._qps)
        self._updated_s = now_s
        wait_s = max(0.0, (1.0 - self._tokens) / self._qps)
        if wait_s > max_wait_s:
            return None
        self._tokens -= 1.0
        return wait_s

    async def take(self, max_wait_s: float = math.inf) -> float | None:
        """Wait for a token and return how long it took; None at once if it would take longer than ``max_wait_s``.

        A caller that is cancelled while waiting still uses its token up.
        """
        wait_s = self.reserve(max_wait_s)
        if wait_s:
            await self._sleep(wait_s)
        return wait_s
