"""Pick: the candidate whose eviction hurts least.

In this order: fewest violated budgets, lowest priority of the most important victim, smallest sum of priorities, fewest
victims, latest start of the earliest among the most important victims. What is still equal is left to chance.
Source: ``pickOneNodeForPreemption``.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import Victims

__all__ = ["best_nodes"]

_PRIORITY_OFFSET = 2**31  # makes every priority positive, so that fewer pods are better than more of negative priority


def best_nodes(candidates: Mapping[str, Victims], now_s: float) -> list[str]:
    """Return the nodes that are equally good and better than all others, sorted by name."""
    if len(candidates) < 2:
        return list(candidates)
    keys = {name: _harm(victims, now_s) for name, victims in candidates.items()}
    least = min(keys.values())
    return sorted(name for name, key in keys.items() if key == least)


def _harm(victims: Victims, now_s: float) -> tuple[int, int, int, int, float]:
    pods = victims.pods
    total = sum(pod.priority + _PRIORITY_OFFSET for pod in pods)
    return victims.num_pdb_violations, pods[0].priority, total, len(pods), -_earliest_start_s(victims, now_s)


def _earliest_start_s(victims: Victims, now_s: float) -> float:
    """Return when the first of the most important victims started; extenders may order victims as they like."""
    highest = max(pod.priority for pod in victims.pods)
    starts = (pod.started_s for pod in victims.pods if pod.priority == highest)
    return min(now_s if started_s is None else started_s for started_s in starts)
