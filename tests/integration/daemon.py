"""`podium run` as a process of its own, under exactly the documented rights, as an operator would run it.

Each daemon has its own configuration file, port and log in the control plane's directory. It is stopped by its own
process id; its health and metrics are read over HTTPS as a scraper with a client certificate would.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import ssl
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cluster import HOST, ControlPlane
from tests.controlplane.process import ChildProcess, free_ports
from tests.integration.api import eventually, unique

SCHEDULER_USER = "podium"
SCRAPER_USER = "podium-scraper"
LEASE = "podium"
START_S = 30.0
EXIT_S = 30.0
_SERIES = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Daemon:
    """One running scheduler.

    Attributes:
        process: its process; `process.pid` is the only thing that is ever signalled.
        port: of its HTTPS server.
        schedulers: the names of its profiles.
    """

    def __init__(
        self,
        plane: ControlPlane,
        kubeconfig: Path,
        *,
        profiles: Sequence[str | Mapping[str, Any]],
        elect: bool = False,
        configuration: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = ("-m", "scheduler"),
        verbosity: int = 2,
        wrapper: Sequence[str] = (),
    ) -> None:
        """Start it; returns at once.

        Args:
            plane: the control plane whose directory takes files and logs.
            kubeconfig: who it is.
            profiles: names, or profiles as in a configuration file.
            elect: take part in leader election, with kube-scheduler's times.
            configuration: more fields of the configuration file.
            flags: more flags.
            environment: more variables.
            program: what Python starts as `podium`.
            verbosity: `-v`.
            wrapper: a command that ends in ``exec "$@"``: it prepares the process and becomes the daemon.
        """
        self._plane = plane
        (self.port,) = free_ports(1)
        self.name = unique("podium")
        self.schedulers = [p if isinstance(p, str) else str(p["schedulerName"]) for p in profiles]
        complete = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": elect, "resourceName": LEASE, "resourceNamespace": "kube-system"},
            "profiles": [{"schedulerName": p} if isinstance(p, str) else dict(p) for p in profiles],
            **(configuration or {}),
        }
        file = plane.directory / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump(complete))
        arguments = [*wrapper, sys.executable, *program, "run", "--config", str(file), "--kubeconfig", str(kubeconfig)]
        arguments += ["--bind-address", HOST, "--secure-port", str(self.port), f"-v={verbosity}", *flags]
        self.started_s = time.monotonic()
        self.process = ChildProcess(self.name, arguments, plane.directory / f"{self.name}.log", environment)

    # --- life --------------------------------------------------------------------------------------------------------

    def wait_ready(self, timeout_s: float = START_S) -> float:
        """Wait until `/readyz` answers 200; returns the seconds since the start."""

        def probe() -> bool:
            assert self.process.is_running, f"the daemon ended while starting:\n{self.log()[-6000:]}"
            return self.health("/readyz")[0] == 200

        eventually(probe, f"the daemon to be ready; its log:\n{self.log()[-3000:]}", timeout_s=timeout_s)
        return time.monotonic() - self.started_s

    def wait_exit(self, timeout_s: float = EXIT_S) -> int:
        """Wait until it has ended by itself; returns the exit code."""
        eventually(lambda: not self.process.is_running, f"the end of the daemon; its log:\n{self.log()[-3000:]}",
                   timeout_s=timeout_s)  # fmt: skip
        return self.process.stop()

    def terminate(self, timeout_s: float = EXIT_S) -> tuple[int, float]:
        """Send SIGTERM and wait; returns exit code and seconds."""
        asked_s = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.wait_exit(timeout_s)
        return code, time.monotonic() - asked_s

    def log(self) -> str:
        """Return everything it has written so far."""
        return self.process.log.read_text(errors="replace")

    # --- its HTTPS server --------------------------------------------------------------------------------------------

    def health(self, path: str) -> tuple[int, str]:
        """GET without credentials; status 0 if nothing listens."""
        try:
            return self.get(path, anonymous=True)
        except OSError:
            return 0, ""

    def get(
        self, path: str, *, user: str = SCRAPER_USER, anonymous: bool = False, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """GET as a user of the cluster (its client certificate must have been made before), or anonymously."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # the daemon made its certificate itself
        if not anonymous:
            context.load_cert_chain(self._plane.directory / f"{user}.crt", self._plane.directory / f"{user}.key")
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=10, context=context)
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read().decode()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def metrics(self) -> Metrics:
        """Scrape `/metrics`."""
        status, text = self.get("/metrics")
        assert status == 200, (status, text)
        return Metrics(text)

    def counting(self) -> Callable[..., float]:
        """Return a function like `Metrics.total` that says by how much a sum has grown since now."""
        before = self.metrics()

        def grown(name: str, **labels: str) -> float:
            return self.metrics().total(name, **labels) - before.total(name, **labels)

        return grown

    def configz(self) -> Any:
        status, text = self.get("/configz")
        assert status == 200, (status, text)
        return json.loads(text)


class Metrics:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._series: list[tuple[str, dict[str, str], float]] = []
        for line in text.splitlines():
            found = _SERIES.match(line)
            if found is not None:
                labels = dict(_LABEL.findall(found[2] or ""))
                self._series.append((found[1], labels, float(found[3])))

    @property
    def families(self) -> dict[str, str]:
        """Return type by family name, from the TYPE lines."""
        return dict(re.findall(r"^# TYPE (\S+) (\S+)$", self.text, re.MULTILINE))

    @property
    def names(self) -> frozenset[str]:
        """Return every series by its name and labels, as they were shown."""
        return frozenset(line.rpartition(" ")[0] for line in self.text.splitlines() if not line.startswith("#"))

    def series(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series of this name."""
        return [(have, value) for found, have, value in self._series if found == name]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of all series of this name that have these labels."""
        return sum(value for found, have, value in self._series if found == name and labels.items() <= have.items())
