"""``reference/flags.md``: the command line of ``podium run`` and its feature gates."""

from __future__ import annotations

from scheduler.config.durations import format_duration
from scheduler.config.errors import go_value
from scheduler.config.flag_table import INERT, SECTIONS, Flag
from scheduler.config.gates import DEFAULT_GATES, HONOURED

_HEAD = """# Flags

`podium run` takes kube-scheduler's flags, with the same names and defaults, as `--flag=value` or `--flag value`. A flag
marked *no effect* is accepted, because existing manifests carry it; Podium then says so once in its log. Exit codes: 0
asked to stop, 1 an error or the lease was lost, 2 wrong usage.

*Made from `scheduler/config/flag_table.py` and `gates.py` by `make docs-reference`.*
"""
_GATES = """
## Feature gates

`--feature-gates=A=true,B=false` knows all gates of Kubernetes 1.36, since clusters hand one list to all components.
These are the ones that change what Podium does:

| gate | default |
|---|---|
"""


def flags_page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for title, flags in SECTIONS.items():
        parts.append(f"\n## {title}\n\n| flag | type | default | meaning |\n|---|---|---|---|\n")
        parts += [_row(flag) for flag in flags]
    parts.append(_GATES)
    parts += [f"| `{name}` | {'on' if DEFAULT_GATES.enabled(name) else 'off'} |\n" for name in sorted(HONOURED)]
    return "".join(parts)


def _row(flag: Flag) -> str:
    usage = flag.usage.replace("|", "\\|") + (" *No effect.*" if flag.name in INERT else "")
    return f"| `--{flag.name}` | {flag.kind} | {_default(flag)} | {usage} |\n"


def _default(flag: Flag) -> str:
    if flag.kind == "duration":
        return f"`{format_duration(flag.default)}`"
    if isinstance(flag.default, tuple):
        return f"`{','.join(flag.default)}`" if flag.default else ""
    if flag.default in ({}, "", "0"):
        return ""
    return f"`{flag.default if flag.kind == 'ip' else go_value(flag.default)}`"
