"""``reference/public-api.txt``: the surface that SemVer covers, one line a name, so that a change is a changed line.

It holds what ``scheduler.api`` and ``scheduler.testing`` export: functions and methods with their signatures, classes
with their bases, enums with their values, fields of structs and dataclasses with types and defaults, and the structs
that can be reached through fields (``pod.spec.affinity`` …).
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

import scheduler.api
import scheduler.testing
from scheduler.model.derived import derived

__all__ = ["public_api_page"]

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_HEAD = """\
# The public surface of Podium: what a plugin and its tests may rely on. A line that goes or changes breaks somebody: it
# needs a new major version (before 1.0: a new minor one), an entry in CHANGELOG.md, and for scheduler.api a higher
# API_VERSION. A new line needs a new minor version. Written by `make docs-reference`.
"""


def public_api_page() -> str:
    """Return the text."""
    lines: list[str] = []
    seen: set[type] = set()
    for module in (scheduler.api, scheduler.testing):
        for name in sorted(module.__all__):
            lines += _entry(f"{module.__name__}.{name}", getattr(module, name), seen)
    reached = sorted(_reachable_structs(seen), key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
    for kind in reached:
        lines += _class(f"{kind.__module__}.{kind.__qualname__}", kind)
    return _HEAD + "".join(f"{_ADDRESS.sub('', line)}\n" for line in lines)


def _entry(path: str, value: Any, seen: set[type]) -> Iterator[str]:
    if inspect.isclass(value):
        if value not in seen:  # exported by both modules
            seen.add(value)
            yield from _class(path, value)
    elif inspect.isfunction(value):
        yield f"{path}{inspect.signature(value)}"
    elif isinstance(value, typing.NewType):
        yield f"{path} = NewType({value.__supertype__.__name__})"
    elif typing.get_origin(value) is np.ndarray:  # whose text depends on numpy's version
        yield f"{path} = NDArray[{typing.get_args(typing.get_args(value)[1])[0].__name__}]"
    else:
        yield f"{path} = {value!r}"


def _class(path: str, kind: type) -> Iterator[str]:
    bases = [base.__name__ for base in kind.__bases__ if base is not object]
    yield f"class {path}({', '.join(bases)})"
    yield from (f"{path}.{line}" for line in sorted({*_fields(kind), *_members(kind)}))


def _fields(kind: type) -> Iterator[str]:
    """Yield enum members, and fields with type and default."""
    if issubclass(kind, enum.Enum):
        yield from (f"{name} = {member.value!r}" for name, member in kind.__members__.items())
    elif issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield f"{field.name}: {_annotation(kind, field.name)}{_default(field.default, msgspec.NODEFAULT)}"
    elif dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if not field.name.startswith("_"):
                yield f"{field.name}: {field.type}{_default(field.default, dataclasses.MISSING)}"
    else:
        for name, annotation in vars(kind).get("__annotations__", {}).items():
            if not name.startswith("_"):
                yield f"{name}: {annotation}"


def _annotation(kind: type, name: str) -> str:
    return next(
        str(vars(k)["__annotations__"][name]) for k in kind.__mro__ if name in vars(k).get("__annotations__", {})
    )


def _default(value: object, missing: object) -> str:
    return "" if value is missing else f" = {value!r}"


def _members(kind: type) -> Iterator[str]:
    """Yield methods and properties; the constructor where it is written out."""
    is_plain = not (issubclass(kind, (enum.Enum, msgspec.Struct)) or dataclasses.is_dataclass(kind))
    for name, value in vars(kind).items():
        if name.startswith("_") and not (name == "__init__" and is_plain and not getattr(kind, "_is_protocol", False)):
            continue
        if isinstance(value, (classmethod, staticmethod)):
            yield f"{name}{inspect.signature(value.__func__)}"
        elif isinstance(value, (property, derived)):
            getter = value.fget if isinstance(value, property) else value.make
            yield f"{name} -> {inspect.signature(getter).return_annotation}"
        elif inspect.isfunction(value):
            yield f"{name}{inspect.signature(value)}"


def _reachable_structs(exported: set[type]) -> set[type]:
    """Return the structs inside exported ones, which are not exported themselves."""
    found: set[type] = set()
    left = [kind for kind in exported if issubclass(kind, msgspec.Struct)]
    while left:
        for hint in typing.get_type_hints(left.pop()).values():
            for kind in _structs_in(hint):
                if kind not in found and kind not in exported:
                    found.add(kind)
                    left.append(kind)
    return found


def _structs_in(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and issubclass(hint, msgspec.Struct):
        yield hint
    for inner in typing.get_args(hint):
        yield from _structs_in(inner)
