"""Durations as Go prints them (``1m30s``, ``500ms``): they appear in messages that users compare with upstream's."""

from __future__ import annotations

__all__ = ["go_duration"]

_SMALL_UNITS = ((1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def go_duration(seconds: float) -> str:
    """Return what ``time.Duration.String`` returns, to the nanosecond."""
    nanos = round(seconds * 1e9)
    if nanos == 0:
        return "0s"
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos < 1_000_000_000:
        size, unit = next((size, unit) for size, unit in _SMALL_UNITS if nanos >= size)
        return f"{sign}{_decimal(nanos, size)}{unit}"
    hours, rest = divmod(nanos, 3600 * 1_000_000_000)
    minutes, rest = divmod(rest, 60 * 1_000_000_000)
    text = f"{_decimal(rest, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(nanos: int, unit: int) -> str:
    whole, fraction = divmod(nanos, unit)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
