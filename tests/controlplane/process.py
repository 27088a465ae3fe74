"""One child process of a test: its log file, its free ports, its end by its own process id.

Never ends anything by name: only the process that was started here, first asked (SIGTERM), then forced (SIGKILL).
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_TIMEOUT_S = 10.0
LOG_TAIL_BYTES = 4000


class ChildProcess:
    """A started program whose output goes to `log`."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self.arguments,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Ask it to end, force it after `timeout_s`; return the exit code."""
        if self.is_running:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL)."""
        if self.is_running:
            self._process.kill()
        self._process.wait()

    def send_signal(self, number: int) -> None:
        """Send a signal (SIGSTOP and SIGCONT for freezes)."""
        self._process.send_signal(number)

    def log_tail(self) -> str:
        """Return the end of what it wrote."""
        return self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace") if self.log.exists() else ""


def free_ports(count: int) -> list[int]:
    """Return loopback ports that were free a moment ago (all held at once, so they differ)."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
