"""Where the figures come from: a file or a URL that holds ``{"ZONE": GRAMS_OF_CO2_PER_KWH, …}``."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

__all__ = ["SourceError", "read_intensities"]

_MAX_BYTES = 1_000_000


class SourceError(Exception):
    """The figures cannot be had, or are not what they should be."""


def read_intensities(source: str, timeout_s: float) -> Mapping[str, float]:
    """Return grams of CO2 per kWh by zone.

    Args:
        source: a path, or a URL of http or https.
        timeout_s: longest wait for the server to say something.

    Raises:
        SourceError: with the reason.
    """
    try:
        data = _fetch(source, timeout_s) if urlsplit(source).scheme in {"http", "https"} else _load(source)
        figures = msgspec.json.decode(data, type=dict[str, float])
    except (OSError, ValueError) as error:  # HTTP errors are OSErrors, bad JSON is a ValueError
        raise SourceError(f"{source}: {error}") from error
    bad = [zone for zone, grams in figures.items() if not isfinite(grams) or grams < 0]
    if bad or not figures:
        raise SourceError(f"{source}: no sensible figure for {', '.join(bad) or 'any zone'}")
    return figures


def _load(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return _bounded(file.read(_MAX_BYTES + 1))


def _fetch(url: str, timeout_s: float) -> bytes:
    with urllib.request.urlopen(url, timeout=timeout_s) as response:  # noqa: S310  the scheme has been looked at
        return _bounded(response.read(_MAX_BYTES + 1))


def _bounded(data: bytes) -> bytes:
    if len(data) > _MAX_BYTES:
        raise ValueError(f"more than {_MAX_BYTES} bytes")
    return data
