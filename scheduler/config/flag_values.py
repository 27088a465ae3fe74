"""How the text of a flag becomes a value, by the flag's kind, with the texts of Go's flag library for what is wrong."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from typing import Any

from scheduler.config.durations import DurationError, parse_duration
from scheduler.config.errors import go_value
from scheduler.config.gates import parse_bool

__all__ = ["REPEATABLE", "WITHOUT_VALUE", "FlagValueError", "read_value"]

WITHOUT_VALUE = {"bool": "true", "help": "true", "version": "true"}
"""Kinds whose flags may stand alone, and what they then mean."""

REPEATABLE = frozenset({"strings", "int32Slice", "namedCertKey", "featureGates", "stringToString"})
"""Kinds whose flags add up when they are given several times."""

_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_QUANTITY = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_VMODULE = re.compile(r"[^=]+=[0-9]+")
_MAX_CHARS = 4096
_RAW_VERSION = "raw"


class FlagValueError(ValueError):
    """The text is no value of the flag's kind; the reason is Go's."""


def read_value(kind: str, text: str) -> Any:
    """Return the value of a flag's text; for the kinds in `REPEATABLE` the part to add.

    Raises:
        FlagValueError: the text is no value of that kind.
    """
    if len(text) > _MAX_CHARS and kind != "strings":
        raise FlagValueError("value too long")
    return _READERS.get(kind, str)(text)


def _bool(text: str) -> bool:
    value = parse_bool(text)
    if value is None:
        raise FlagValueError(f"strconv.ParseBool: parsing {go_value(text)}: invalid syntax")
    return value


def _integer(bits: int, *, is_signed: bool = True) -> Callable[[str], int]:
    go_function = "strconv.ParseInt" if is_signed else "strconv.ParseUint"
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)

    def read(text: str) -> int:
        digits = text.lstrip("+-")
        if _INTEGER.fullmatch(text) is None or (text != digits and not is_signed):
            raise FlagValueError(f"{go_function}: parsing {go_value(text)}: invalid syntax")
        is_old_octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        value = int(digits, 8) if is_old_octal else int(digits, 0)
        value = -value if text.startswith("-") else value
        if not lowest <= value <= highest:
            raise FlagValueError(f"{go_function}: parsing {go_value(text)}: value out of range")
        return value

    return read


def _float(text: str) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise FlagValueError(f"strconv.ParseFloat: parsing {go_value(text)}: invalid syntax")
    return float(text)


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise FlagValueError(str(error)) from None


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise FlagValueError(f"failed to parse IP: {go_value(text)}") from None


def _strings(text: str) -> Sequence[str]:
    return tuple(text.split(",")) if text else ()


def _int32s(text: str) -> Sequence[int]:
    return tuple(_integer(32)(part.strip()) for part in text.split(",")) if text else ()


def _string_map(text: str) -> dict[str, str]:
    """Read ``metric,label=value,value`` pairs; a pair's key holds a comma itself, so only one pair a flag."""
    key, equals, value = text.partition("=")
    if not equals:
        raise FlagValueError(f"{text} must be formatted as key=value")
    return {key: value}


def _vmodule(text: str) -> str:
    for part in filter(None, text.split(",")):
        if _VMODULE.fullmatch(part) is None:
            raise FlagValueError(f"{go_value(part)} does not have the pattern=N format")
    return text


def _quantity(text: str) -> str:
    if _QUANTITY.fullmatch(text) is None:
        raise FlagValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return text


def _version(text: str) -> str:
    if text == _RAW_VERSION or text.startswith("v"):
        return text
    return str(_bool(text)).lower()


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "bool": _bool,
    "help": _bool,
    "int": _integer(64),
    "int32": _integer(32),
    "Level": _integer(32, is_signed=False),
    "float32": _float,
    "duration": _duration,
    "ip": _ip,
    "strings": _strings,
    "int32Slice": _int32s,
    "namedCertKey": lambda text: (text,),
    "featureGates": lambda text: (text,),
    "stringToString": _string_map,
    "pattern=N,...": _vmodule,
    "quantity": _quantity,
    "version": _version,
}
