"""FakeClock: time that stands still until a test moves it."""

from __future__ import annotations

__all__ = ["FakeClock"]


class FakeClock:
    """A ``scheduler.api.Clock`` for tests and simulations.

    Args:
        start_s: seconds since the Unix epoch at which the clock starts.
    """

    __slots__ = ("_now_s",)

    def __init__(self, start_s: float = 1_000_000.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        """Return the present second."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass.

        Raises:
            ValueError: time would go backwards.
        """
        if seconds < 0:
            raise ValueError(f"clock cannot go back by {-seconds} s")
        self._now_s += seconds
