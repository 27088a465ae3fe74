"""Fixtures only: the real control plane, shared by all integration tests of a session."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.build import ControlPlaneUnavailableError, binary_dir
from tests.controlplane.cluster import ControlPlane

FIXTURE = "control_plane"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the control plane before the first test: a first build takes longer than any test may."""
    if any(FIXTURE in getattr(item, "fixturenames", ()) for item in session.items):
        with contextlib.suppress(ControlPlaneUnavailableError):  # raised again by each test that needs it
            binary_dir()


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver on loopback; its logs are kept when a test failed."""
    plane = ControlPlane.start()
    try:
        yield plane
    finally:
        logs = None
        if request.session.testsfailed:
            logs = Path(tempfile.gettempdir()) / f"podium-controlplane-logs-{os.getpid()}"
            sys.stderr.write(f"\nlogs of the control plane: {logs}\n")
        plane.stop(keep_logs_in=logs)
