"""The plugin: which constraints a pod has, and the extension points over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from scheduler.api import (
    CycleState,
    EventRegistration,
    FilterPlugin,
    Handle,
    IntColumn,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    Verdicts,
)
from scheduler.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from scheduler.model.pod import TopologySpreadConstraint
from scheduler.plugins.topology_spread import filtering, scoring
from scheduler.plugins.topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    ConstraintError,
    Constraints,
    OwnConstraints,
    is_empty,
    read_constraints,
)
from scheduler.plugins.topology_spread.default_selector import DefaultSelector
from scheduler.plugins.topology_spread.filtering import REASON_CONSTRAINTS, REASON_MISSING_LABEL
from scheduler.plugins.topology_spread.hints import registrations

__all__ = ["NAME", "REASON_CONSTRAINTS", "REASON_MISSING_LABEL", "PodTopologySpread", "new"]

NAME = "PodTopologySpread"

_SKIP = Status.skip()
_NONE = Constraints()
_KINDS = {DO_NOT_SCHEDULE: "hard", SCHEDULE_ANYWAY: "soft"}


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by hard and scores by soft spread constraints: the pod's own, or else the profile's."""

    name: ClassVar[str] = NAME
    __slots__ = ("_default_selector", "_defaults", "_handle", "_is_system_defaulted", "_own")

    def __init__(
        self, defaults: tuple[TopologySpreadConstraint, ...], handle: Handle, *, is_system_defaulted: bool
    ) -> None:
        """Make the plugin.

        Args:
            defaults: for pods without constraints; their selector is deduced from services and owners.
            handle: the engine.
            is_system_defaulted: whether ``defaults`` are the built-in ones, which do not ask for all labels.
        """
        self._defaults = {
            action: tuple(default for default in defaults if default.when_unsatisfiable == action)
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        }
        self._default_selector = DefaultSelector(handle) if defaults else None
        self._handle = handle
        self._is_system_defaulted = is_system_defaulted
        self._own = OwnConstraints(use_label_keys=handle.is_enabled("MatchLabelKeysInPodTopologySpread"))

    # --- hard constraints ---

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        except ConstraintError as error:
            return None, Status.error(f"get constraints from pod: {error}", error)
        if not constraints:
            return None, _SKIP
        state.write(filtering.STATE, filtering.count_domains(pod, constraints, nodes))
        return None, None

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Status | None:
        state.read(filtering.STATE).change(pod, added, node.node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Status | None:
        state.read(filtering.STATE).change(pod, removed, node.node, -1)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del pod
        return state.read(filtering.STATE).filter(node.node)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        del pod
        return state.read(filtering.STATE).filter_all(nodes)

    # --- soft constraints ---

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        try:
            constraints = self._constraints(pod, SCHEDULE_ANYWAY)
        except ConstraintError as error:
            return Status.error(f"calculating preScoreState: {error}", error)
        if not constraints:
            return _SKIP
        needs_all_keys = bool(pod.spec.topology_spread_constraints) or not self._is_system_defaulted
        counted = scoring.count_for_scores(pod, constraints, nodes, self._handle.nodes(), needs_all_keys=needs_all_keys)
        state.write(scoring.STATE, counted)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return state.read(scoring.STATE).score(pod, node)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        return state.read(scoring.STATE).score_all(pod, nodes)

    def normalize(self, state: CycleState, pod: Pod, nodes: NodesView, scores: IntColumn) -> IntColumn:
        del pod
        return scoring.normalize(scores, state.read(scoring.STATE).ignored(nodes))

    # --- events ---

    def events(self) -> Sequence[EventRegistration]:
        return registrations(lambda pod: self._constraints(pod, DO_NOT_SCHEDULE))

    # --- constraints ---

    def _constraints(self, pod: Pod, action: str) -> Constraints:
        own = bool(pod.spec.topology_spread_constraints)
        try:
            return self._own.of(pod, action) if own else self._default_constraints(pod, action)
        except ConstraintError as error:
            source = "obtaining pod's" if own else "setting default"
            raise ConstraintError(f"{source} {_KINDS[action]} topology spread constraints: {error}") from error

    def _default_constraints(self, pod: Pod, action: str) -> Constraints:
        defaults = self._defaults[action]
        if not defaults or self._default_selector is None:
            return _NONE
        selector = self._default_selector.of(pod)
        if is_empty(selector):
            return _NONE
        return Constraints(constraint.selecting(selector) for constraint in read_constraints(defaults, {}, action))


def new(args: object, handle: Handle) -> PodTopologySpread:
    """Make the plugin from its validated ``PodTopologySpreadArgs``."""
    given = args if isinstance(args, PodTopologySpreadArgs) else PodTopologySpreadArgs()
    if given.defaulting_type == SYSTEM_DEFAULTING:
        return PodTopologySpread(SYSTEM_DEFAULTS, handle, is_system_defaulted=True)
    return PodTopologySpread(given.default_constraints, handle, is_system_defaulted=False)
