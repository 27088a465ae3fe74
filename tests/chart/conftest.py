"""Fixtures only: helm and kustomize, built before the first test that renders, and the image."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.chart.image import Image, build_image
from tests.chart.renderers.build import RenderersUnavailableError, binary_dir


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """What the Dockerfile makes."""
    return build_image(tmp_path_factory.mktemp("image"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the renderers before the first test: a first build takes longer than any test may."""
    here = Path(__file__).parent
    if any(here in item.path.parents for item in session.items):
        with contextlib.suppress(RenderersUnavailableError):  # raised again by each test that needs them
            binary_dir()
