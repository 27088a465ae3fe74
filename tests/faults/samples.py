"""Asks every scheduler once a second what it says of itself, for as long as the test lasts.

One thread a scheduler and one connection a process, so that a frozen one holds up nobody else. The administrator asks:
no review is needed, so an API server that is down hides nothing.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import ssl
import threading
import time
from pathlib import Path

from tests.controlplane.cluster import HOST, ControlPlane
from tests.faults.history.record import Sample
from tests.faults.results import ROOT
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import eventually
from tests.integration.daemon import Daemon

PERIOD_S = 1.0
TIMEOUT_S = 5.0
ASKED_OF = (*(ROOT / "docs" / "runbooks").glob("*.md"), ROOT / "deploy" / "monitoring" / "alerts.yaml")
BUCKETS = frozenset(name for file in ASKED_OF for name in re.findall(r"\w+_bucket", file.read_text()))
"""The histograms whose buckets alerts and runbooks look at."""


class Silence:
    """Since when the API server has been dead or frozen, so that nobody can hear anything from it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lock = threading.Lock()
        self._since_s = 0.0

    def since_s(self) -> float:
        """Look; returns 0 if the server may be speaking."""
        with self._lock:
            if not _is_silent(self._plane):
                self._since_s = 0.0
            elif not self._since_s:
                self._since_s = time.time()
            return self._since_s


def _is_silent(plane: ControlPlane) -> bool:
    server = plane.apiserver
    if not server.is_running:
        return True
    try:
        stat = Path(f"/proc/{server.pid}/stat").read_text()
    except OSError:
        return True  # it ended just now
    return stat.rpartition(")")[2].split()[0] == "T"


class Sampler:
    """Follows schedulers until `stop`.

    Attributes:
        samples: what they said so far; of each process in order.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self.samples: list[Sample] = []
        self._silence = Silence(plane)
        self._context = plane.ssl_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # daemons make their certificates themselves
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lines: dict[str, str] = {}

    def follow(self, scheduler: SupervisedScheduler) -> None:
        """Ask this scheduler and all that are started in its place."""
        name = f"sampler-{scheduler.name}"
        self._threads.append(threading.Thread(target=self._follow, args=[scheduler], name=name, daemon=True))
        self._threads[-1].start()

    def wait_asked(self, scheduler: SupervisedScheduler) -> None:
        """Wait until it has been asked once more, so that what is so now has been seen."""
        now_s = time.time()

        def probe() -> bool:
            mine = [sample for sample in list(self.samples) if sample.scheduler == scheduler.name]
            return any(sample.asked_s > now_s and sample.metrics for sample in mine)

        eventually(probe, f"{scheduler.name} to be asked what it says of itself", timeout_s=60.0)

    def stop(self) -> None:
        """Ask no more; returns when no question is open."""
        self._ending.set()
        for thread in self._threads:
            thread.join(10 * TIMEOUT_S)
            assert not thread.is_alive(), "a sampler does not end"

    def cut(self) -> None:
        """Forget what was said."""
        self.samples = []
        self._lines = {}

    def _follow(self, scheduler: SupervisedScheduler) -> None:
        asking: Questions | None = None
        while not self._ending.wait(PERIOD_S):
            start, daemon = list(enumerate(scheduler.daemons))[-1]
            if asking is None or asking.daemon is not daemon:
                if asking is not None:
                    asking.close()
                asking = Questions(daemon, self._context)
            if daemon.process.is_running:
                self._ask(scheduler, start, asking)
        if asking is not None:
            asking.close()

    def _ask(self, scheduler: SupervisedScheduler, start: int, asking: Questions) -> None:
        daemon, silent_s = asking.daemon, self._silence.since_s()
        stopping_s = scheduler.asked_to_end_s.get(start, 0.0)
        asked_s = time.time()
        try:
            metrics_code, metrics = asking.ask("/metrics")
            ready, page = asking.ask("/readyz?verbose")
            live, _ = asking.ask("/livez")
        except (OSError, http.client.HTTPException):
            asking.close()
            return  # it has not begun to listen, or is frozen, or has ended: it says nothing
        answered_s = time.time()
        sample = Sample(
            scheduler.name,
            scheduler.user,
            start,
            started_s=time.time() - (time.monotonic() - daemon.started_s),
            asked_s=asked_s,
            answered_s=answered_s,
            ready=ready,
            page=page,
            live=live,
            metrics=self._kept(metrics) if metrics_code == 200 else (),
            silent_since_s=silent_s if silent_s == self._silence.since_s() else 0.0,
            stopping_since_s=stopping_s,
        )
        self.samples.append(sample)

    def _kept(self, text: str) -> tuple[str, ...]:
        """Return the lines that are worth keeping, each text once for all samples."""
        kept = self._lines
        return tuple(kept.setdefault(line, line) for line in text.splitlines() if _is_worth_keeping(line))


def _is_worth_keeping(line: str) -> bool:
    name = line.partition("{")[0]
    return not line.startswith("#") and (not name.endswith("_bucket") or name in BUCKETS)


class Questions:
    """A connection to one process, opened when there is something to ask."""

    def __init__(self, daemon: Daemon, context: ssl.SSLContext) -> None:
        self.daemon = daemon
        self._context = context
        self._connection: http.client.HTTPSConnection | None = None

    def ask(self, path: str) -> tuple[int, str]:
        """GET; returns status and text."""
        if self._connection is None:
            made = http.client.HTTPSConnection(HOST, self.daemon.port, timeout=TIMEOUT_S, context=self._context)
            self._connection = made
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        return response.status, response.read().decode()

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None
