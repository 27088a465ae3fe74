"""VolumeZone: a pod goes where the zone and region labels of its volumes say (spec §4.13).

Labels of this kind come from times before volumes had a node affinity. Claims that are not bound yet are none of its
business as long as their class waits for the first consumer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from scheduler.api import (
    ActionType,
    ClusterEvent,
    CycleState,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Lister,
    NodesView,
    NodeView,
    Pod,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
    StateKey,
    Status,
    Verdicts,
)
from scheduler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from scheduler.plugins.shared.indexed import about_claims, by_event
from scheduler.plugins.shared.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_not_found,
    class_not_found,
    is_claim_of,
    volume_not_found,
)

__all__ = [
    "NAME",
    "REASON_CLAIM_UNNAMED",
    "REASON_CONFLICT",
    "REASON_NEITHER_VOLUME_NOR_CLASS",
    "REASON_VOLUME_UNNAMED",
    "VolumeZone",
    "new",
    "reason_no_mode",
]

NAME = "VolumeZone"
REASON_CONFLICT = "node(s) had no available volume zone"
REASON_CLAIM_UNNAMED = "PersistentVolumeClaim had no name"
REASON_NEITHER_VOLUME_NOR_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
REASON_VOLUME_UNNAMED = "PersistentVolume had no name"

_REJECTED = Status.unresolvable(REASON_CONFLICT)
_SKIP = Status.skip()
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_LABELS = (_BETA_ZONE, _BETA_REGION, _ZONE, _REGION)
_TODAY = {_BETA_ZONE: _ZONE, _BETA_REGION: _REGION}
_DELIMITER = "__"


class _Place(NamedTuple):
    """A node must have one of these values of the label, or of its successor if it lacks the label."""

    key: str
    values: frozenset[str]


_Places = tuple[_Place, ...]
_STATE: StateKey[_Places] = StateKey("PreFilterVolumeZone")


class _UnreachableError(Exception):
    """A claim cannot be followed to its volume; the text is the reason."""


def reason_no_mode(class_name: str) -> str:
    """Return the reason for a class that does not say when its claims are bound."""
    return f'VolumeBindingMode not set for StorageClass "{class_name}"'


class VolumeZone(PreFilterPlugin, FilterPlugin):
    """Filters by the topology labels of bound volumes."""

    name: ClassVar[str] = NAME
    reads_pods: ClassVar[bool] = False
    __slots__ = ("_claims", "_classes", "_volumes")

    def __init__(
        self,
        claims: Lister[PersistentVolumeClaim],
        volumes: Lister[PersistentVolume],
        classes: Lister[StorageClass],
    ) -> None:
        self._claims = claims
        self._volumes = volumes
        self._classes = classes

    def node_signature(self, pod: Pod) -> Hashable | None:
        return None if pod.attachable_volumes else ()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodesView) -> tuple[PreFilterResult | None, Status | None]:
        del nodes
        if not pod.attachable_volumes:
            return None, _SKIP
        try:
            places = self._places_of(pod)
        except _UnreachableError as error:
            return None, Status.unresolvable(str(error))
        if not places:
            return None, _SKIP
        state.write(_STATE, places)
        return None, None

    def _places_of(self, pod: Pod) -> _Places:
        volumes = (volume.persistent_volume_claim for volume in pod.spec.volumes)
        names = [source.claim_name for source in volumes if source is not None]
        return tuple(place for name in names for place in self._places_of_claim(pod.namespace, name))

    def _places_of_claim(self, namespace: str, name: str) -> _Places:
        if not name:
            raise _UnreachableError(REASON_CLAIM_UNNAMED)
        claim = self._claims.get(f"{namespace}/{name}")
        if claim is None:
            raise _UnreachableError(claim_not_found(name))
        if not claim.spec.volume_name:
            self._check_unbound(claim)
            return ()
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None:
            raise _UnreachableError(volume_not_found(claim.spec.volume_name))
        return tuple(_places(volume.labels))

    def _check_unbound(self, claim: PersistentVolumeClaim) -> None:
        class_name = claim_class(claim)
        if not class_name:
            raise _UnreachableError(REASON_NEITHER_VOLUME_NOR_CLASS)
        storage_class = self._classes.get(class_name)
        if storage_class is None:
            raise _UnreachableError(class_not_found(class_name))
        if storage_class.volume_binding_mode is None:
            raise _UnreachableError(reason_no_mode(class_name))
        if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            raise _UnreachableError(REASON_VOLUME_UNNAMED)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Status | None:
        places = state.get(_STATE)
        if places is None:  # parity: a profile may have Filter without PreFilter
            try:
                places = self._places_of(pod)
            except _UnreachableError as error:
                return Status.unresolvable(str(error))
        labels = node.labels
        if labels.keys().isdisjoint(_LABELS):
            return None  # a cluster of one zone may do without labels
        return None if all(_is_in(place, labels) for place in places) else _REJECTED

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodesView) -> Verdicts:
        places = state.get(_STATE)
        if places is None:
            return super().filter_all(state, pod, nodes)
        ok = np.ones(len(nodes), np.bool_)
        for key, values in places:
            column = nodes.label(key)
            here = column.isin(values)
            if key in _TODAY:
                here = np.where(column.codes >= 0, here, nodes.label(_TODAY[key]).isin(values))
            ok &= here
        ok |= np.logical_and.reduce([nodes.label(key).codes < 0 for key in _LABELS])
        return Verdicts.all_equal(ok, _REJECTED)

    def events(self) -> Sequence[EventRegistration]:
        added_or_changed = ActionType.ADD | ActionType.UPDATE
        node_moved = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        claim_changed = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, added_or_changed)
        volume_changed = ClusterEvent(EventResource.PERSISTENT_VOLUME, added_or_changed)
        return (
            by_event(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), _waits),
            EventRegistration(node_moved),
            about_claims(claim_changed, _after_claim_change, lambda pod: pod.claim_names),
            by_event(volume_changed, _moved),
        )


def _places(labels: Mapping[str, str]) -> Iterator[_Place]:
    """Yield what the labels of a volume demand; a label with an empty part is ignored."""
    for key in _LABELS:
        parts = [part.strip() for part in labels[key].split(_DELIMITER)] if key in labels else []
        if parts and all(parts):
            yield _Place(key, frozenset(parts))


def _is_in(place: _Place, labels: Mapping[str, str]) -> bool:
    value = labels.get(place.key)
    if value is None:
        value = labels.get(_TODAY.get(place.key, place.key))
    return value in place.values


def _waits(old: object | None, new: object | None) -> bool:
    """Say whether volumes of a class that came wait for their pod."""
    del old
    return not isinstance(new, StorageClass) or new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _after_claim_change(pod: Pod, old: object | None, new: object | None) -> QueueingHint:
    del old
    is_mine = not isinstance(new, PersistentVolumeClaim) or is_claim_of(pod, new)
    return QueueingHint.QUEUE if is_mine else QueueingHint.SKIP


def _moved(old: object | None, new: object | None) -> bool:
    """Say whether a volume came, or demands other places now."""
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return True
    return list(_places(old.labels)) != list(_places(new.labels))


def new(args: object, handle: Handle) -> VolumeZone:
    """Make the plugin; it has no arguments."""
    del args
    return VolumeZone(
        handle.lister(PersistentVolumeClaim), handle.lister(PersistentVolume), handle.lister(StorageClass)
    )
