"""Figures from time stamps: rates as scheduler_perf takes them, percentiles, histogram deltas."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence


def percentile(values: Sequence[float], per_cent: float) -> float | None:
    """Return the value at rank ceil(n·p/100) - 1 of the sorted values (scheduler_perf's rule); None if there is none."""
    if not values:
        return None
    return sorted(values)[max(math.ceil(len(values) * per_cent / 100) - 1, 0)]


def first_to_last_rate(times_s: Sequence[float]) -> float | None:
    """Return events per second between the first and the last; None for fewer than two."""
    if len(times_s) < 2:
        return None
    span_s = max(times_s) - min(times_s)
    return (len(times_s) - 1) / span_s if span_s > 0 else None


def sampled_rate(times_s: Sequence[float], begin_s: float, interval_s: float = 1.0) -> float | None:
    """Return the mean of the rates of a 1 s ticker, as scheduler_perf's SchedulingThroughput Average.

    The first sample with events only sets the baseline; ticks without events are spread over by the next rate; the
    rest after the last full tick is not seen. None if the run is too short for a sample.
    """
    if not times_s:
        return None
    counts = [0] * (int((max(times_s) - begin_s) / interval_s) + 1)
    for time_s in times_s:
        counts[int((time_s - begin_s) / interval_s)] += 1
    samples: list[float] = []
    has_baseline, skipped = False, 0
    for count in counts[:-1]:
        if not has_baseline:
            has_baseline = count > 0
        elif count == 0:
            skipped += 1
        else:
            samples += [count / (interval_s * (skipped + 1))] * (skipped + 1)
            skipped = 0
    return statistics.fmean(samples) if samples else None


def histogram_percentile(before: Mapping[float, float], after: Mapping[float, float], per_cent: float) -> float | None:
    """Return a percentile of what a Prometheus histogram (upper bound -> cumulative count) saw in between."""
    bounds = sorted(after)
    counts = [after[bound] - before.get(bound, 0.0) for bound in bounds]
    if not counts or counts[-1] <= 0:
        return None
    rank = counts[-1] * per_cent / 100
    lower, below = 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=True):
        if count >= rank:
            if math.isinf(bound):
                return lower
            return lower + (bound - lower) * ((rank - below) / (count - below) if count > below else 1.0)
        lower, below = bound, count
    return lower


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return median, least and greatest; None if there is no value."""
    return (statistics.median(values), min(values), max(values)) if values else None
