"""Calls: what the extension points of one profile share when they call plugins: guard, metrics, the stop watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.api import Code, Status
from scheduler.framework.guard import Guard, code_name
from scheduler.framework.metrics import FrameworkMetrics

__all__ = ["Calls", "failed"]


@dataclass(frozen=True, slots=True)
class Calls:
    """Collaborators of one profile's extension points.

    Attributes:
        profile: schedulerName, the label of every metric.
        guard: the door to plugin code.
        metrics: observers.
        perf_counter: stop watch in seconds; only differences mean anything.
    """

    profile: str
    guard: Guard
    metrics: FrameworkMetrics
    perf_counter: Callable[[], float]

    def observe(self, point: str, status: Status | None, started_s: float) -> None:
        """Observe the duration of an extension point that began at ``started_s``."""
        label = "Success" if status is None else code_name(status)
        self.metrics.extension_point(point, label, self.profile, self.perf_counter() - started_s)


def failed(wording: str, plugin: str, status: Status) -> Status:
    """Return the Error status for an answer that is neither success nor, at this point, a rejection.

    The text is upstream's: what was done, which plugin, and the plugin's own words. The cause is kept.
    """
    return Status(Code.ERROR, (f"{wording}: {status.message}",), plugin=plugin, cause=status.cause)
