"""Control planes with an audit log, one for all fault tests of a session unless a test spoils it or wants its own."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from pathlib import Path

from tests.controlplane.cluster import UNTHROTTLED, ControlPlane, ControlPlaneError
from tests.faults.history.audit import audit_flags
from tests.integration.conftest import make_scraper


class AuditedPlane:
    """A control plane that notes what our schedulers ask.

    Attributes:
        plane: the control plane.
        audit_file: its audit log.
    """

    def __init__(self, directory: Path, flags: Sequence[str] = UNTHROTTLED, etcd_flags: Sequence[str] = ()) -> None:
        """Start it; the log and its policy go into the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        self.audit_file = directory / "audit.log"
        self.plane = ControlPlane.start(extra_flags=(*flags, *audit_flags(directory)), etcd_flags=etcd_flags)
        self._identities: dict[str, Path] = {}
        make_scraper(self.plane)

    def identity(self, user: str) -> Path:
        """Return a kubeconfig with exactly the deployed rights."""
        if user not in self._identities:
            self._identities[user] = self.plane.scheduler_identity(user)
        return self._identities[user]

    def is_sound(self) -> bool:
        """Tell whether the next test can use it."""
        if not (self.plane.etcd.is_running and self.plane.apiserver.is_running):
            return False
        try:
            self.plane.wait_ready(20)
        except (ControlPlaneError, OSError, http.client.HTTPException):
            return False
        return True

    def stop(self) -> None:
        self.plane.stop()
