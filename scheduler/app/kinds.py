"""Which kinds to watch: pods and nodes always, others only if an enabled plugin asks for them.

A plugin asks in two ways: by registering an event about a kind, or by asking its handle for a lister when it is made.
Where the server lacks a kind or forbids it, the plugin works without, unless a hard rule stands on it: then nothing is
decided, as with kube-scheduler, which waits for every kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.api import ClusterEvent, EventResource
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject, Namespace
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.policy import PodDisruptionBudget
from scheduler.model.storage import CSINode, VolumeAttachment

__all__ = ["REQUIRED", "event_resource", "is_optional", "kinds_of_events"]

REQUIRED: tuple[type[KubeObject], ...] = (Node, Pod)
"""Without these there is nothing to decide."""

_HARD: frozenset[type[KubeObject]] = frozenset({*REQUIRED, Namespace, PodDisruptionBudget, CSINode, VolumeAttachment})
"""Without these a rule would be broken in silence: anti-affinity to the pods of selected namespaces, disruption budgets
in preemption, limits of attached volumes. Without others a preference is lost, or a pod stays pending and says why."""

_BY_RESOURCE: Mapping[str, type[KubeObject]] = {info.resource: kind for kind, info in KINDS.items() if info.resource}


def kinds_of_events(events: Iterable[ClusterEvent]) -> set[type[KubeObject]]:
    """Return the optional kinds that the events are about; a wildcard asks for no kind in particular."""
    named = {_BY_RESOURCE[event.resource.value] for event in events if event.resource.value in _BY_RESOURCE}
    return named - set(REQUIRED)


def event_resource(kind: type[KubeObject]) -> EventResource | None:
    """Return how events name the kind; None if no event is about it."""
    resource = KINDS[kind].resource
    return EventResource(resource) if resource else None


def is_optional(kind: type[KubeObject]) -> bool:
    """Say whether decisions go on where ``kind`` cannot be read."""
    return kind not in _HARD
