"""A real Prometheus server on loopback as a child process of a test."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from tests.controlplane.process import ChildProcess, free_ports
from tests.monitoring.build import programs

READY_S = 60.0
HOST = "127.0.0.1"


class PrometheusError(RuntimeError):
    """The server did not start, or refused a query; the message holds its answer or the end of its log."""


class PrometheusServer:
    """A running server; `url` is its address. Ends (and removes its data) with `stop()` or the `with` block."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        """Start it with what prometheus.yml would say, and wait until it is ready.

        Raises:
            PrometheusUnavailableError: the program can be neither found nor built.
            PrometheusError: it ended, or was not ready in time.
        """
        program = programs().prometheus
        self.directory = Path(tempfile.mkdtemp(prefix="podium-prometheus-"))
        file = self.directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(dict(configuration)))
        (port,) = free_ports(1)
        self.url = f"http://{HOST}:{port}"
        flags = [f"--config.file={file}", f"--storage.tsdb.path={self.directory / 'data'}"]
        flags += [f"--web.listen-address={HOST}:{port}", "--log.level=warn"]
        self.process = ChildProcess("prometheus", [str(program), *flags], self.directory / "prometheus.log")
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and remove its data."""
        self.process.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the instant vector of a PromQL expression, as labels and value of each series.

        Raises:
            PrometheusError: the expression was refused.
        """
        result = self.api("query", query=expression)["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in result]

    def api(self, path: str, **parameters: str) -> Any:
        """Return `data` of an answer of the HTTP API under /api/v1/."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise PrometheusError(f"{path} {parameters} was refused: {error.read().decode()}") from error

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if not self.process.is_running:
                raise PrometheusError(f"prometheus ended while starting:\n{self.process.log_tail()}")
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2):
                    return
            except OSError:
                time.sleep(0.05)
        raise PrometheusError(f"prometheus was not ready in {READY_S:.0f} s:\n{self.process.log_tail()}")
