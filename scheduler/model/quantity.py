"""Quantities: ``100m``, ``1.5Gi``, ``2e3`` as exact integers of one billionth of a unit.

No float takes part, so sums of requests are as exact as the API server's own arithmetic. A quantity comes from a
tenant's manifest and may be hostile (the API server hands on a million digits, or ``1e10000000``): only so many digits
are computed with, exponents never become digits before they are known to be small, and results saturate at the int64
range, so that a call costs no more than a look at the text.

Source of the grammar: ``apimachinery/pkg/api/resource/quantity.go``, including its oddities (``5.``, ``.5``, ``+`` and
``m`` are numbers; the last two are zero).
"""

from __future__ import annotations

import functools
import re

__all__ = [
    "MAX_INT64",
    "MAX_QUANTITY_CHARS",
    "MIN_INT64",
    "NANO",
    "QuantityError",
    "milli_value",
    "parse_quantity_nano",
    "saturate_int64",
    "value",
]

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
NANO = 10**9
"""Nano-units in a unit; the finest amount that a quantity can express."""

MAX_QUANTITY_CHARS = 3 << 19
"""Longest text that is read: etcd takes no object beyond 1.5 MiB."""

_MAX_KEPT_CHARS = 64
"""Longest text whose amount is kept; ordinary ones have a few characters, and thousands of long ones are a load."""

_MAX_DIGITS = 512
"""So many digits count exactly. Those behind them count as one more unit of the last, which lies far below a nano-unit
or far above int64 in all but contrived texts."""

_MAX_NANO = MAX_INT64 * NANO
_NANO_DIGITS = 9
_INT64_DIGITS = 19
_SHOWN_CHARS = 16
_NANO_PER_MILLI = 10**6
_MAX_POWER = 2 * _MAX_DIGITS
"""Above this power of ten any amount saturates; below its negative nothing is left of the digits of a text."""

# possessive: no backtracking over a million digits
_GRAMMAR = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?+([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+)")
_DECIMAL_SUFFIX = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """A text that is not a quantity; the message names the text, cut to a readable length."""


def parse_quantity_nano(text: str | float) -> int:
    """Return the quantity in nano-units, exact; what is finer than a nano-unit is rounded away from zero.

    Args:
        text: a quantity as JSON has it; bare JSON numbers are allowed, as for the API server.

    Raises:
        QuantityError: the text is no quantity.
    """
    if isinstance(text, str) and len(text) > _MAX_KEPT_CHARS:
        return _parse_text(text)
    return _parse_short(text)


@functools.lru_cache(maxsize=4096)
def _parse_short(text: str | float) -> int:
    """Parse, and keep the answer: a cluster's quantities repeat, and every request of every pod comes here."""
    if isinstance(text, str):
        return _parse_text(text)
    if isinstance(text, int):
        return saturate_int64(text) * NANO
    return _parse_text(repr(text))


def milli_value(nano: int) -> int:
    """Return nano-units as thousandths, rounded away from zero and saturated at int64 (``Quantity.MilliValue``)."""
    if nano >= 0:
        return min(-(-nano // _NANO_PER_MILLI), MAX_INT64)
    return max(nano // _NANO_PER_MILLI, MIN_INT64)


def value(nano: int) -> int:
    """Return nano-units as whole units, rounded away from zero and saturated at int64 (``Quantity.Value``)."""
    if nano >= 0:
        return min(-(-nano // NANO), MAX_INT64)
    return max(nano // NANO, MIN_INT64)


def saturate_int64(number: int) -> int:
    """Return the int64 that is closest to ``number``."""
    return max(MIN_INT64, min(number, MAX_INT64))


def _parse_text(text: str) -> int:
    if len(text) > MAX_QUANTITY_CHARS:
        raise QuantityError(f"quantity {_shown(text)} is longer than {MAX_QUANTITY_CHARS} characters")
    # parity: UnmarshalJSON trims white space before it parses
    text = text.strip()
    parts = _GRAMMAR.fullmatch(text)
    if parts is None or not text:
        raise QuantityError(f"quantity {_shown(text)} must match the regular expression of Kubernetes quantities")
    sign, whole, fraction, suffix = parts.groups()
    fraction = fraction or ""
    exponent = _decimal_exponent(suffix, text)
    if not (whole or fraction) and (suffix in ("Pi", "Ei") or exponent < -_NANO_DIGITS):
        # parity: for these, and only these, upstream does not read a missing number as zero
        raise QuantityError(f"quantity {_shown(text)} has no number")
    digits, num_dropped = _leading_digits((whole + fraction).lstrip("0"))
    nano = _scale_decimal(
        digits << _BINARY_SUFFIX.get(suffix, 0), exponent + _NANO_DIGITS - len(fraction) + num_dropped
    )
    # differs: upstream's overflow yields 0 or wraps around; here it stays the largest amount
    nano = min(nano, _MAX_NANO)
    return -nano if sign == "-" else nano


def _leading_digits(digits: str) -> tuple[int, int]:
    """Return the number that the first digits make, rounded up, and how many digits it leaves out."""
    num_dropped = max(0, len(digits) - _MAX_DIGITS)
    if not num_dropped:
        return int(digits or "0"), 0
    return int(digits[:_MAX_DIGITS]) + bool(digits[_MAX_DIGITS:].strip("0")), num_dropped


def _decimal_exponent(suffix: str, text: str) -> int:
    if suffix in _BINARY_SUFFIX:
        return 0
    known = _DECIMAL_SUFFIX.get(suffix)
    if known is not None:
        return known
    digits = suffix[1:].lstrip("+-0")
    exponent = int(digits or "0") if len(digits) <= _INT64_DIGITS else MAX_INT64 + 1
    exponent = -exponent if suffix[1] == "-" else exponent
    if not MIN_INT64 <= exponent <= MAX_INT64:
        raise QuantityError(f"quantity {_shown(text)} has an exponent out of range")
    return exponent


def _shown(text: str) -> str:
    """Return the text as an error shows it."""
    return repr(text) if len(text) <= _MAX_KEPT_CHARS else f"{text[:_SHOWN_CHARS]!r}..."


def _scale_decimal(digits: int, exponent: int) -> int:
    """Return ``digits * 10**exponent``, rounded up, without ever building a number that is much larger than needed."""
    if digits == 0:
        return 0
    if exponent > _MAX_POWER:
        return _MAX_NANO
    if exponent < -_MAX_POWER:
        return 1  # all digits lie below the first place: something tiny, rounded away from zero
    power: int = 10 ** abs(exponent)
    return digits * power if exponent >= 0 else -(-digits // power)
