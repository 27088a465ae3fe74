"""Every metric that the daemon may show, by name: what documentation, dashboard and alert rules are made from.

Families of the table (``families``), the pages they are served on, and what the collectors of the process add.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from scheduler.telemetry.families import POD_RESOURCES, Families
from scheduler.telemetry.recorders import Description, Family

__all__ = ["Entry", "catalogue"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One metric.

    Attributes:
        name: as on the TYPE line.
        kind: counter, gauge or histogram.
        labels: label names.
        stability: STABLE, BETA or ALPHA; "" for the metrics of the process.
        help: what it means.
        buckets: upper bounds of a histogram.
        path: where it is served.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    stability: str
    help: str
    buckets: tuple[float, ...]
    path: str


def catalogue() -> tuple[Entry, ...]:
    """Return all metrics: of the table in its order, then of the process."""
    families = Families()
    return (
        *(_of_family(family, "/metrics") for family in families.main),
        *_of_process(),
        *(_of_family(family, "/metrics/slis") for family in families.slis),
        *(_entry(description, "gauge", "/metrics/resources") for description in POD_RESOURCES),
    )


def _of_family(family: Family[Any], path: str) -> Entry:
    return _entry(family.description, family.kind, path)


def _entry(description: Description, kind: str, path: str) -> Entry:
    return Entry(
        description.name,
        kind,
        description.labels,
        description.stability,
        description.help,
        description.buckets,
        path,
    )


def _of_process() -> Iterator[Entry]:
    registry = CollectorRegistry()
    collectors: tuple[Collector, ...] = (
        ProcessCollector(registry=None),
        PlatformCollector(registry=None),
        GCCollector(registry=registry),
    )
    for collector in collectors:
        for metric in collector.collect():
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            labels = tuple(metric.samples[0].labels) if metric.samples else ()
            yield Entry(name, metric.type, labels, "", metric.documentation, (), "/metrics")
