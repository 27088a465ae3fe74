"""Plain values to typed values: a strict decoder that reports everything it dislikes.

The types say it all: field names, wire names (``rename="camel"`` or ``msgspec.field(name=…)``), defaults and, through
`Int32` and its siblings, Go's number ranges. msgspec's own converter stops at the first error, hence this one. A null
counts as absent. A wrongly typed value is reported and left at its default, so that validation can go on and more can
be reported in the same run.
"""

from __future__ import annotations

import base64
import binascii
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from scheduler.config.durations import DurationError, parse_duration
from scheduler.config.errors import Path, Problem, join

__all__ = ["Float32", "Float64", "GoNumber", "Int32", "Int64", "Part", "Problems", "Raw", "Seconds", "decode_into"]


@dataclass(frozen=True, slots=True)
class GoNumber:
    """The Go type of a number on the wire."""

    name: str
    lowest: float
    highest: float


_FLOAT32_MAX = 3.4028234663852886e38
Int32 = Annotated[int, GoNumber("int32", -(2**31), 2**31 - 1)]
Int64 = Annotated[int, GoNumber("int64", -(2**63), 2**63 - 1)]
Float32 = Annotated[float, GoNumber("float32", -_FLOAT32_MAX, _FLOAT32_MAX)]
Float64 = Annotated[float, GoNumber("float64", -1.8e308, 1.8e308)]
Seconds = Annotated[float, "duration"]
Raw = Annotated[Any, "raw"]

_PLAIN_INT = GoNumber("int32", -(2**31), 2**31 - 1)  # the model's counters are int32 on the wire
_LARGEST_WHOLE = 1e21  # from here on Go writes a float with an exponent, which no integer field takes


class Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of the configuration's values."""


class Problems:
    """Collects problems with their paths and hands them out in the order of the sorted file."""

    def __init__(self, found: tuple[tuple[Path, Problem], ...] = ()) -> None:
        self._found = list(found)

    def add(self, path: Path, text: str) -> None:
        """Record a problem whose text is complete."""
        self._found.append((path, Problem(join(path), text)))

    def mismatch(self, path: Path, value: object, wanted: str) -> None:
        """Record that a value has the wrong type."""
        # differs: upstream names the Go struct and stops at the first one; here the path says which entry it is
        where = join(path) or "the value"
        shown = f"{_kind(value)} {value}" if _kind(value) == "number" and wanted != "string" else _kind(value)
        self.add(path, f"{where}: cannot unmarshal {shown} into a field of type {wanted}")

    def unknown(self, path: Path) -> None:
        """Record a field that does not exist."""
        self.add(path, f'strict decoding error: unknown field "{join(path)}"')

    def sorted(self) -> list[Problem]:
        """Return the problems ordered by path: upstream decodes sorted keys."""
        return [problem for _, problem in sorted(self._found, key=lambda entry: _sort_key(entry[0]))]

    def __bool__(self) -> bool:
        return bool(self._found)


def _sort_key(path: Path) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, step, "") if isinstance(step, int) else (1, 0, step) for step in path)


_Convert = Callable[[Any, Path, Problems], Any]
_ABSENT: Any = object()


def decode_into(kind: Any, value: Any, path: Path, problems: Problems, *, skip: frozenset[str] = frozenset()) -> Any:
    """Return ``value`` as ``kind``, a struct type; wrong parts are reported and left at their defaults.

    Args:
        kind: a msgspec struct type all of whose fields have defaults.
        value: what the document says.
        path: where it says so.
        problems: takes what is wrong.
        skip: keys that the caller has dealt with.
    """
    if value is None:
        return kind()
    if not isinstance(value, Mapping):
        problems.mismatch(path, value, "object")
        return kind()
    fields = _fields(kind)
    found: dict[str, Any] = {}
    for key, item in value.items():
        if key in skip:
            continue
        if key not in fields:
            problems.unknown((*path, key))
            continue
        name, convert, null = fields[key]
        result = null((*path, key), problems) if item is None else convert(item, (*path, key), problems)
        if result is not _ABSENT:
            found[name] = result
    if getattr(kind, "ZERO_IS_UNSET", False):
        found = {name: item for name, item in found.items() if item or isinstance(item, bool)}
    return kind(**found)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[str, _Convert, Callable[[Path, Problems], Any]]]:
    return {
        field.encode_name: (field.name, _converter(field.type), _null(field.type))
        for field in msgspec.structs.fields(kind)
    }


def _null(annotation: Any) -> Callable[[Path, Problems], Any]:
    if annotation == Seconds:  # parity: only an optional duration may be null
        return lambda path, problems: _seconds("", path, problems)
    return lambda _path, _problems: _ABSENT


def _converter(annotation: Any) -> _Convert:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        return _converter(next(item for item in arguments if item is not type(None)))
    if origin is Annotated:
        mark = arguments[1]
        if isinstance(mark, GoNumber):
            return _number(arguments[0], mark)
        return _seconds if mark == "duration" else _raw
    if origin is tuple:
        return _list(_converter(arguments[0]))
    if origin is dict:
        return _map(_converter(arguments[1]))
    if annotation is int:
        return _number(int, _PLAIN_INT)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return lambda value, path, problems: decode_into(annotation, value, path, problems)
    return {str: _string, bool: _bool, bytes: _bytes}[annotation]


def _raw(value: Any, _path: Path, _problems: Problems) -> Any:
    return value


def _string(value: Any, path: Path, problems: Problems) -> Any:
    if isinstance(value, str):
        return value
    problems.mismatch(path, value, "string")
    return _ABSENT


def _bool(value: Any, path: Path, problems: Problems) -> Any:
    if isinstance(value, bool):
        return value
    problems.mismatch(path, value, "bool")
    return _ABSENT


def _bytes(value: Any, path: Path, problems: Problems) -> Any:
    if not isinstance(value, str):
        problems.mismatch(path, value, "[]byte")
        return _ABSENT
    try:
        return base64.b64decode("".join(value.split("\n")), validate=True)
    except (binascii.Error, ValueError):
        problems.add(path, f"{join(path)}: illegal base64 data")
        return _ABSENT


def _seconds(value: Any, path: Path, problems: Problems) -> Any:
    if not isinstance(value, str):
        problems.mismatch(path, value, "string")
        return _ABSENT
    try:
        return parse_duration(value)
    except DurationError as error:
        problems.add(path, f"{join(path)}: {error}")
        return _ABSENT


def _number(python: type, go: GoNumber) -> _Convert:
    def convert(value: Any, path: Path, problems: Problems) -> Any:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and go.lowest <= value <= go.highest
        if fits and (python is float or isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST_WHOLE)):
            return python(value)
        problems.mismatch(path, value, go.name)
        return _ABSENT

    return convert


def _list(item: _Convert) -> _Convert:
    def convert(value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, list):
            problems.mismatch(path, value, "list")
            return _ABSENT
        items = [item(entry, (*path, i), problems) for i, entry in enumerate(value)]
        return tuple(entry for entry in items if entry is not _ABSENT)

    return convert


def _map(item: _Convert) -> _Convert:
    def convert(value: Any, path: Path, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            problems.mismatch(path, value, "object")
            return _ABSENT
        items = {key: item(entry, (*path, key), problems) for key, entry in value.items()}
        return {key: entry for key, entry in items.items() if entry is not _ABSENT}

    return convert


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
