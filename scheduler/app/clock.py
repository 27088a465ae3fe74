"""The real clock, handed to everything below."""

from __future__ import annotations

import time

__all__ = ["SystemClock"]


class SystemClock:
    """Seconds since the Unix epoch that never go backwards: the wall clock at start plus monotonic time since.

    A step of the wall clock (NTP, an administrator) so changes no back-off and no order.
    """

    __slots__ = ("_offset_s",)

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()  # noqa: TID251  the one place where the wall clock is read

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        return self._offset_s + time.monotonic()
