"""Fixtures only: the bench of one fault test."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import UNTHROTTLED
from tests.faults import mutations
from tests.faults.bench import FaultBench
from tests.faults.planes import AuditedPlane
from tests.faults.results import BROKEN_RESULTS, KEPT, RESULTS, Result, patience

CONTROL_PLANE_TESTS_TIMEOUT_S = 900
_failed_key: pytest.StashKey[bool] = pytest.StashKey()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fault tests need the real control plane, and longer than other tests."""
    for item in items:
        if item.get_closest_marker("fault"):
            item.add_marker(pytest.mark.integration)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(CONTROL_PLANE_TESTS_TIMEOUT_S))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Let the bench see how the test went."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call":
        item.stash[_failed_key] = report.failed


class Planes:
    """The control plane that tests share; a new one when a test has spoilt it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shared: AuditedPlane | None = None
        self._made = 0

    def shared(self) -> AuditedPlane:
        if self._shared is not None and not self._shared.is_sound():
            self.stop()
        if self._shared is None:
            self._shared = self.own()
        return self._shared

    def own(self, flags: Sequence[str] = (), etcd_flags: Sequence[str] = ()) -> AuditedPlane:
        """Return a new one, with these flags besides the usual ones."""
        self._made += 1
        return AuditedPlane(self._directory / f"audit-{self._made}", (*UNTHROTTLED, *flags), etcd_flags)

    def stop(self) -> None:
        if self._shared is not None:
            self._shared.stop()
            self._shared = None


@pytest.fixture(scope="session")
def fault_planes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planes]:
    """Control planes with an audit log."""
    planes = Planes(tmp_path_factory.mktemp("faults"))
    try:
        yield planes
    finally:
        planes.stop()


@pytest.fixture
def bench(fault_planes: Planes, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultBench]:
    """A bench for this test; its result is noted, and what it knew is kept if it failed."""
    result, wishes = _result(request.node)
    is_own = any(wishes.values())
    audited = fault_planes.own(wishes["flags"], wishes["etcd_flags"]) if is_own else fault_planes.shared()
    made = FaultBench(audited, result, tmp_path)
    begun_s = time.monotonic()
    try:
        yield made
        assert made.result.promises or request.node.stash.get(_failed_key, True), "verdict() was not asked"
    finally:
        has_failed = request.node.stash.get(_failed_key, True)
        result.seconds = round(time.monotonic() - begun_s, 1)
        result.is_passed = result.is_passed and not has_failed
        result.append_to(BROKEN_RESULTS if mutations.wanted() else RESULTS)
        with contextlib.ExitStack() as ending:
            ending.callback(audited.stop if is_own else made.cluster.close)
            ending.callback(made.close)
            if has_failed:
                _keep(made, request.node.name)


def _result(item: pytest.Item) -> tuple[Result, dict[str, Any]]:
    """Return an empty result, and what the test wishes of its control plane."""
    marker = item.get_closest_marker("fault")
    assert marker is not None, "a test on the bench says which fault it is about: @fault(NUMBER, WORDS)"
    seed = item.config.getoption("--fault-seed")
    result = Result(
        number=marker.args[0],
        fault=marker.args[1],
        test=item.nodeid,
        is_starred=marker.kwargs.get("starred", False),
        seed=random.SystemRandom().randrange(2**31) if seed is None else seed,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        patience=patience(),
    )
    return result, {name: marker.kwargs.get(name, ()) for name in ("flags", "etcd_flags", "fresh")}


def _keep(bench: FaultBench, name: str) -> None:
    directory = KEPT / f"{name}-{bench.seed}"
    shutil.rmtree(directory, ignore_errors=True)
    bench.keep(directory)
    print(f"\nthe fault bench kept what it knows in {directory}; seed {bench.seed}")
