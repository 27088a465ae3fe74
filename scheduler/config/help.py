"""The text of ``--help``: the flags grouped in sections, as kube-scheduler prints them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from scheduler.config.durations import format_duration
from scheduler.config.errors import go_value
from scheduler.config.flag_table import SECTIONS, SHORT, Flag
from scheduler.config.flag_values import WITHOUT_VALUE

__all__ = ["help_text"]

_GAP = 3
_MIN_USAGE_COLUMNS = 40


def help_text(program: str, columns: int = 100) -> str:
    """Return the help of ``program``, for a terminal of so many columns."""
    lines = ["Usage:", f"  {program} [flags]"]
    for title, flags in SECTIONS.items():
        lines += ["", f"{title} flags:", "", *_section(flags, columns)]
    return "\n".join(lines) + "\n"


def _section(flags: Sequence[Flag], columns: int) -> Iterator[str]:
    heads = [_head(flag) for flag in flags]
    indent = max(map(len, heads)) + _GAP
    width = max(columns - indent, _MIN_USAGE_COLUMNS)
    for head, flag in zip(heads, flags, strict=True):
        first, *rest = textwrap.wrap(flag.usage + _default(flag), width, break_on_hyphens=False)
        yield head.ljust(indent) + first
        yield from (" " * indent + line for line in rest)


def _head(flag: Flag) -> str:
    letter = next((letter for letter, name in SHORT.items() if name == flag.name), None)
    start = f"  -{letter}, --{flag.name}" if letter else f"      --{flag.name}"
    return start if flag.kind in WITHOUT_VALUE else f"{start} {flag.kind}"


def _default(flag: Flag) -> str:
    if flag.kind == "version" or not flag.default:
        return ""
    if flag.kind == "duration":
        return f" (default {format_duration(flag.default)})"
    if isinstance(flag.default, tuple):
        return f" (default [{','.join(flag.default)}])"
    return f" (default {flag.default if flag.kind == 'ip' else go_value(flag.default)})"
