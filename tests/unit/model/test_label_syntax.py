"""Label keys and values."""

from __future__ import annotations

import time

import pytest

from scheduler.model.label_syntax import label_key_problems, label_value_problems


@pytest.mark.parametrize("key", ["a", "A-b_c.d", "example.com/a", "a" * 63, ("a" * 61 + ".") * 4 + "abcde/x"])
def test_good_keys(key: str) -> None:
    """A name of up to 63 bytes, with or without a domain of up to 253."""
    assert label_key_problems(key) == ()


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        pytest.param("", "name part must be non-empty", id="empty"),
        pytest.param("a" * 64, "name part must be no more than 63 bytes", id="long name"),
        pytest.param("-a", "name part must consist of alphanumeric characters", id="bad start"),
        pytest.param("ä", "name part must consist of alphanumeric characters", id="not ASCII"),
        pytest.param("a\n", "name part must consist of alphanumeric characters", id="line break at the end"),
        pytest.param("/a", "prefix part must be non-empty", id="empty domain"),
        pytest.param("a_b/c", "prefix part a lowercase RFC 1123 subdomain must consist", id="bad domain"),
        pytest.param("a-.b/c", "prefix part a lowercase RFC 1123 subdomain must consist", id="label ends in a dash"),
        pytest.param("a" * 254 + "/c", "prefix part must be no more than 253 bytes", id="long domain"),
        pytest.param("a/b/c", "a valid label key must consist of alphanumeric characters", id="two slashes"),
    ],
)
def test_bad_keys(key: str, problem: str) -> None:
    """The first problem is told in upstream's words."""
    assert label_key_problems(key)[0].startswith(problem)


@pytest.mark.parametrize(
    ("value", "is_good"), [("", True), ("a", True), ("a.b-C_1", True), ("a" * 64, False), ("-", False), ("a b", False)]
)
def test_values(value: str, is_good: bool) -> None:
    """Empty, or like the name part of a key."""
    assert (label_value_problems(value) == ()) is is_good


def test_hostile_keys_are_linear() -> None:
    """No backtracking without end."""
    start = time.perf_counter()
    label_key_problems("a-" * 50_000 + "/x")
    label_value_problems("a." * 50_000)
    assert time.perf_counter() - start < 0.1
