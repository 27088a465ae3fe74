"""A scheduler that is started again when it ends, as a kubelet would, with everything it wrote and how often it ended."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.integration.api import eventually
from tests.integration.daemon import Daemon

RESTART_DELAY_S = 0.2
_POLL_S = 0.02


class SupervisedScheduler:
    """One scheduler over all its restarts.

    Attributes:
        name: short, e.g. ``a``.
        user: under which it speaks to the API server; `history` and the audit log know it by this.
        proxy: the fault proxy between it and the API server, if the bench was asked for one.
        exits: wall-clock time and exit code of each end that nobody had asked for.
        asked_to_end_s: when each start was asked to end (SIGTERM), by its number, wall-clock time.
    """

    def __init__(self, name: str, user: str, start: Callable[[], Daemon], *, supervise: bool, proxy: object) -> None:
        self.name = name
        self.user = user
        self.proxy = proxy
        self.exits: list[tuple[float, int]] = []
        self.asked_to_end_s: dict[int, float] = {}
        self._start = start
        self._lock = threading.Lock()
        self._daemons = [start()]
        self._is_supervised = supervise
        self._is_stopping = False
        self._thread = threading.Thread(target=self._supervise, name=f"supervisor-{name}", daemon=True)
        self._thread.start()

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def daemon(self) -> Daemon:
        """The process that runs now, or ran last."""
        return self._daemons[-1]

    @property
    def daemons(self) -> Sequence[Daemon]:
        """All processes, in the order in which they were started."""
        return tuple(self._daemons)

    @property
    def restarts(self) -> int:
        return len(self._daemons) - 1

    @property
    def is_running(self) -> bool:
        return self.daemon.process.is_running

    @property
    def is_wanted(self) -> bool:
        """Tell whether it should run: nobody has asked it to end for good."""
        return not self._is_stopping

    @property
    def logs(self) -> list[Path]:
        """One file for each start."""
        return [daemon.process.log for daemon in self._daemons]

    def log(self) -> str:
        """Return everything that it has written over all its starts."""
        return "".join(daemon.log() for daemon in self._daemons)

    @property
    def leads(self) -> bool:
        """Tell whether it says that it is the leader (always without election); False if it cannot be asked."""
        try:
            return self.daemon.metrics().total("leader_election_master_status") == 1
        except (OSError, AssertionError):
            return False

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until ``/readyz`` answers 200, over restarts too."""
        try:
            eventually(lambda: self.daemon.health("/readyz")[0] == 200, f"{self.name} to be ready", timeout_s=timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; exits: {self.exits[-3:]}; its log ends: {self.log()[-2000:]}") from None

    def wait_exit(self, code: int, timeout_s: float = 60.0) -> float:
        """Wait until it has ended by itself for the first time; returns when. The exit code must be `code`."""
        at_s, ended_with = eventually(lambda: self.exits[0] if self.exits else None,
                                      f"the end of {self.name}", timeout_s=timeout_s)  # fmt: skip
        assert ended_with == code, f"{self.name} ended with {ended_with}:\n{self.log()[-4000:]}"
        return at_s

    # --- acting ------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process as a crash would; it is started again if supervised."""
        self.daemon.process.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        if number == signal.SIGTERM:
            self.asked_to_end_s[self.restarts] = time.time()
        self.daemon.process.send_signal(number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def terminate(self, timeout_s: float = 60.0) -> tuple[int, float]:
        """Send SIGTERM, wait, and do not start it again; returns exit code and seconds."""
        self.stop_supervising()
        self.asked_to_end_s[self.restarts] = time.time()
        return self.daemon.terminate(timeout_s)

    def start_again(self) -> None:
        """Start it anew after `terminate` or, if it is not supervised, after its end."""
        self._thread.join(10)
        assert not self.daemon.process.is_running
        self._is_stopping = False
        self._daemons.append(self._start())
        self._thread = threading.Thread(target=self._supervise, name=f"supervisor-{self.name}", daemon=True)
        self._thread.start()

    def stop_supervising(self) -> None:
        """Start it no more when it ends."""
        with self._lock:
            self._is_stopping = True

    def stop(self) -> None:
        """End it for good."""
        self.stop_supervising()
        self._thread.join(10)
        if self.daemon.process.is_running:
            self.thaw()
        self.daemon.process.stop()

    def _supervise(self) -> None:
        while not self._is_stopping:
            if not self.daemon.process.is_running:
                with self._lock:
                    if self._is_stopping:
                        return
                    self.exits.append((time.time(), self.daemon.process.stop()))
                if not self._is_supervised:
                    return
                time.sleep(RESTART_DELAY_S)
                with self._lock:
                    if self._is_stopping:
                        return
                    self._daemons.append(self._start())
            time.sleep(_POLL_S)
