"""VolumeBinding: the volumes of a pod's claims, from the search for a node to their binding (spec §4.14).

PreFilter    sorts the claims: bound, delayed (chosen with the node), or to wait for
Filter       judges a node: are bound volumes reachable, can delayed claims get a volume there
Score        how full the storage would be, if the profile has a shape (gate StorageCapacityScoring)
Reserve      counts the chosen volumes as taken; Unreserve gives them back
PreBind      writes the choice and waits until the volumes are bound
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from scheduler.api import (
    CycleState,
    EventRegistration,
    FilterPlugin,
    Handle,
    IntColumn,
    Lister,
    Node,
    NodesView,
    NodeView,
    Pod,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
    StateKey,
    Status,
    Verdicts,
)
from scheduler.config.args import VolumeBindingArgs
from scheduler.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from scheduler.plugins.shared.rowwise import group_rows, grouped_verdicts
from scheduler.plugins.shared.storage import claims_of
from scheduler.plugins.volume_binding.assume_cache import AssumeCache, AssumeError
from scheduler.plugins.volume_binding.binder import Caches
from scheduler.plugins.volume_binding.bound import BoundVolumes
from scheduler.plugins.volume_binding.claims import (
    REASON_UNBOUND_IMMEDIATE,
    are_all_bound,
    claims_problem,
    sort_claims,
)
from scheduler.plugins.volume_binding.decisions import (
    NOTHING_TO_BIND,
    REASON_NO_STORAGE,
    REASON_NO_VOLUME,
    REASON_NODE_CONFLICT,
    REASON_VOLUME_GONE,
    BindingError,
    PodVolumes,
)
from scheduler.plugins.volume_binding.delayed import DelayedClaims
from scheduler.plugins.volume_binding.hints import REGISTRATIONS
from scheduler.plugins.volume_binding.prebind import PreBind
from scheduler.plugins.volume_binding.provisioning import Provisioning
from scheduler.plugins.volume_binding.scoring import Shape, score_volumes, shape_of

__all__ = ["NAME", "VolumeBinding", "new", "no_volumes_for"]

NAME = "VolumeBinding"

_REASON_ORDER = (REASON_NODE_CONFLICT, REASON_NO_VOLUME, REASON_NO_STORAGE, REASON_VOLUME_GONE)
_SKIP = Status.skip()
_NOT_PREPARED = "not found"  # parity: what reading a missing cycle state says


@dataclass(slots=True, eq=False)
class _Search:
    """What one attempt knows; shared with its dry runs, as upstream's is.

    Attributes:
        bound: the volumes of bound claims; None if the pod has no claims at all.
        delayed: the claims to choose volumes for; None if there are none.
        by_node: the decisions for each node that passed.
        is_all_bound: whether nothing is left to bind; known from Reserve on.
    """

    bound: BoundVolumes | None = None
    delayed: DelayedClaims | None = None
    by_node: dict[str, PodVolumes] = field(default_factory=dict)
    is_all_bound: bool = False

    def judge(self, node: NodeView) -> PodVolumes | Status:
        """Return the decisions for a node, or why there are none."""
        problem = decided = None
        try:
            if self.bound is not None:
                problem = self.bound.problem(node.name, node.labels)
            decided = self.place(node)
        except BindingError as error:
            return Status.error(str(error))
        return _verdict(problem, decided)

    def place(self, node: NodeView) -> PodVolumes | str:
        """Return the decisions about delayed claims, or the reason against the node."""
        return NOTHING_TO_BIND if self.delayed is None else self.delayed.place(node.name, node.labels)


_STATE: StateKey[_Search] = StateKey(NAME)


def no_volumes_for(node_name: str) -> str:
    """Return the error of a pod that reaches PreBind on a node that was never judged."""
    return f'no pod volume found for node "{node_name}"'


class VolumeBinding(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """See the module."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ("_caches", "_claims", "_classes", "_csi_nodes", "_pre_bind", "_provisioning", "_shape")

    def __init__(
        self,
        *,
        claims: Lister[PersistentVolumeClaim],
        caches: Caches,
        classes: Lister[StorageClass],
        csi_nodes: Lister[CSINode],
        provisioning: Provisioning,
        pre_bind: PreBind,
        shape: Shape | None,
    ) -> None:
        self._claims = claims
        self._caches = caches
        self._classes = classes
        self._csi_nodes = csi_nodes
        self._provisioning = provisioning
        self._pre_bind = pre_bind
        self._shape = shape

    # --- filter ------------------------------------------------------------------------------------------------------

    def node_signature(self, pod: Pod) -> Hashable | None:
        return None if pod.attachable_volumes else ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del nodes
        if not pod.attachable_volumes or next(claims_of(pod), None) is None:
            return None, _SKIP
        problem = claims_problem(pod, self._claims)
        if problem is not None:
            return None, Status.unresolvable(problem)
        try:
            claims = sort_claims(pod, self._caches.claims, self._caches.volumes, self._classes)
        except BindingError as error:
            return None, Status.error(str(error))
        if claims.has_immediate:
            return None, Status.unresolvable(REASON_UNBOUND_IMMEDIATE)
        volumes = [self._caches.volumes.get(claim.spec.volume_name) for claim in claims.bound]
        bound = BoundVolumes(volumes, self._csi_nodes)
        state.write(_STATE, _Search(bound, DelayedClaims(claims, self._provisioning) if claims.delayed else None))
        return None, None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        del pod
        search = state.get(_STATE)
        if search is None:
            return Status.error(_NOT_PREPARED)
        judged = search.judge(node)
        if isinstance(judged, Status):
            return judged
        search.by_node[node.name] = judged
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        search = state.get(_STATE)
        if search is None or search.bound is None:
            return super().filter_all(state, pod, nodes)
        problems, problem_of = search.bound.problems(nodes)
        first, group = _no_groups(nodes) if search.delayed is None else search.delayed.groups(nodes)
        placed = [_place(search, nodes.infos[row]) for row in first.tolist()]
        rows, combination = group_rows(nodes, set(), [problem_of.astype(np.int32), group.astype(np.int32)])
        judged = [_combined(problems[problem_of[row]], placed[group[row]]) for row in rows.tolist()]
        for node_name, index in zip(nodes.names, combination.tolist(), strict=True):
            decided = judged[index]
            if isinstance(decided, PodVolumes):
                search.by_node[node_name] = decided
        return grouped_verdicts([j if isinstance(j, Status) else None for j in judged], combination)

    # --- score -------------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodesView) -> Status | None:
        del state, pod, nodes
        return _SKIP if self._shape is None else None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        del pod
        search = state.get(_STATE)
        decided = search.by_node.get(node.name) if search is not None else None
        return 0 if self._shape is None or decided is None else score_volumes(self._shape, decided)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> IntColumn:
        if self._shape is None or state.get(_STATE) is None:
            return np.zeros(len(nodes), np.int64)
        return np.fromiter((self.score(state, pod, node) for node in nodes.infos), np.int64, len(nodes))

    # --- reserve -----------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        search = state.get(_STATE)
        if search is None:
            return None
        decided = search.by_node.get(node_name)
        search.is_all_bound = decided is None or are_all_bound(pod, self._caches.claims)
        if decided is None or search.is_all_bound:
            return None
        try:
            search.by_node[node_name] = self._caches.assume(node_name, decided)
        except AssumeError as error:
            return Status.error(str(error))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        del pod
        search = state.get(_STATE)
        decided = search.by_node.get(node_name) if search is not None else None
        if decided is not None:
            self._caches.revert(decided)

    # --- bind --------------------------------------------------------------------------------------------------------

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        del pod
        search = state.get(_STATE)
        if search is None or search.is_all_bound:
            return _SKIP
        return None if node_name in search.by_node else Status.error(no_volumes_for(node_name))

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        search = state.get(_STATE)
        if search is None or search.is_all_bound:
            return None
        decided = search.by_node.get(node_name)
        if decided is None:
            return Status.error(no_volumes_for(node_name))
        return await self._pre_bind.run(pod, node_name, decided)

    def events(self) -> Sequence[EventRegistration]:
        return REGISTRATIONS


def _verdict(problem: str | None, decided: PodVolumes | str) -> PodVolumes | Status:
    if problem is None and isinstance(decided, PodVolumes):
        return decided
    return Status.unresolvable(*(reason for reason in _REASON_ORDER if reason in (problem, decided)))


def _place(search: _Search, node: NodeView) -> PodVolumes | str | BindingError:
    try:
        return search.place(node)
    except BindingError as error:
        return error


def _combined(problem: str | BindingError | None, decided: PodVolumes | str | BindingError) -> PodVolumes | Status:
    for answer in (problem, decided):
        if isinstance(answer, BindingError):
            return Status.error(str(answer))
    assert not isinstance(problem, BindingError)
    assert not isinstance(decided, BindingError)
    return _verdict(problem, decided)


def _no_groups(nodes: NodesView) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return group_rows(nodes, set())


def new(args: object, handle: Handle) -> VolumeBinding:
    """Make the plugin from its validated ``VolumeBindingArgs``."""
    args = args if isinstance(args, VolumeBindingArgs) else VolumeBindingArgs()
    claims, classes = handle.lister(PersistentVolumeClaim), handle.lister(StorageClass)
    csi_nodes = handle.lister(CSINode)
    volumes = AssumeCache(handle.lister(PersistentVolume), "persistentvolumes")
    caches = Caches(volumes, AssumeCache(claims, "persistentvolumeclaims"))
    return VolumeBinding(
        claims=claims,
        caches=caches,
        classes=classes,
        csi_nodes=csi_nodes,
        provisioning=Provisioning(classes, handle.lister(CSIDriver), handle.lister(CSIStorageCapacity)),
        pre_bind=PreBind(
            caches=caches,
            pods=handle.lister(Pod),
            nodes=handle.lister(Node),
            csi_nodes=csi_nodes,
            patch=handle.patch,
            clock=handle.clock,
            sleep=handle.sleep,
            timeout_s=float(args.bind_timeout_seconds),
        ),
        shape=None if args.shape is None else shape_of(args.shape),
    )
