"""Metrics of plugins: what ``Handle.metrics`` hands out, on the families of telemetry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from scheduler.api import DEFAULT_BUCKETS
from scheduler.telemetry.plugin_families import PluginFamilies
from scheduler.telemetry.recorders import CounterFamily, Family, GaugeFamily, HistogramFamily

__all__ = ["ProfileMetrics"]


class _Bound:
    """A family with the values of its first labels; the others follow by ``labels``."""

    __slots__ = ("_family", "_values")

    def __init__(self, family: Family[Any], values: tuple[str, ...]) -> None:
        self._family = family
        self._values = values
        if len(values) == len(family.description.labels):
            family.labels(*values)  # shown from the beginning

    def labels(self, *values: str) -> Self:
        """Return the metric for these values of the remaining labels."""
        return type(self)(self._family, (*self._values, *values))

    def _child(self) -> Any:
        return self._family.labels(*self._values)


class _Counter(_Bound):
    __slots__ = ()

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``."""
        self._child().inc(amount)


class _Gauge(_Bound):
    __slots__ = ()

    def set(self, value: float) -> None:
        """Replace the number."""
        self._child().set(value)

    def add(self, amount: float) -> None:
        """Add ``amount``."""
        self._child().add(amount)


class _Histogram(_Bound):
    __slots__ = ()

    def observe(self, value: float) -> None:
        """Book one observation."""
        self._child().observe(value)


class ProfileMetrics:
    """Implements ``scheduler.api.PluginMetrics`` for the plugins of one profile."""

    __slots__ = ("_families", "_profile")

    def __init__(self, profile: str, families: PluginFamilies) -> None:
        self._profile = profile
        self._families = families

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> _Counter:
        """Make a counter."""
        return _Counter(self._families.make(CounterFamily, name, text, ("profile", *labels)), (self._profile,))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> _Gauge:
        """Make a gauge."""
        return _Gauge(self._families.make(GaugeFamily, name, text, ("profile", *labels)), (self._profile,))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> _Histogram:
        """Make a histogram."""
        made = self._families.make(HistogramFamily, name, text, ("profile", *labels), buckets)
        return _Histogram(made, (self._profile,))
