"""What the queue counts and measures. ``telemetry`` keeps the numbers; the queue only says what happened."""

from __future__ import annotations

from typing import Protocol

__all__ = ["ACTIVE", "BACKOFF", "GATED", "UNSCHEDULABLE", "NullQueueMetrics", "QueueMetrics"]

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


class QueueMetrics(Protocol):
    """The queue's recorders; all are called on the scheduling thread and must be cheap."""

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that entered ``active``, ``backoff`` or ``unschedulable``: ``queue_incoming_pods_total``."""

    def pending(self, queue: str, delta: int) -> None:
        """Move the gauge ``pending_pods{queue}`` (``active``, ``backoff``, ``unschedulable``, ``gated``)."""

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        """Move the gauge ``unschedulable_pods{plugin,profile}``."""

    def hint_duration(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """Observe one hint call; ``hint`` is ``Queue``, ``QueueSkip`` or ``Error``."""

    def inflight_events(self, event: str, delta: int) -> None:
        """Move the gauge ``inflight_events{event}``; ``PodPopped`` counts the pods in flight."""

    def pre_enqueue_duration(self, profile: str, duration_s: float) -> None:
        """Observe one run of all PreEnqueue plugins of a profile."""

    def plugin_duration(self, point: str, plugin: str, status: str, duration_s: float) -> None:
        """Observe one plugin; a tenth of the runs are measured."""


class NullQueueMetrics:
    """Records nothing."""

    def incoming(self, queue: str, event: str) -> None: ...
    def pending(self, queue: str, delta: int) -> None: ...
    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None: ...
    def hint_duration(self, plugin: str, event: str, hint: str, duration_s: float) -> None: ...
    def inflight_events(self, event: str, delta: int) -> None: ...
    def pre_enqueue_duration(self, profile: str, duration_s: float) -> None: ...
    def plugin_duration(self, point: str, plugin: str, status: str, duration_s: float) -> None: ...
