"""The generated pages of ``docs/reference`` with the functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate.configuration import configuration_page
from docs.generate.flags import flags_page
from docs.generate.metrics import metrics_page
from docs.generate.public_api import public_api_page

__all__ = ["PAGES", "REFERENCE"]

REFERENCE = Path(__file__).resolve().parents[1] / "reference"

PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration_page,
    "flags.md": flags_page,
    "metrics.md": metrics_page,
    "public-api.txt": public_api_page,
}
"""File name -> its text."""
