"""Fixtures only: a namespace and nodes of one's own, and daemons that end with the test."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, unique
from tests.integration.daemon import LEASE, SCHEDULER_USER, SCRAPER_USER, Daemon

StartDaemon = Callable[..., Daemon]

_LOG_TAIL = 8_000
_SCRAPER_PATHS = ["/metrics", "/metrics/slis", "/metrics/resources", "/configz", "/flagz", "/statusz"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the real control plane."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name != "test_checker.py":
            item.add_marker(pytest.mark.integration)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Let fixtures see how the test went."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call":
        item.stash[_failed_key] = report.failed


_failed_key: pytest.StashKey[bool] = pytest.StashKey()


@pytest.fixture(scope="session")
def identity(control_plane: ControlPlane) -> Path:
    """A kubeconfig with exactly the rights of deploy/all-in-one.yaml."""
    return control_plane.scheduler_identity(SCHEDULER_USER)


@pytest.fixture(scope="session")
def scraper(control_plane: ControlPlane) -> str:
    """A user who may read the daemon's pages."""
    return make_scraper(control_plane)


def make_scraper(plane: ControlPlane) -> str:
    """Make a user who may read the daemon's pages."""
    plane.client_kubeconfig(SCRAPER_USER)
    group = "rbac.authorization.k8s.io"
    rules = [{"nonResourceURLs": _SCRAPER_PATHS, "verbs": ["get"]}]
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": SCRAPER_USER}, "rules": rules}
    plane.apply_object(role)
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": SCRAPER_USER},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": SCRAPER_USER},
        "subjects": [{"kind": "User", "name": SCRAPER_USER, "apiGroup": group}],
    }
    plane.apply_object(binding)
    return SCRAPER_USER


@pytest.fixture
def cluster(control_plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A namespace, a schedulerName and (later) nodes of this test's own."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    made = Cluster(control_plane, words[:30].strip("-"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def start_daemon(
    control_plane: ControlPlane, identity: Path, scraper: str, request: pytest.FixtureRequest
) -> Iterator[StartDaemon]:
    """Start daemons that are stopped when the test ends; their logs are shown when it failed."""
    del scraper
    started: list[Daemon] = []

    def start(
        *profiles: Any, plane: ControlPlane = control_plane, kubeconfig: Path = identity, **options: Any
    ) -> Daemon:
        daemon = Daemon(plane, kubeconfig, profiles=profiles, **options)
        started.append(daemon)
        return daemon

    try:
        yield start
    finally:
        stop_all(started, show=request.node.stash.get(_failed_key, False))


@pytest.fixture(scope="module")
def module_daemon(
    control_plane: ControlPlane, identity: Path, scraper: str, request: pytest.FixtureRequest
) -> Iterator[Daemon]:
    """One daemon with the default profile for all tests of a module."""
    del scraper
    failed_before = request.session.testsfailed
    daemon = Daemon(control_plane, identity, profiles=[unique("shared")])
    try:
        daemon.wait_ready()
        yield daemon
    finally:
        stop_all([daemon], show=request.session.testsfailed > failed_before)


@pytest.fixture
def daemon(module_daemon: Daemon, cluster: Cluster) -> Daemon:
    """The module's daemon, which schedules the pods of this test."""
    cluster.scheduler = module_daemon.schedulers[0]
    return module_daemon


def stop_all(daemons: list[Daemon], *, show: bool) -> None:
    """Stop daemons, each by its own process id."""
    for daemon in daemons:
        daemon.process.stop()
        if show:
            sys.stderr.write(f"\n--- log of {daemon.name}\n{daemon.log()[-_LOG_TAIL:]}\n")


@pytest.fixture
def lease(control_plane: ControlPlane) -> Iterator[str]:
    """The election's lease, absent at first; returns its path."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}"
    control_plane.request("DELETE", path)
    yield path
    control_plane.request("DELETE", path)
