"""Quantities: grammar, rounding, bounds. The expected values are what apimachinery v0.36.3 answers."""

from __future__ import annotations

import contextlib
import time

import pytest

from scheduler.model import quantity
from scheduler.model.quantity import (
    MAX_INT64,
    MAX_QUANTITY_CHARS,
    NANO,
    QuantityError,
    milli_value,
    parse_quantity_nano,
    value,
)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("1", NANO, id="one unit"),
        pytest.param("1n", 1, id="nano"),
        pytest.param("1u", 1_000, id="micro"),
        pytest.param("100m", 100_000_000, id="milli"),
        pytest.param("2k", 2_000 * NANO, id="kilo"),
        pytest.param("3M", 3 * 10**6 * NANO, id="mega"),
        pytest.param("1E", 10**18 * NANO, id="exa, not an exponent"),
        pytest.param("1Ki", 1024 * NANO, id="kibi"),
        pytest.param("1.5Gi", 3 * 2**29 * NANO, id="a decimal before a binary suffix"),
        pytest.param("1Ei", 2**60 * NANO, id="exbi"),
        pytest.param("1e3", 1_000 * NANO, id="small e exponent"),
        pytest.param("1E-3", 1_000_000, id="large E, negative exponent"),
        pytest.param("12.5e+1", 125 * NANO, id="decimal with signed exponent"),
        pytest.param("-1.5", -1_500_000_000, id="negative"),
        pytest.param("+5", 5 * NANO, id="explicit plus"),
        pytest.param("5.", 5 * NANO, id="nothing behind the point"),
        pytest.param(".5", 500_000_000, id="nothing before the point"),
        pytest.param("007", 7 * NANO, id="leading zeros are decimal"),
        pytest.param("+", 0, id="a lone sign is zero upstream"),
        pytest.param("m", 0, id="a lone suffix is zero upstream"),
        pytest.param(" 1\n", NANO, id="surrounding white space is trimmed"),
        pytest.param("0.1n", 1, id="finer than nano rounds up"),
        pytest.param("-0.1n", -1, id="finer than nano rounds away from zero"),
        pytest.param("1e-99", 1, id="tiny but not nothing"),
        pytest.param("0e99999", 0, id="zero whatever the exponent"),
        pytest.param("100E", MAX_INT64 * NANO, id="more than int64 saturates"),
        pytest.param("-100E", -MAX_INT64 * NANO, id="less than int64 saturates"),
        pytest.param("1e10000000", MAX_INT64 * NANO, id="huge exponent saturates"),
        pytest.param("1e-10000000", 1, id="huge negative exponent"),
        pytest.param(3, 3 * NANO, id="JSON integer"),
        pytest.param(10**5000, MAX_INT64 * NANO, id="JSON integer beyond all bounds"),
        pytest.param(1.5, 1_500_000_000, id="JSON float"),
        pytest.param(1e22, MAX_INT64 * NANO, id="JSON float in exponent form"),
    ],
)
def test_parse_gives_exact_nano_units(text: str | float, nano: int) -> None:
    """Every form of the grammar is read exactly."""
    assert parse_quantity_nano(text) == nano


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("  ", id="white space only"),
        pytest.param("1Zi", id="unknown suffix"),
        pytest.param("1ki", id="suffix in the wrong case"),
        pytest.param("1 Gi", id="space inside"),
        pytest.param("--1", id="two signs"),
        pytest.param("1.1.1", id="two points"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("1_000", id="underscore"),
        pytest.param("NaN", id="not a number"),
        pytest.param("inf", id="infinity"),
        pytest.param("1e", id="exponent without digits"),
        pytest.param("1e1.5", id="fractional exponent"),
        pytest.param("1e99999999999999999999", id="exponent beyond int64"),
        pytest.param("Pi", id="binary suffix without a number, large"),
        pytest.param("e-12", id="exponent without a number, below nano"),
        pytest.param("\u0663", id="Arabic digit"),
        pytest.param("\u0661\u0662m", id="Arabic digits with suffix"),
        pytest.param("²", id="superscript digit"),
        pytest.param("9" * (MAX_QUANTITY_CHARS + 1), id="one character too long"),
        pytest.param("9" * 1_000_000 + "x", id="a million digits and a letter"),
        pytest.param("1e" + "9" * 5_000, id="exponent beyond Python's limit of digits"),
        pytest.param(float("inf"), id="JSON float that overflowed"),
    ],
)
def test_parse_refuses_what_is_no_quantity(text: str | float) -> None:
    """A bad text raises the one documented error, with a short message."""
    with pytest.raises(QuantityError) as caught:
        parse_quantity_nano(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        pytest.param("9" * 5_000, MAX_INT64 * NANO, id="5,000 nines are the most there is"),
        pytest.param("-" + "9" * 5_000, -MAX_INT64 * NANO, id="and the least"),
        pytest.param("0" * 5_000 + "1", NANO, id="zeros in front say nothing"),
        pytest.param("1." + "0" * 5_000, NANO, id="nor do zeros behind the point"),
        pytest.param("1." + "0" * 5_000 + "1", NANO + 1, id="what is finer than a nano-unit is rounded up"),
        pytest.param("9" * 5_000 + "e-5000", NANO, id="just below one"),
        pytest.param("1" + "0" * 5_000 + "e-5000", NANO, id="exactly one"),
        pytest.param("1e" + "0" * 5_000 + "1", 10 * NANO, id="zeros in an exponent"),
        pytest.param("0." + "0" * 4_999 + "1e5000", NANO, id="a tiny number with a large exponent"),
    ],
)
def test_long_texts_are_as_good_as_short_ones(text: str, nano: int) -> None:
    """The API server hands them on, and kube-scheduler reads them."""
    assert parse_quantity_nano(text) == nano


def test_long_texts_are_not_kept() -> None:
    """Thousands of megabytes would otherwise stay behind."""
    kept = quantity._parse_short.cache_info().currsize
    parse_quantity_nano("0" * 1_000 + "1")
    assert quantity._parse_short.cache_info().currsize == kept


def test_hostile_texts_cost_next_to_nothing() -> None:
    """No text, however chosen, takes more than 5 ms of CPU time, which a busy machine does not stretch."""
    hostile = [
        "1e10000000",
        "1e-10000000",
        "9" * 64,
        "9" * 5000,
        "." * 64,
        "1" + "0" * 10_000_000,
        "9" * 62 + "Ei",
        "9" * 1_000_000,
        "9" * 1_000_000 + "x",
        "1e" + "9" * 1_000_000,
    ]
    for text in hostile:
        start = time.process_time()
        with contextlib.suppress(QuantityError):
            milli_value(parse_quantity_nano(text))
        assert time.process_time() - start < 0.005


@pytest.mark.parametrize(
    ("nano", "milli", "whole"),
    [
        pytest.param(0, 0, 0, id="zero"),
        pytest.param(1, 1, 1, id="anything above zero counts as one"),
        pytest.param(1_000_001, 2, 1, id="rounded up"),
        pytest.param(1_000_000_000, 1_000, 1, id="exact"),
        pytest.param(-1, -1, -1, id="negative: away from zero"),
        pytest.param(-1_500_000_000, -1_500, -2, id="negative fraction"),
        pytest.param(MAX_INT64 * NANO, MAX_INT64, MAX_INT64, id="milli saturates"),
        pytest.param(-MAX_INT64 * NANO, -MAX_INT64 - 1, -MAX_INT64, id="milli saturates below"),
    ],
)
def test_values_round_away_from_zero(nano: int, milli: int, whole: int) -> None:
    """MilliValue and Value round away from zero and stay in int64."""
    assert (milli_value(nano), value(nano)) == (milli, whole)
