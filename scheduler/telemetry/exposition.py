"""Exposition: families as Prometheus text, through a registry of our own.

prometheus_client renders (and plugins may register its ordinary collectors in ``MetricsRegistry.registry``); the
families of ``recorders`` enter it through one collector. A family without children is left out, as client_golang does.
Bucket bounds are written the way Go writes them (``le="1"``, not ``le="1.0"``), so that a recording rule that names a
bucket matches. Texts are always format 0.0.4: OpenMetrics would rename counters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from scheduler.telemetry.recorders import Family, HistogramRecorder

__all__ = ["CONTENT_TYPE", "MetricsRegistry", "Rows", "go_float", "process_start_s", "render_rows"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
Rows = Mapping[str, tuple[str, Iterable[tuple[Mapping[str, str], float]]]]
"""Metric name → (help text with its stability prefix, (labels, value) of every series), all of them gauges."""

_PLAIN_EXPONENTS = range(-4, 6)


def go_float(value: float) -> str:
    """Return the text that Go's ``strconv.FormatFloat(value, 'g', -1, 64)`` gives, with Prometheus' ``+Inf``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if not value:
        return "0"
    decimal = Decimal(repr(float(value))).normalize()
    exponent = decimal.adjusted()
    if exponent in _PLAIN_EXPONENTS:
        return f"{decimal:f}"
    sign, digits, _ = decimal.as_tuple()
    fraction = "".join(map(str, digits[1:]))
    mantissa = f"{digits[0]}.{fraction}" if fraction else str(digits[0])
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


class MetricsRegistry:
    """What one HTTP path exposes: families, plus ordinary prometheus_client collectors.

    Attributes:
        registry: for collectors of plugins; no default collectors and no ``_created`` series.
    """

    def __init__(self, families: Iterable[Family[Any]], *, with_process: bool = False) -> None:
        self.families = tuple(families)
        self._disabled: frozenset[str] = frozenset()
        self.registry = CollectorRegistry()
        self._refreshers: list[Callable[[], None]] = []
        self.registry.register(_FamilyCollector(self))
        if with_process:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)
            GCCollector(registry=self.registry)

    def disable(self, names: Collection[str]) -> None:
        """Leave these metrics out of the exposition (``--disabled-metrics``); unknown names are ignored.

        # parity: the collectors of the process, ``process_*`` and ``python_*``, stay.
        """
        self._disabled |= frozenset(names)
        self.families = tuple(family for family in self.families if family.description.name not in names)

    def add(self, family: Family[Any]) -> None:
        """Expose one more family, unless its name is disabled."""
        if family.description.name not in self._disabled:
            self.families = (*self.families, family)

    def on_scrape(self, refresh: Callable[[], None]) -> None:
        """Run ``refresh`` before every scrape, on the thread that scrapes; it must not block nor raise."""
        self._refreshers.append(refresh)

    def refresh(self) -> None:
        """Run the refreshers; called by the collector at each scrape."""
        for refresher in self._refreshers:
            refresher()

    def render(self) -> bytes:
        """Return the exposition; callable from any thread."""
        return generate_latest(self.registry)

    def reset(self) -> None:
        """Zero counters and histograms (``DELETE /metrics``)."""
        for family in self.families:
            family.clear()


class _FamilyCollector(Collector):
    def __init__(self, owner: MetricsRegistry) -> None:
        self._owner = owner

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: our names never collide, and asking must not run the refreshers."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        self._owner.refresh()
        for family in self._owner.families:
            if family.by_labels:
                yield _metric(family)


def _metric(family: Family[Any]) -> Metric:
    description = family.description
    # prometheus_client appends _total to the name of a counter itself.
    name = description.name.removesuffix("_total") if family.kind == "counter" else description.name
    metric = Metric(name, description.help_line, family.kind)
    for values, child in family.children():
        labels = dict(zip(description.labels, values, strict=True))
        if isinstance(child, HistogramRecorder):
            _add_histogram(metric, description.name, labels, child)
        else:
            metric.add_sample(description.name, labels, child.value)
    return metric


def _add_histogram(metric: Metric, name: str, labels: dict[str, str], child: HistogramRecorder) -> None:
    counts = child.counts.copy()  # one bytecode: buckets and count agree even beside a writing thread
    running = 0
    for bound, count in zip((*child.bounds, math.inf), counts, strict=True):
        running += count
        metric.add_sample(f"{name}_bucket", {**labels, "le": go_float(bound)}, running)
    metric.add_sample(f"{name}_sum", labels, child.sum)
    metric.add_sample(f"{name}_count", labels, running)


class _RowsCollector(Collector):
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        for name, (text, series) in self._rows.items():
            metric = Metric(name, text, "gauge")
            for labels, value in series:
                metric.add_sample(name, dict(labels), value)
            if metric.samples:
                yield metric


def process_start_s() -> float | None:
    """Return when this process was started, in seconds since 1970; None where the system does not tell."""
    for metric in ProcessCollector(registry=None).collect():
        if metric.name == "process_start_time_seconds":
            return float(metric.samples[0].value)
    return None


def render_rows(rows: Rows) -> bytes:
    """Return gauges that exist only for one scrape, such as /metrics/resources."""
    registry = CollectorRegistry()
    registry.register(_RowsCollector(rows))
    return generate_latest(registry)
