"""Metrics of a plugin's own: made through the handle, exposed by the daemon as ``podium_plugin_NAME``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

__all__ = ["DEFAULT_BUCKETS", "Counter", "Gauge", "Histogram", "PluginMetrics"]

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds, for requests over a network."""


class Counter(Protocol):
    """A number that only grows."""

    def labels(self, *values: str) -> Self:
        """Return the counter for these values of the labels that it was made with."""

    def inc(self, amount: float = 1) -> None:
        """Add ``amount`` (≥ 0)."""


class Gauge(Protocol):
    """A number that goes up and down."""

    def labels(self, *values: str) -> Self:
        """Return the gauge for these values of the labels that it was made with."""

    def set(self, value: float) -> None:
        """Replace the number."""

    def add(self, amount: float) -> None:
        """Add ``amount``, which may be negative."""


class Histogram(Protocol):
    """Counts of observations by size, and their sum."""

    def labels(self, *values: str) -> Self:
        """Return the histogram for these values of the labels that it was made with."""

    def observe(self, value: float) -> None:
        """Book one observation."""


class PluginMetrics(Protocol):
    """Makes metrics; to be used when the plugin is made. The metrics may be written to by any thread.

    Names are snake case without a prefix: ``age_seconds`` of any plugin is exposed as ``podium_plugin_age_seconds``, so
    begin them with the plugin's name. Each metric has the label ``profile`` in front of the plugin's own. A name that
    was made before gives the same metric again. All methods raise ValueError for a name that is not well-formed, or
    that was made before in another way.
    """

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Make a counter; its name ends in ``_total``."""

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Make a gauge."""

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> Histogram:
        """Make a histogram with these upper bounds."""
