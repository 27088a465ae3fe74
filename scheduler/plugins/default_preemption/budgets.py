"""Budgets: which of the potential victims disruption budgets would spare.

Each budget allows so many more disruptions. Victims are counted against every budget of their namespace that selects
them, the most important victim first; once one is overdrawn, the victim is a violation. A pod that the budget's
controller has booked as disrupted already is not counted again. Source: ``filterPodsWithPDBViolation``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.api import Lister, Pod
from scheduler.model.meta import LabelSelector
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.selectors import label_selector_matches, validate_label_selector

__all__ = ["Budgets", "BudgetsByNamespace", "split"]

BudgetsByNamespace = Mapping[str, Sequence[PodDisruptionBudget]]


class Budgets:
    """The budgets that can select anything, by namespace; read anew only after one has changed."""

    __slots__ = ("_by_namespace", "_lister", "_version")

    def __init__(self, lister: Lister[PodDisruptionBudget]) -> None:
        self._lister = lister
        self._version = -1
        self._by_namespace: BudgetsByNamespace = {}

    def by_namespace(self) -> BudgetsByNamespace:
        """Return the budgets as they are now."""
        if self._lister.version != self._version:
            self._version = self._lister.version
            grouped: dict[str, list[PodDisruptionBudget]] = {}
            for budget in self._lister.list():
                if _selects_anything(budget.spec.selector):
                    grouped.setdefault(budget.namespace, []).append(budget)
            self._by_namespace = grouped
        return self._by_namespace


def split(pods: Iterable[Pod], budgets: BudgetsByNamespace) -> tuple[list[Pod], list[Pod]]:
    """Return those whose eviction would violate a budget, and the others; both in the given order."""
    violating: list[Pod] = []
    others: list[Pod] = []
    if not budgets:
        return violating, list(pods)
    left: dict[str, int] = {}
    for pod in pods:
        (violating if _violates(pod, budgets.get(pod.namespace, ()), left) else others).append(pod)
    return violating, others


def _violates(pod: Pod, budgets: Sequence[PodDisruptionBudget], left: dict[str, int]) -> bool:
    """Count the eviction of the pod against its budgets; ``left`` has what they still allow, by key."""
    is_violation = False
    for budget in budgets if pod.labels else ():
        if pod.name in budget.status.disrupted_pods or not label_selector_matches(budget.spec.selector, pod.labels):
            continue
        key = budget.key
        left[key] = left.get(key, budget.status.disruptions_allowed) - 1
        is_violation = is_violation or left[key] < 0
    return is_violation


def _selects_anything(selector: LabelSelector | None) -> bool:
    # parity: an empty selector, which elsewhere matches everything, matches nothing here; a bad one neither.
    is_empty = selector is None or not (selector.match_labels or selector.match_expressions)
    return not is_empty and validate_label_selector(selector) is None
