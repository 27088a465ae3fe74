"""Constraints: what a pod's spread rules say, read once an attempt and free of optional fields.

Source: ``podtopologyspread/common.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec

from scheduler.api import Node, Pod
from scheduler.model.bounds import Kept, selector_weight
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement
from scheduler.model.pod import TopologySpreadConstraint
from scheduler.model.selectors import label_selector_matches, validate_label_selector
from scheduler.model.visible_labels import SelectorSet

__all__ = [
    "DO_NOT_SCHEDULE",
    "HOSTNAME",
    "SCHEDULE_ANYWAY",
    "SYSTEM_DEFAULTS",
    "ZONE",
    "Constraint",
    "ConstraintError",
    "Constraints",
    "OwnConstraints",
    "has_all_keys",
    "is_empty",
    "read_constraints",
]

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_HONOR = "Honor"
_MAX_KEPT = 16_384
_MAX_WEIGHT = 8 * _MAX_KEPT

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
"""What holds for pods without constraints of their own, unless the profile says otherwise."""


class ConstraintError(ValueError):
    """A constraint cannot be understood; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One rule.

    Attributes:
        max_skew: by how many pods a domain may exceed the emptiest one.
        topology_key: the node label whose values are the domains.
        selector: which pods of the pod's namespace count; None matches nothing.
        min_domains: with fewer domains than this, the emptiest one counts as empty.
        honors_affinity: whether nodes that the pod's node affinity excludes are left out of the counting.
        honors_taints: whether nodes with a hard taint that the pod does not tolerate are left out of the counting.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int
    honors_affinity: bool
    honors_taints: bool

    @property
    def counted_selector(self) -> LabelSelector | None:
        """Return the selector of the pods that are counted.

        parity: an empty selector matches every pod (the pod itself too), yet none is counted for it.
        """
        return None if self.selector is None or is_empty(self.selector) else self.selector

    def selecting(self, selector: LabelSelector) -> Constraint:
        """Return the same rule about other pods."""
        return replace(self, selector=selector)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether a pod with these labels is one of those to spread."""
        return label_selector_matches(self.selector, labels)


class Constraints(tuple[Constraint, ...]):  # noqa: SLOT001  derived facts are kept in its dictionary
    """The constraints of one pod, and the questions that events put to all of them at once."""

    @cached_property
    def selectors(self) -> SelectorSet:
        """Return the selectors of all constraints, in order."""
        return SelectorSet(constraint.selector for constraint in self)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Return the topology keys."""
        return frozenset(constraint.topology_key for constraint in self)


def read_constraints(
    given: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str, *, use_label_keys: bool = True
) -> Constraints:
    """Return the constraints with ``action`` of a pod with these labels.

    Args:
        given: the constraints.
        labels: of the pod.
        action: ``DoNotSchedule`` or ``ScheduleAnyway``.
        use_label_keys: whether ``matchLabelKeys`` has a meaning (gate MatchLabelKeysInPodTopologySpread).

    Raises:
        ConstraintError: a selector is not valid.
    """
    wanted = (constraint for constraint in given if constraint.when_unsatisfiable == action)
    return Constraints(_read(constraint, labels, use_label_keys=use_label_keys) for constraint in wanted)


class _Kept(NamedTuple):
    given: Sequence[TopologySpreadConstraint]
    labels: Mapping[str, str]
    constraints: Constraints


class OwnConstraints:
    """The constraints of pods that have some, kept between attempts.

    Queueing hints ask for them once for every waiting pod and event. Bounds: ``_MAX_KEPT`` pods with ``_MAX_WEIGHT``
    labels and values.
    """

    __slots__ = ("_kept", "_use_label_keys")

    def __init__(self, *, use_label_keys: bool = True) -> None:
        self._use_label_keys = use_label_keys
        self._kept: Kept[tuple[str, str], _Kept] = Kept(_MAX_KEPT, _MAX_WEIGHT)

    def of(self, pod: Pod, action: str) -> Constraints:
        """Return the pod's own constraints with ``action``.

        Raises:
            ConstraintError: a selector is not valid.
        """
        given, labels = pod.spec.topology_spread_constraints, pod.metadata.labels
        key = (pod.metadata.uid, action)
        kept = self._kept.get(key)
        # Values are frozen: the same object still says the same.
        if kept is not None and kept.given is given and kept.labels is labels:
            return kept.constraints
        constraints = read_constraints(given, labels, action, use_label_keys=self._use_label_keys)
        weight = len(labels) + sum(1 + selector_weight(constraint.label_selector) for constraint in given)
        return self._kept.keep(key, _Kept(given, labels, constraints), weight).constraints


def _read(given: TopologySpreadConstraint, labels: Mapping[str, str], *, use_label_keys: bool) -> Constraint:
    problem = validate_label_selector(given.label_selector)
    if problem is not None:
        raise ConstraintError(problem)
    return Constraint(
        max_skew=given.max_skew,
        topology_key=given.topology_key,
        selector=_with_own_values(given.label_selector, given.match_label_keys if use_label_keys else (), labels),
        min_domains=1 if given.min_domains is None else given.min_domains,
        honors_affinity=given.node_affinity_policy is None or given.node_affinity_policy == _HONOR,
        honors_taints=given.node_taints_policy == _HONOR,
    )


def _with_own_values(
    selector: LabelSelector | None, keys: Sequence[str], labels: Mapping[str, str]
) -> LabelSelector | None:
    """Narrow the selector to pods that have the pod's own values of these labels.

    The API server has done so already for pods made with Kubernetes 1.34 or later; twice does no harm.
    """
    own = tuple(LabelSelectorRequirement(key, "In", (labels[key],)) for key in keys if key in labels)
    if selector is None or not own:
        return selector
    return msgspec.structs.replace(selector, match_expressions=selector.match_expressions + own)


def is_empty(selector: LabelSelector) -> bool:
    """Say whether the selector names no condition."""
    return not selector.match_labels and not selector.match_expressions


def has_all_keys(node: Node, constraints: Iterable[Constraint]) -> bool:
    """Say whether the node is in a domain of every constraint."""
    labels = node.metadata.labels
    return all(constraint.topology_key in labels for constraint in constraints)
