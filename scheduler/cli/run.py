"""``podium run``: the daemon, with kube-scheduler's flags.

Exit codes: 0 asked to stop, 1 the configuration is not valid or the lease was lost, 2 usage.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler import __version__
from scheduler.config.dump import write_configuration
from scheduler.config.errors import ConfigError, UsageError
from scheduler.config.flags import CompletedConfig, complete, parse_flags
from scheduler.config.help import help_text
from scheduler.telemetry import logging

if TYPE_CHECKING:
    from scheduler.app.daemon import Daemon

__all__ = ["run"]

_log = logging.get_logger(__name__)


def run(argv: Sequence[str]) -> int:
    """Run the sub-command; returns its exit code."""
    try:
        flags = parse_flags(argv)
    except UsageError as error:
        print(f"Error: {error}\nRun 'podium run --help' for usage.", file=sys.stderr)
        return 2
    if flags["help"]:
        print(help_text("podium run"))
        return 0
    if flags["version"] != "false":
        print(f"podium {__version__}")
        return 0
    try:
        completed = complete(flags)
        if flags["write-config-to"]:
            write_configuration(completed.configuration, flags["write-config-to"])
            return 0
        return _daemon(completed)
    except ConfigError as error:
        print("\n".join(f"Error: {problem}" for problem in error.problems), file=sys.stderr)
        return 1


def _daemon(completed: CompletedConfig) -> int:
    from scheduler.app.daemon import Daemon  # noqa: PLC0415  a wrong flag is reported without loading the engine
    from scheduler.kube.errors import CredentialsError  # noqa: PLC0415
    from scheduler.kube.lease import LeaseConfigError  # noqa: PLC0415
    from scheduler.serving.options import ServingError  # noqa: PLC0415

    logging.configure(completed.flags["logging-format"], completed.flags["v"])
    logging.start_writer()
    try:
        for note in completed.notes:
            _log.info(note)
        return asyncio.run(_live(Daemon(completed)))
    except (CredentialsError, LeaseConfigError, ServingError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    finally:
        logging.stop_writer()


async def _live(daemon: Daemon) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)
    loop.add_signal_handler(signal.SIGUSR2, daemon.dump)
    return await daemon.run()
