"""What tests do to etcd: spoken to through its HTTP gateway, and its files copied and put back."""

from __future__ import annotations

import json
import shutil
import signal
import urllib.request
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import ControlPlane

TIMEOUT_S = 30.0


class Etcd:
    """The etcd of one control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._data = plane.directory / "etcd"

    def call(self, path: str, **body: Any) -> Any:
        """Call a method of the gateway, e.g. ``kv/compaction``.

        Raises:
            OSError: it cannot be reached, or refuses.
        """
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self._plane.etcd_url}/v3/{path}", data=data)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return json.loads(response.read())

    def revision(self) -> int:
        """Return the newest revision, which is also the newest resourceVersion."""
        return int(self.call("maintenance/status")["header"]["revision"])

    def alarms(self) -> list[str]:
        return [alarm["alarm"] for alarm in self._alarms()]

    def _alarms(self) -> list[Any]:
        return self.call("maintenance/alarm", action="GET").get("alarms", [])

    def free(self) -> None:
        """Forget the past, give the room back, and take writes again: what an operator does about a full etcd."""
        self.call("kv/compaction", revision=str(self.revision()), physical=True)
        self.call("maintenance/defragment")
        for alarm in self._alarms():
            self.call("maintenance/alarm", action="DEACTIVATE", **alarm)

    def freeze(self) -> None:
        self._plane.etcd.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._plane.etcd.send_signal(signal.SIGCONT)

    def copy(self, directory: Path) -> None:
        """Copy the files as they are at one moment."""
        self.freeze()
        try:
            shutil.copytree(self._data, directory)
        finally:
            self.thaw()

    def restore(self, directory: Path) -> None:
        """Put a copy in the place of the files and start etcd on them; the API server must be down."""
        self._plane.etcd.kill()
        shutil.rmtree(self._data)
        shutil.copytree(directory, self._data)
        self._plane.start_etcd()
