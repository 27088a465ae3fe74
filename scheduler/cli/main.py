"""The ``podium`` command: finds the sub-command and imports no more than it needs.

    podium run            the daemon, with kube-scheduler's flags
    podium check-config   says what is wrong with a configuration file
    podium doctor         says whether rights, lease and names are as they should be
    podium plugins        lists the plugins on offer, and where they come from
    podium simulate       decides for cases or manifests without a cluster
    podium demo           shows the daemon on an embedded API server

Exit codes: 0 done or asked to stop, 1 failure, 2 usage.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from scheduler import __version__

__all__ = ["entry", "main"]

# sub-command -> module and function (argv -> exit code), what it does
_COMMANDS = {
    "run": ("scheduler.cli.run:run", "run the scheduler (kube-scheduler's flags; see podium run --help)"),
    "check-config": ("scheduler.cli.check_config:check_config", "say what is wrong with a configuration file"),
    "doctor": ("scheduler.cli.doctor:doctor", "say whether rights, lease and names are as they should be"),
    "plugins": ("scheduler.cli.plugins:plugins", "list the plugins on offer, and where they come from"),
    "simulate": ("scheduler.cli.simulate:simulate", "decide for cases or manifests without a cluster"),
    "demo": ("scheduler.cli.demo:demo", "show the scheduler on an embedded API server"),
}


def entry() -> NoReturn:
    """Run the command as a process of its own: ``main``, then the end, at once.

    The interpreter is not torn down. Threads of the HTTP client's Rust runtime may call into Python until the very end,
    and doing so while the interpreter goes away aborts the process, with a signal instead of its exit code.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sub-command that the arguments name.

    Args:
        argv: arguments without the program's name; None means the process's own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in ("--version", "version"):
        print(f"podium {__version__}")
        return 0
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if not arguments or arguments[0] not in _COMMANDS:
        problem = f'unknown command "{arguments[0]}"\n' if arguments else ""
        print(f"{problem}{_usage()}", file=sys.stderr)
        return 2
    module, _, function = _COMMANDS[arguments[0]][0].partition(":")
    code: int = getattr(importlib.import_module(module), function)(arguments[1:])
    return code


def _usage() -> str:
    lines = [f"  {name:<14}{what}" for name, (_, what) in _COMMANDS.items()]
    return "usage: podium COMMAND [flags]\n\ncommands:\n" + "\n".join(lines)
