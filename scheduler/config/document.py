"""Text to plain values: YAML or JSON, strictly and with bounded cost.

A configuration decides where pods run, so what a reader could misread is refused instead of guessed: duplicate keys,
more than 1 MiB, deep nesting, and aliases that expand without end ("billion laughs") are problems. Plain scalars mean
what the YAML library below kube-scheduler takes them to mean (``go.yaml.in/yaml/v2`` under ``sigs.k8s.io/yaml``): YAML
1.1 booleans (``yes``, ``on``, ``y``), Go's integer prefixes (``0x 0o 0b`` and a leading ``0``), no base 60, dates are
texts.

The tree is built from parser events with an explicit stack, so that hostile nesting cannot exhaust a stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from scheduler.config.errors import ConfigError, Path, Problem, join

__all__ = ["MAX_BYTES", "Document", "parse_document", "resolve_plain"]

MAX_BYTES = 1 << 20
MAX_DEPTH = 100
MAX_ALIASED_NODES = 10_000

_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_FINITE = frozenset(
    {".nan", ".NaN", ".NAN"} | {f"{sign}{word}" for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_MAX_NUMBER_CHARS = 400
_STR_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says.

    Attributes:
        value: dicts, lists, str, int, float, bool and None; of a duplicate key the last entry.
        problems: the duplicate keys.
        is_followed: whether further YAML documents followed, which nobody reads.
    """

    value: Any
    problems: tuple[tuple[Path, Problem], ...]
    is_followed: bool


def parse_document(data: bytes) -> Document:
    """Read the first document of a YAML or JSON text.

    Raises:
        ConfigError: too large, not UTF-8, not YAML, too deep, or with excessive aliases.
    """
    if len(data) > MAX_BYTES:
        raise ConfigError([f"the file has {len(data)} bytes, more than the {MAX_BYTES} that are allowed"])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([f"yaml: invalid UTF-8 at byte {error.start}"]) from None
    if text.lstrip().startswith("{"):
        document = _parse_json(text)
        if document is not None:
            return document
    try:
        return _Builder().build(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        raise ConfigError([_yaml_text(error)]) from None


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml_text(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return f"yaml: line {mark.line + 1}: {what}" if mark is not None else f"yaml: {what}"


# --- JSON ---------------------------------------------------------------------------------------------------------


class _Pairs(list[tuple[str, Any]]):
    """An object with its duplicates still in it."""


def _parse_json(text: str) -> Document | None:
    """Return None if the text is no JSON; it may still be YAML in flow style."""
    try:
        tree = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    problems: list[tuple[Path, Problem]] = []
    return Document(_without_duplicates(tree, (), problems), tuple(problems), is_followed=False)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _without_duplicates(value: Any, path: Path, problems: list[tuple[Path, Problem]]) -> Any:
    if len(path) > MAX_DEPTH:
        raise ConfigError([f"exceeded max depth of {MAX_DEPTH}"])
    if isinstance(value, _Pairs):
        result: dict[str, Any] = {}
        for key, item in value:
            here = (*path, key)
            if key in result:
                where = join(here)
                problems.append((here, Problem(where, f'strict decoding error: duplicate field "{where}"')))
            result[key] = _without_duplicates(item, here, problems)
        return result
    if isinstance(value, list):
        return [_without_duplicates(item, (*path, i), problems) for i, item in enumerate(value)]
    return value


# --- YAML ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A collection that is being filled."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    path: Path
    size: int = 1  # nodes inside, for the bound on aliases
    key: str | None = None
    awaits_value: bool = False
    merges: list[Any] = field(default_factory=list)


class _Builder:
    """Turns parser events into plain values."""

    def __init__(self) -> None:
        self.problems: list[tuple[Path, Problem]] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.aliased_nodes = 0
        self.root: Any = None

    def build(self, events: Iterator[yaml.Event]) -> Document:
        """Consume the events of the first document."""
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self.take(event)
        is_followed = any(isinstance(event, yaml.DocumentStartEvent) for event in events)
        return Document(self.root, tuple(self.problems), is_followed)

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            self.remember(event.anchor, value, 1)
            self.add(value, 1, event, is_merge=event.implicit[0] and event.value == "<<" and not event.style)
        elif isinstance(event, yaml.AliasEvent):
            self.add_alias(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self.open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.close(event)

    def open(self, event: Any) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise ConfigError([f"yaml: line {_line(event)}: exceeded max depth of {MAX_DEPTH}"])
        if self.stack and isinstance(self.stack[-1].value, dict) and not self.stack[-1].awaits_value:
            raise ConfigError([f"yaml: line {_line(event)}: a mapping key must be a text, a number or a boolean"])
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self.stack.append(_Open(value, event.anchor, self.child_path()))

    def close(self, event: yaml.Event) -> None:
        done = self.stack.pop()
        if isinstance(done.value, dict):
            for key, item in _merged(done.merges):
                done.value.setdefault(key, item)
        self.remember(done.anchor, done.value, done.size)
        self.add(done.value, done.size, event)

    def remember(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, size)

    def add_alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self.anchors:
            is_open = any(entry.anchor == event.anchor for entry in self.stack)
            what = "value contains itself" if is_open else "unknown anchor"
            raise ConfigError([f"yaml: line {_line(event)}: {what}: {event.anchor!r}"])
        value, size = self.anchors[event.anchor]
        self.aliased_nodes += size
        if self.aliased_nodes > MAX_ALIASED_NODES:
            raise ConfigError(["yaml: document contains excessive aliasing"])
        self.add(value, size, event)

    def add(self, value: Any, size: int, event: yaml.Event, *, is_merge: bool = False) -> None:
        if not self.stack:
            self.root = value
            return
        parent = self.stack[-1]
        parent.size += size
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif not parent.awaits_value:
            parent.key = None if is_merge else self.new_key(parent, value, event)
            parent.awaits_value = True
        else:
            if parent.key is None:
                parent.merges.append(value)
            else:
                parent.value[parent.key] = value
            parent.awaits_value = False

    def new_key(self, parent: _Open, value: Any, event: yaml.Event) -> str:
        if value is None or isinstance(value, (dict, list)):
            raise ConfigError([f"yaml: line {_line(event)}: a mapping key must be a text, a number or a boolean"])
        key = (
            value
            if isinstance(value, str)
            else str(value).lower()
            if isinstance(value, bool)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        assert isinstance(parent.value, dict)
        if key in parent.value:
            here = (*parent.path, key)
            text = f'strict decoding error: yaml: line {_line(event)}: key "{key}" already set in map'
            self.problems.append((here, Problem(join(here), text)))
        return key

    def child_path(self) -> Path:
        if not self.stack:
            return ()
        parent = self.stack[-1]
        step = len(parent.value) if isinstance(parent.value, list) else parent.key or "<<"
        return (*parent.path, step)


def _merged(merges: list[Any]) -> Iterator[tuple[str, Any]]:
    for merge in merges:
        for source in merge if isinstance(merge, list) else [merge]:
            if not isinstance(source, dict):
                raise ConfigError(["yaml: map merge requires map or sequence of maps as the value"])
            yield from source.items()


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 0


def _scalar(event: yaml.ScalarEvent) -> Any:
    tag = event.tag
    if tag is None or tag == "!":
        return resolve_plain(event.value) if tag is None and event.implicit[0] else event.value
    if tag == _STR_TAG:
        return event.value
    value = resolve_plain(event.value)
    wanted = {"int": int, "float": float, "bool": bool, "null": type(None)}.get(tag.removeprefix("tag:yaml.org,2002:"))
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is None or type(value) is not wanted:
        raise ConfigError([f"yaml: line {_line(event)}: cannot read {event.value!r} with the tag {tag!r}"])
    return value


def resolve_plain(text: str) -> str | int | float | bool | None:
    """Return what an unquoted scalar means."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _NOT_FINITE:
        raise ConfigError([f"json: unsupported value: {text}"])
    if text[0] not in "+-.0123456789" or len(text) > _MAX_NUMBER_CHARS:
        return text
    number = _number(text.replace("_", ""))
    return text if number is None else number


def _number(text: str) -> int | float | None:
    match = _INTEGER.fullmatch(text)
    if match is not None:
        sign, *groups = match.groups()
        digits, base = next((d, b) for d, b in zip(groups, (16, 2, 8, 10), strict=True) if d is not None)
        value = int(digits, base)
        if value < 1 << 64 and not (sign == "-" and value > 1 << 63):
            return -value if sign == "-" else value
    if _FLOAT.fullmatch(text) is None:
        return None
    number = float(text)
    return number if abs(number) != float("inf") else None
