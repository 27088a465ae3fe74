"""Laws of quantities, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.quantity import MAX_INT64, NANO, QuantityError, milli_value, parse_quantity_nano, value

FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**i) for i, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024**i) for i, suffix in enumerate("KMGTPE", 1)},
}
digits = st.text("0123456789", min_size=1, max_size=20)
suffixes = st.sampled_from(sorted(FACTORS)) | st.integers(-40, 40).map(lambda e: f"e{e}")


def ceil_away(number: Fraction) -> int:
    return -(-number.numerator // number.denominator) if number >= 0 else number.numerator // number.denominator


@given(st.sampled_from(["", "-", "+"]), digits, st.none() | digits, suffixes)
def test_parse_equals_rational_arithmetic(sign: str, whole: str, fraction: str | None, suffix: str) -> None:
    """Parsing is exact up to one rounding at a nano-unit and saturation at int64."""
    number = Fraction(f"{sign}{whole}.{fraction or 0}")
    factor = FACTORS[suffix] if suffix in FACTORS else Fraction(10) ** int(suffix[1:])
    limit = MAX_INT64 * NANO
    expected = max(-limit, min(ceil_away(number * factor * NANO), limit))
    text = f"{sign}{whole}{'' if fraction is None else '.' + fraction}{suffix}"
    assert parse_quantity_nano(text) == expected


@given(st.text(max_size=100))
def test_any_text_parses_or_raises_the_one_error(text: str) -> None:
    """No text makes parsing fail in an unforeseen way."""
    try:
        nano = parse_quantity_nano(text)
    except QuantityError:
        return
    assert abs(nano) <= MAX_INT64 * NANO


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=20))
def test_texts_of_quantity_characters_parse_or_raise_the_one_error(text: str) -> None:
    """The same, close to the grammar."""
    test_any_text_parses_or_raises_the_one_error.hypothesis.inner_test(text)


@given(st.integers(-(10**30), 10**30))
def test_values_are_the_closest_above(nano: int) -> None:
    """MilliValue and Value never understate, and by less than one unit overstate."""
    for convert, unit in ((milli_value, 10**6), (value, 10**9)):
        converted = convert(nano)
        if abs(converted) < MAX_INT64:
            assert abs(nano) <= abs(converted) * unit < abs(nano) + unit
