"""Timestamps: RFC 3339 texts of the API as seconds, for those who compare them with the clock.

Written out, because the core does without the clock and calendar of the machine; the API server sends UTC with whole
seconds, other offsets and fractions are understood all the same.
"""

from __future__ import annotations

import re

__all__ = ["unix_s"]

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:[Zz]|([+-])(\d\d):(\d\d))")
_DAY_S = 86_400
_DAYS_TO_1970 = 719_468  # from 0000-03-01


def unix_s(text: str) -> float | None:
    """Return the seconds since the Unix epoch, or None if the text is no RFC 3339 timestamp."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, sign, offset_hours, offset_minutes = found.groups()
    seconds = _days(int(year), int(month), int(day)) * _DAY_S + int(hour) * 3600 + int(minute) * 60 + float(second)
    if sign:
        offset_s = int(offset_hours) * 3600 + int(offset_minutes) * 60
        seconds -= offset_s if sign == "+" else -offset_s
    return seconds


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 in the Gregorian calendar; years begin in March, so leap days come last."""
    if month < 3:
        year, month = year - 1, month + 12
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 1 - _DAYS_TO_1970
