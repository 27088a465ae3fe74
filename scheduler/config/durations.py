"""Durations as Go writes them (``1h2m3.5s``), the form of ``metav1.Duration`` and of duration flags.

Inside Podium a duration is a float in seconds; the grammar and the error texts are those of Go's ``time`` package.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

__all__ = ["DurationError", "format_duration", "parse_duration"]

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)")
_MAX_NS = 2**63 - 1
_MAX_CHARS = 256


class DurationError(ValueError):
    """The text is not a duration."""


def parse_duration(text: str) -> float:
    """Return the seconds that a Go duration text means.

    Raises:
        DurationError: with the text of Go's ``time.ParseDuration``.
    """
    body = text[1:] if text[:1] in {"-", "+"} else text
    if body == "0":
        return 0.0
    if not body or len(body) > _MAX_CHARS:
        raise DurationError(f"time: invalid duration {_quote(text)}")
    total = Decimal(0)
    position = 0
    while position < len(body):
        amount, position = _part(body, position, text)
        total += amount
    nanoseconds = int(total)
    if nanoseconds > _MAX_NS:
        raise DurationError(f"time: invalid duration {_quote(text)}")
    return (-nanoseconds if text[0] == "-" else nanoseconds) / 10**9


def _part(body: str, position: int, text: str) -> tuple[Decimal, int]:
    match = _PART.match(body, position)
    if match is None or not (match[1] or match[3]):
        raise DurationError(f"time: invalid duration {_quote(text)}")
    unit = match[4]
    if not unit:
        raise DurationError(f"time: missing unit in duration {_quote(text)}")
    if unit not in _UNIT_NS:
        raise DurationError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
    number = Decimal(f"{match[1] or 0}.{match[3] or 0}")
    return (number * _UNIT_NS[unit]).to_integral_value(rounding="ROUND_DOWN"), match.end()


def format_duration(seconds: float) -> str:
    """Write seconds as Go does: ``15s``, ``10m0s``, ``1h0m0.5s``, ``100ms``, ``0s``."""
    nanoseconds = round(abs(seconds) * 10**9)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds < 10**9:
        return sign + _below_a_second(nanoseconds)
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return sign + (f"{hours}h{text}" if hours else text)


def _below_a_second(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    unit = "ns" if nanoseconds < 1_000 else "µs" if nanoseconds < 1_000_000 else "ms"
    return _decimal(nanoseconds, _UNIT_NS[unit]) + unit


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1)}".rstrip("0").rstrip(".") if rest else str(whole)


def _quote(text: str) -> str:
    return json.dumps(text[:_MAX_CHARS], ensure_ascii=False)
