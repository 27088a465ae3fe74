"""Logarithm: the natural logarithm, to the last bit as Go computes it.

The C library's ``log`` differs from Go's in the last bit for one number in a hundred. A score is rounded after it was
multiplied with a logarithm, so such a bit could, once in a very long time, change a decision.

Source of the method: FreeBSD's ``e_log.c``, which Go uses on amd64.
"""

from __future__ import annotations

import math
from functools import lru_cache

__all__ = ["log"]

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


@lru_cache(maxsize=4096)
def log(value: int) -> float:
    """Return the natural logarithm of a positive number."""
    fraction, exponent = math.frexp(value)
    if fraction < math.sqrt(0.5):
        fraction, exponent = fraction * 2, exponent - 1
    f, k = fraction - 1, float(exponent)
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_ODD[0] + s4 * (_ODD[1] + s4 * (_ODD[2] + s4 * _ODD[3])))
    even = s4 * (_EVEN[0] + s4 * (_EVEN[1] + s4 * _EVEN[2]))
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * _LN2_LOW)) - f)
