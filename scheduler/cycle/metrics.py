"""What the cycle measures, as a Protocol: telemetry implements it, tests and simulations leave it out."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ERROR", "SCHEDULED", "UNSCHEDULABLE", "CycleMetrics", "NullCycleMetrics"]

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"


class CycleMetrics(Protocol):
    """Observers of scheduling attempts; all run on the scheduling thread and must be cheap."""

    def algorithm(self, duration_s: float) -> None:
        """Observe ``scheduling_algorithm_duration_seconds``: choosing a node, PostFilter included."""

    def attempt(self, result: str, profile: str, duration_s: float) -> None:
        """Count ``schedule_attempts_total`` and observe ``scheduling_attempt_duration_seconds``."""

    def pod_scheduled(self, attempts: int, sli_duration_s: float | None, *, after_flush: bool) -> None:
        """Observe ``pod_scheduling_attempts`` and ``pod_scheduling_sli_duration_seconds`` of a bound pod.

        Args:
            attempts: how many it took; the label of the second shows "15+" from 15 on.
            sli_duration_s: seconds since the pod was first eligible, or None if unknown.
            after_flush: the five-minute sweep brought it back last: ``pod_scheduled_after_flush_total``.
        """

    def binding_dropped(self, outcome: str) -> None:
        """Count a binding that came to nothing because the pod is someone else's or gone (``lost``, ``gone``)."""


class NullCycleMetrics:
    """Measures nothing."""

    def algorithm(self, duration_s: float) -> None:
        """Ignore the observation."""

    def attempt(self, result: str, profile: str, duration_s: float) -> None:
        """Ignore the attempt."""

    def pod_scheduled(self, attempts: int, sli_duration_s: float | None, *, after_flush: bool) -> None:
        """Ignore the pod."""

    def binding_dropped(self, outcome: str) -> None:
        """Ignore the outcome."""
