"""One scrape, taken apart for comparison: families with type, stability, label names, label values and buckets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

_HELP = re.compile(r"^# HELP (\S+) (?:\[(\w+)\] )?(?:\(Deprecated since [^)]*\) )?(.*)$", re.MULTILINE)


@dataclass(slots=True)
class ScrapedFamily:
    """What a scrape says about one metric.

    Attributes:
        name: as on the TYPE line.
        kind: counter, gauge, histogram …
        stability: STABLE, BETA, ALPHA, or "" where the help text does not begin with one.
        help: text without the stability.
        values: the values seen, by label name; without `le`.
        buckets: the texts of `le`, in order.
    """

    name: str
    kind: str
    stability: str
    help: str
    values: dict[str, set[str]] = field(default_factory=dict)
    buckets: tuple[str, ...] = ()
    series: list[tuple[dict[str, str], float]] = field(default_factory=list)


def families(text: str) -> dict[str, ScrapedFamily]:
    """Return the families of a scrape by name.

    Raises:
        ValueError: the text is not a Prometheus exposition.
    """
    helps = {name: (stability or "", words) for name, stability, words in _HELP.findall(text)}
    return {family.name: family for family in _families(text, helps)}


def _families(text: str, helps: dict[str, tuple[str, str]]) -> Iterator[ScrapedFamily]:
    for metric in text_string_to_metric_families(text):
        name = f"{metric.name}_total" if metric.type == "counter" and metric.name not in helps else metric.name
        stability, words = helps[name]
        found = ScrapedFamily(name, metric.type, stability, words)
        buckets: dict[str, None] = {}
        for sample in metric.samples:
            labels = dict(sample.labels)
            bound = labels.pop("le", None)
            if bound is not None:
                buckets[bound] = None
            for label, value in labels.items():
                found.values.setdefault(label, set()).add(value)
            found.series.append((dict(sample.labels), sample.value))
        found.buckets = tuple(buckets)
        yield found
