"""Policy kinds: disruption budgets and priority classes."""

from __future__ import annotations

from scheduler.model.meta import Int32, KubeObject, LabelSelector, Value

__all__ = [
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
    "PriorityClass",
]


class PodDisruptionBudgetSpec(Value, frozen=True):
    """``spec`` of a budget; how many disruptions it allows is worked out by its controller, in the status."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Value, frozen=True):
    """``status`` of a budget; ``disrupted_pods`` maps the names of pods already counted to the time of it."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(KubeObject, frozen=True):
    """How many pods of a set may be disrupted at a time; preemption prefers not to go beyond."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(KubeObject, frozen=True):
    """A named priority; the API server has already resolved it into ``pod.spec.priority``."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
