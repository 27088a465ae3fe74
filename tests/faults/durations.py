"""Durations that cannot be: what a clock that jumped would leave in a scheduler's histograms of seconds.

A mean hides one wrong duration among a thousand, and one forward cancels one backward. So it is looked at what came
between two scrapes with one jump between them: all that was measured across it is wrong by the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from tests.integration.daemon import Metrics

__all__ = ["impossible"]


@dataclass(slots=True)
class _Histogram:
    """One series: how many are at or below each bound, and their sum."""

    sum_s: float = 0.0
    at_most: dict[float, float] = field(default_factory=dict)

    def since(self, before: _Histogram) -> _Histogram:
        counts = {bound: count - before.at_most.get(bound, 0.0) for bound, count in self.at_most.items()}
        return _Histogram(self.sum_s - before.sum_s, counts)

    def buckets(self) -> Iterator[tuple[float, float, float]]:
        """Yield lower and upper bound of each bucket, and what is in it."""
        known = sorted({0.0: 0.0, **self.at_most}.items())
        yield from ((low, high, upper - lower) for (low, lower), (high, upper) in pairwise(known))


def impossible(before: Metrics, after: Metrics, limit_s: float) -> list[str]:
    """Return what was counted between two scrapes and cannot be.

    That is a duration in a bucket beyond ``limit_s``, or a sum that is so far from what the buckets allow: below, since
    a negative duration stands in the lowest one; above, since the highest one has no end.
    """
    old = _histograms(before)
    found: list[str] = []
    for name, now in _histograms(after).items():
        new = now.since(old.get(name, _Histogram()))
        buckets = list(new.buckets())
        found += [f"{name}: {count:g} beyond {low:g} s" for low, _, count in buckets if low >= limit_s and count > 0]
        least_s = sum(low * count for low, _, count in buckets)
        most_s = sum((low if high == inf else high) * count for low, high, count in buckets)
        if not least_s - limit_s < new.sum_s < most_s + limit_s:
            found.append(f"{name}: a sum of {new.sum_s:g} s for what is between {least_s:g} and {most_s:g} s")
    return found


def _histograms(metrics: Metrics) -> dict[str, _Histogram]:
    """Return each series of each histogram of seconds, by name and labels."""
    found: dict[str, _Histogram] = {}
    for name, kind in metrics.families.items():
        if kind != "histogram" or not name.endswith("_seconds"):
            continue
        for labels, value in metrics.series(f"{name}_sum"):
            found[_key(name, labels)] = _Histogram(value)
        for labels, value in metrics.series(f"{name}_bucket"):
            found[_key(name, labels)].at_most[float(labels["le"])] = value
    return found


def _key(name: str, labels: dict[str, str]) -> str:
    return name + "".join(f" {key}={value}" for key, value in sorted(labels.items()) if key != "le")
