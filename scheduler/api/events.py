"""Cluster events and queueing hints: what may make a rejected pod schedulable again.

A plugin that rejects pods names the events after which a retry makes sense, each with an optional hint function that
looks at the changed object and says Queue or Skip. Semantics: ``kube-scheduler/framework/types.go`` v1.36.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from scheduler.model.pod import Pod

__all__ = [
    "ActionType",
    "ClusterEvent",
    "EventRegistration",
    "EventResource",
    "HintIndex",
    "IndexedRegistration",
    "Offer",
    "QueueingHint",
    "QueueingHintFn",
    "WantedKey",
]


class ActionType(enum.IntFlag):
    """What happened to an object; the bit order is upstream's and takes part in matching."""

    ADD = 1
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_POD_LABEL = 1 << 8
    UPDATE_POD_SCALE_DOWN = 1 << 9
    UPDATE_POD_TOLERATION = 1 << 10
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 11
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 12
    UPDATE = (1 << 13) - (1 << 2)
    ALL = (1 << 13) - 1


class EventResource(enum.StrEnum):
    """The kinds that events are about; values are upstream's and appear in metric labels."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


_POD_LIKE = frozenset({EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD})

_ACTION_NAMES = {
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One happening in the cluster, or (in a registration) a pattern of happenings.

    Attributes:
        resource: the kind it is about.
        action: one bit for a happening, any union of bits for a pattern.
        custom_label: name shown in metrics instead of resource and action.
    """

    resource: EventResource
    action: ActionType
    custom_label: str = ""
    _label: str = field(init=False, compare=False, repr=False)  # kept: each event of a watch is booked under it

    def __post_init__(self) -> None:
        label = self.custom_label or f"{self.resource.value}{_ACTION_NAMES.get(self.action, str(int(self.action)))}"
        object.__setattr__(self, "_label", label)

    @property
    def label(self) -> str:
        """Return the name that metrics and logs show, e.g. ``NodeUpdateNodeTaint``."""
        return self._label

    @property
    def is_wildcard(self) -> bool:
        """Say whether this stands for every event."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Say whether this registration covers the ``incoming`` happening.

        Source: ``MatchClusterEvents``; a registration for Pod covers AssignedPod and UnschedulablePod,
        one for ``*`` covers every kind.
        """
        if self.is_wildcard:
            return True
        same = (
            self.resource is EventResource.WILDCARD
            or self.resource == incoming.resource
            or (self.resource is EventResource.POD and incoming.resource in _POD_LIKE)
        )
        return same and bool(self.action & incoming.action) and incoming.action <= self.action


class QueueingHint(enum.Enum):
    """What a hint function answers."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


QueueingHintFn = Callable[[Pod, object | None, object | None], QueueingHint]
"""``hint(pod, old, new)``: may this change make ``pod`` schedulable? ``old`` is None on add, ``new`` on delete."""


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """An event after which pods rejected by the plugin are worth a retry; without a hint: always."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


WantedKey = tuple[Hashable, Hashable]
"""``(where, what)``, for instance (namespace, label pair)."""
Offer = tuple[Hashable, Iterable[Hashable]]
"""``(where, whats)``: the keys that have the same first half."""


@dataclass(frozen=True, slots=True, eq=False)
class HintIndex:
    """About which waiting pods a hint need not be asked (docs/design/0017-waiting-index.md).

    ``hint(pod, old, new)`` must be Skip unless ``wanted(pod)`` and ``offered(old, new)`` have a key in common or one of
    the two is None. What a pod wants must depend on the pod alone, as it is worked out when the pod begins to wait.

    Attributes:
        wanted: the keys that the waiting pod wants; None: any event may help it.
        offered: the keys that the event offers; None: it may help any pod.
    """

    wanted: Callable[[Pod], Iterable[WantedKey] | None]
    offered: Callable[[object | None, object | None], Iterable[Offer] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedRegistration(EventRegistration):
    """A registration whose hint is asked about no more pods than its index finds; in-tree plugins have them."""

    index: HintIndex
