"""QueuedPodInfo: a pending pod and its history in the queue, as QueueSort plugins and the cycle see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.api.events import ClusterEvent
from scheduler.model.pod import Pod

__all__ = ["QueuedPodInfo"]


@dataclass(slots=True, eq=False)
class QueuedPodInfo:
    """One pending pod's record; the queue owns it, a cycle borrows it between pop and done.

    All times are seconds of the scheduler's Clock.

    Attributes:
        pod: the newest version of the pod that the queue knows.
        timestamp_s: when the pod entered the queue or last failed; orders pods of equal priority and starts back-offs.
        attempts: scheduling attempts so far, the running one included.
        backoff_expiration_s: end of the present back-off, a whole second; None until computed after a failure.
        unschedulable_count: attempts that ended with a rejection; the back-off doubles with it.
        consecutive_errors_count: errors in a row; while above zero it decides the back-off instead.
        initial_attempt_timestamp_s: when the pod first became eligible (time spent gated does not count).
        unschedulable_plugins: plugins whose rejection ended the last attempt.
        pending_plugins: those of them that answered Pending.
        gating_plugin: the PreEnqueue plugin that keeps the pod out of the queue, or "".
        gating_plugin_events: the events that plugin registered.
        was_flushed_from_unschedulable: the five-minute sweep, not an event, brought it back last.
    """

    pod: Pod
    timestamp_s: float
    attempts: int = 0
    backoff_expiration_s: float | None = None
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    initial_attempt_timestamp_s: float | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    gating_plugin_events: Sequence[ClusterEvent] = ()
    was_flushed_from_unschedulable: bool = False

    @property
    def is_gated(self) -> bool:
        """Say whether a PreEnqueue plugin keeps the pod out of the queue."""
        return self.gating_plugin != ""
