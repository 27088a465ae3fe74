"""The real control plane and the real Prometheus for all tests of a session; and no test's log may hold a secret."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.controlplane.build import ControlPlaneUnavailableError, binary_dir
from tests.controlplane.cluster import ControlPlane
from tests.leaks import leaks
from tests.monitoring.build import Programs, PrometheusUnavailableError, programs

CONTROL_PLANE = "control_plane"
PROMETHEUS = "prometheus_programs"
FAULT_PLANES = "fault_planes"

# A property is true or not, however slow the machine is for a moment.
settings.register_profile("podium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("podium")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the fault bench (tests/faults)."""
    group = parser.getgroup("faults")
    group.addoption("--faults", action="store_true", help="run every fault test, not only the starred ones")
    group.addoption("--soak-minutes", type=float, default=3.0, help="length of the soak")
    group.addoption("--fault-seed", type=int, default=None, help="seed of fault tests (default: a new one each)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave fault tests that are not starred to `make faults`: together they take most of an hour."""
    if config.getoption("--faults"):
        return
    left = [i for i in items if (mark := i.get_closest_marker("fault")) and not mark.kwargs.get("starred")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what tests need before the first one: a first build takes longer than any test may."""
    needed = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    # The errors are raised again by each test that needs the programs.
    if needed & {CONTROL_PLANE, FAULT_PLANES}:
        with contextlib.suppress(ControlPlaneUnavailableError):
            binary_dir()
    if PROMETHEUS in needed:
        with contextlib.suppress(PrometheusUnavailableError):
            programs()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Fail a test whose captured output holds a private key or a token; what processes wrote, their owners search."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.passed:
        found = [f"{title}: {leak}" for title, text in report.sections for leak in leaks(text)]
        if found:
            report.outcome, report.longrepr = "failed", "\n".join(found)


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


@pytest.fixture(scope="session")
def prometheus_programs() -> Programs:
    """The Prometheus server and promtool."""
    return programs()
