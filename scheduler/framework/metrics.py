"""What the framework measures, as a Protocol: telemetry implements it, tests and simulations leave it out.

Durations of extension points are always observed; durations of single plugins only in the attempts that CycleState
marks (10 %). Metric names and labels: spec 7.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["FAULT_BAD_ANSWER", "FAULT_EXCEPTION", "FAULT_OVERRUN", "FrameworkMetrics", "NullFrameworkMetrics"]

FAULT_EXCEPTION = "exception"
FAULT_BAD_ANSWER = "bad_answer"
FAULT_OVERRUN = "overrun"


class FrameworkMetrics(Protocol):
    """Observers of the framework; all run on the scheduling thread and must be cheap."""

    def extension_point(self, point: str, status: str, profile: str, duration_s: float) -> None:
        """Observe ``framework_extension_point_duration_seconds``."""

    def plugin_duration(self, point: str, plugin: str, status: str, duration_s: float) -> None:
        """Observe ``plugin_execution_duration_seconds``."""

    def evaluation_counter(self, plugin: str, point: str, profile: str) -> Callable[[int], None]:
        """Return the function that adds to ``plugin_evaluation_total``; asked for once, called in every attempt."""

    def permit_wait(self, result: str, duration_s: float) -> None:
        """Observe ``permit_wait_duration_seconds``."""

    def plugin_fault(self, plugin: str, point: str, kind: str) -> None:
        """Count an exception, a bad answer or an overrun of a plugin."""

    def plugin_info(self, plugin: str, distribution: str, version: str, api_version: int) -> None:
        """Say where a third-party plugin comes from."""

    def plugin_quarantine(self, profile: str, plugin: str, is_out: Callable[[], bool]) -> None:
        """Show from now on whether a third-party plugin is in quarantine; ``is_out`` may be asked by any thread."""

    def preemption_attempt(self) -> None:
        """Count ``preemption_attempts_total``."""

    def preemption_victims(self, count: int) -> None:
        """Observe ``preemption_victims``."""

    def preemption_executed(self, result: str, duration_s: float) -> None:
        """Count and observe ``preemption_goroutines_…``; the result is ``success`` or ``error``."""


def _ignore(count: int) -> None:
    del count


class NullFrameworkMetrics:
    """Measures nothing."""

    def extension_point(self, point: str, status: str, profile: str, duration_s: float) -> None:
        """Ignore the observation."""

    def plugin_duration(self, point: str, plugin: str, status: str, duration_s: float) -> None:
        """Ignore the observation."""

    def evaluation_counter(self, plugin: str, point: str, profile: str) -> Callable[[int], None]:
        """Return a function that ignores its argument."""
        del plugin, point, profile
        return _ignore

    def permit_wait(self, result: str, duration_s: float) -> None:
        """Ignore the observation."""

    def plugin_fault(self, plugin: str, point: str, kind: str) -> None:
        """Ignore the fault."""

    def plugin_info(self, plugin: str, distribution: str, version: str, api_version: int) -> None:
        """Ignore the plugin."""

    def plugin_quarantine(self, profile: str, plugin: str, is_out: Callable[[], bool]) -> None:
        """Ignore the plugin."""

    def preemption_attempt(self) -> None:
        """Ignore the attempt."""

    def preemption_victims(self, count: int) -> None:
        """Ignore the victims."""

    def preemption_executed(self, result: str, duration_s: float) -> None:
        """Ignore the execution."""
