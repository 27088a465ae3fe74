"""Fixtures only: the programs that the documentation's commands need, built before the first test that runs them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.chart.renderers.build import RenderersUnavailableError
from tests.chart.renderers.build import binary_dir as renderers_dir
from tests.docs.kubectl.build import KubectlUnavailableError
from tests.docs.kubectl.build import binary_dir as kubectl_dir


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build them now: a first build takes longer than any test may. Errors are raised again by the tests."""
    here = Path(__file__).parent
    if any(here in item.path.parents for item in session.items):
        with contextlib.suppress(RenderersUnavailableError):
            renderers_dir()
        with contextlib.suppress(KubectlUnavailableError):
            kubectl_dir()
