"""``reference/configuration.md``: every field of both files, from the types that read them."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from scheduler.config.args import ARGS
from scheduler.config.options import SchedulerOptions
from scheduler.config.types import SchedulerConfiguration
from scheduler.config.wire import GoNumber, Part

__all__ = ["configuration_page"]

_HEAD = """# Configuration

Podium reads two files. `--config` names a `KubeSchedulerConfiguration` (`kubescheduler.config.k8s.io/v1`), the same
that kube-scheduler reads; `--options` names a `SchedulerOptions` (`podium.dev/v1alpha1`) with what only Podium knows.
`podium check-config FILE` says everything that is wrong with one at once. Unknown and repeated fields are errors.

*Made from the types in `scheduler/config` by `make docs-reference`.*
"""
_ARGS = """
## Arguments of plugins

`pluginConfig` of a profile gives a plugin its arguments: `{name: NodeResourcesFit, args: {…}}`. Plugins that are
installed from packages get theirs as they stand in the file.
"""
_ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*)$")


class UndescribedError(Exception):
    """A field of the configuration is not described in its type's docstring."""


def configuration_page() -> str:
    """Return the page as Markdown.

    Raises:
        UndescribedError: a field has no entry under ``Attributes:``.
    """
    parts = [_HEAD, *_tree(SchedulerConfiguration, "KubeSchedulerConfiguration")]
    parts.append(_ARGS)
    seen: set[type[Part]] = set()
    for plugin, args in sorted(ARGS.items()):
        parts += _tree(args, plugin, seen, level=3)
    parts += _tree(SchedulerOptions, "SchedulerOptions")
    return "".join(parts)


def _tree(part: type[Part], title: str, seen: set[type[Part]] | None = None, level: int = 2) -> Iterator[str]:
    seen = set() if seen is None else seen
    seen.add(part)
    yield _section(part, title, level)
    for field in msgspec.structs.fields(part):
        for inner in _parts(_hints(part)[field.name]):
            if inner not in seen:
                seen.add(inner)
                yield from _tree(inner, f"{title}.{field.encode_name}", seen, level)


def _section(part: type[Part], title: str, level: int) -> str:
    said = _descriptions(part)
    summary = _markdown(inspect.cleandoc(part.__doc__ or "").split("\n\n")[0])
    rows = []
    for field in msgspec.structs.fields(part):
        if field.name not in said:
            raise UndescribedError(f"{part.__module__}.{part.__name__}.{field.name}: describe it under Attributes")
        meaning = _markdown(said[field.name])
        rows.append(f"| `{field.encode_name}` | {_type(_hints(part)[field.name])} | {_default(field)} | {meaning} |\n")
    table = f"| field | type | default | meaning |\n|---|---|---|---|\n{''.join(rows)}"
    return f"\n{'#' * level} {title}\n\n{summary}\n\n{table}"


def _descriptions(part: type[Part]) -> dict[str, str]:
    """Return what the docstring's Attributes say, by field name."""
    _, _, text = inspect.cleandoc(part.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    names: tuple[str, ...] = ()
    for line in text.splitlines():
        entry = _ENTRY.match(line.strip()) if line.startswith("    ") and not line.startswith("     ") else None
        if entry:
            names = tuple(entry[1].split(", "))
            found |= dict.fromkeys(names, entry[2])
        elif line.startswith("     "):
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def _hints(part: type[Part]) -> dict[str, Any]:
    return get_type_hints(part, include_extras=True)


def _parts(hint: Any) -> Iterator[type[Part]]:
    """Yield the configuration types inside a type."""
    if isinstance(hint, type) and issubclass(hint, Part):
        yield hint
    for inner in get_args(hint):
        yield from _parts(inner)


def _type(hint: Any) -> str:
    if get_origin(hint) in {Union, types.UnionType}:
        return " or ".join(_type(inner) for inner in get_args(hint) if inner is not type(None))
    if get_origin(hint) is tuple:
        return f"list of {_type(get_args(hint)[0])}"
    if get_origin(hint) is dict:
        inner = get_args(hint)[1]
        return "objects by name" if isinstance(inner, type) and issubclass(inner, Part) else "arguments by plugin name"
    if hasattr(hint, "__metadata__"):
        mark = hint.__metadata__[0]
        return mark.name if isinstance(mark, GoNumber) else str(mark)
    return {"str": "string", "int": "int32", "bool": "bool", "bytes": "base64"}.get(hint.__name__, hint.__name__)


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if value is msgspec.NODEFAULT or value is None or value in ("", b"", ()):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (int, float, str)):
        return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
    return "see there"


def _markdown(text: str) -> str:
    """Turn a docstring's text into one line of Markdown for a table's cell."""
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())
