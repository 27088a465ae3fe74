"""Budgets: which of the potential victims disruption budgets would spare.

Each budget allows so many more disruptions. Victims are counted against every budget of their namespace that selects
them, the most important victim first; once one is overdrawn, the victim is a violation. A pod that the budget's
controller has booked as disrupted already is not counted again. Source: ``filterPodsWithPDBViolation``.

A tenant may have thousands of budgets, and a dry run looks at each victim of hundreds of nodes. So a set of budgets is
one integer with a bit for each; pods that look alike to all selectors share the answer which of them select them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from scheduler.api import Lister, Pod
from scheduler.model.meta import LabelSelector
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.selectors import validate_label_selector
from scheduler.model.visible_labels import SelectorSet

__all__ = ["Budgets", "BudgetsByNamespace", "NamespaceBudgets", "split"]


class NamespaceBudgets:
    """The budgets of one namespace; sets of them are integers, bit ``i`` is the ``i``-th."""

    __slots__ = ("_booked", "_by_allowed", "_selectors")

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        self._selectors = SelectorSet(budget.spec.selector for budget in budgets)
        by_allowed: dict[int, int] = {}
        self._booked: dict[str, int] = {}
        for i, budget in enumerate(budgets):
            allowed = max(0, budget.status.disruptions_allowed)
            by_allowed[allowed] = by_allowed.get(allowed, 0) | 1 << i
            for name in budget.status.disrupted_pods:
                self._booked[name] = self._booked.get(name, 0) | 1 << i
        self._by_allowed = sorted(by_allowed.items())

    def selecting(self, pod: Pod) -> int:
        """Return the budgets against which the pod's eviction counts; parity: none if it has no labels."""
        if not pod.labels:
            return 0
        return self._selectors.matching(pod.labels) & ~self._booked.get(pod.name, 0)

    def left_for(self, num_pods: int) -> dict[int, int]:
        """Return the budgets that so many evictions may overdraw, by how many they allow."""
        return {allowed: budgets for allowed, budgets in self._by_allowed if allowed < num_pods}


BudgetsByNamespace = Mapping[str, NamespaceBudgets]


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
            self._by_namespace = {namespace: NamespaceBudgets(budgets) for namespace, budgets in grouped.items()}
        return self._by_namespace


def split(pods: Iterable[Pod], budgets: BudgetsByNamespace) -> tuple[list[Pod], list[Pod]]:
    """Return those whose eviction would violate a budget, and the others; both in the given order."""
    pods = list(pods)
    if not budgets:
        return [], pods
    violating: list[Pod] = []
    others: list[Pod] = []
    left_in: dict[str, dict[int, int]] = {}
    for pod in pods:
        namespace = pod.metadata.namespace
        known = budgets.get(namespace)
        if known is not None and namespace not in left_in:
            left_in[namespace] = known.left_for(len(pods))
        is_violation = known is not None and _takes_from(left_in[namespace], known, pod)
        (violating if is_violation else others).append(pod)
    return violating, others


def _takes_from(left: dict[int, int], known: NamespaceBudgets, pod: Pod) -> bool:
    """Count the eviction of the pod: its budgets move down by one; say whether one was at the bottom already."""
    if not left:
        return False
    budgets = known.selecting(pod)
    is_violation = bool(left.get(0, 0) & budgets)
    for allowed in sorted(left):
        moving = left[allowed] & budgets
        if allowed and moving:
            left[allowed - 1] = left.get(allowed - 1, 0) | moving
            left[allowed] ^= moving
            if not left[allowed]:
                del left[allowed]
    return is_violation


def _selects_anything(selector: LabelSelector | None) -> bool:
    # parity: an empty selector, which elsewhere matches everything, matches nothing here; a bad one neither.
    is_empty = selector is None or not (selector.match_labels or selector.match_expressions)
    return not is_empty and validate_label_selector(selector) is None
