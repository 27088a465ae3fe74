"""How many requests a contestant sent, and how long its binds took: from the API server's own metrics, read twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.benchmarks.api import Samples
from tests.benchmarks.stats import histogram_percentile

REQUESTS = "apiserver_request_total"
DURATIONS = "apiserver_request_duration_seconds_bucket"
FAMILIES = (REQUESTS, DURATIONS)
POSTED_EVENTS = "POST events"


def figures(before: Samples, after: Samples, own: Mapping[str, int], pods: int) -> dict[str, Any]:
    """Return the requests in between and a pod, the events among them, and how long the server took for a bind.

    Args:
        before: what the server had counted before the contestant started.
        after: and once it had come to rest.
        own: requests of the harness itself in between (noise, pods that arrive); they are left out.
        pods: the measured ones.
    """
    counts = _delta(before[REQUESTS], after[REQUESTS], own)
    old, new = (_bind_histogram(samples[DURATIONS]) for samples in (before, after))
    return {
        "requests_per_pod": round(sum(counts.values()) / pods, 3),
        "requests": {name: int(count) for name, count in sorted(counts.items())},
        "events_posted": int(counts.get(POSTED_EVENTS, 0)),
        "bind_request_ms_p50": _ms(histogram_percentile(old, new, 50)),
        "bind_request_ms_p99": _ms(histogram_percentile(old, new, 99)),
    }


def _delta(before: list[Any], after: list[Any], own: Mapping[str, int]) -> dict[str, float]:
    """Return the requests in between by verb and resource; those for no resource (health, metrics) do not count."""
    totals: dict[str, float] = {name: -count for name, count in own.items()}
    for sign, samples in ((-1, before), (1, after)):
        for labels, value in samples:
            if labels["resource"]:
                sub = labels.get("subresource", "")
                name = f"{labels['verb']} {labels['resource']}{'/' + sub if sub else ''}"
                totals[name] = totals.get(name, 0.0) + sign * value
    return {name: count for name, count in totals.items() if count > 0}


def _bind_histogram(samples: list[Any]) -> dict[float, float]:
    found: dict[float, float] = {}
    for labels, value in samples:
        if labels.get("subresource") == "binding" and labels.get("verb") == "POST":
            bound = float(labels["le"].replace("+Inf", "inf"))
            found[bound] = found.get(bound, 0.0) + value
    return found


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 1)
