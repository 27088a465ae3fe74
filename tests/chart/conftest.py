"""Fixtures only: helm and kustomize, built before the first test that renders."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.chart.renderers.build import RenderersUnavailableError, binary_dir


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the renderers before the first test: a first build takes longer than any test may."""
    here = Path(__file__).parent
    if any(here in item.path.parents for item in session.items):
        with contextlib.suppress(RenderersUnavailableError):  # raised again by each test that needs them
            binary_dir()
