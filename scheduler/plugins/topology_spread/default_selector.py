"""Default selector: which pods belong together with a pod that does not say so itself.

It is deduced from what selects or owns the pod: the services whose selector matches it, and its controlling
ReplicationController, ReplicaSet or StatefulSet. Source: ``plugins/helper/spread.go``.

This is asked for in most scheduling cycles, while services change seldom: what was found for pods with equal labels is
kept until any service changes. Bounds: ``_MAX_KNOWN`` label sets with ``_MAX_WEIGHT`` labels.
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import Handle, Lister, Pod
from scheduler.model.bounds import Kept
from scheduler.model.meta import LabelSelector, LabelSelectorRequirement, OwnerReference
from scheduler.model.selectors import labels_match, validate_label_selector
from scheduler.model.workload import ReplicaSet, ReplicationController, Service, StatefulSet

__all__ = ["DefaultSelector"]

_MAX_KNOWN = 4096
_MAX_WEIGHT = 16 * _MAX_KNOWN

_EMPTY = LabelSelector()
_KnownKey = tuple[str, tuple[tuple[str, str], ...]]


class DefaultSelector:
    """Deduces selectors from the watched services and controllers."""

    __slots__ = ("_by_namespace", "_controllers", "_known", "_replica_sets", "_services", "_stateful_sets", "_version")

    def __init__(self, handle: Handle) -> None:
        """Ask for the kinds, so that they are watched."""
        self._services: Lister[Service] = handle.lister(Service)
        self._controllers: Lister[ReplicationController] = handle.lister(ReplicationController)
        self._replica_sets: Lister[ReplicaSet] = handle.lister(ReplicaSet)
        self._stateful_sets: Lister[StatefulSet] = handle.lister(StatefulSet)
        self._version = -1
        self._by_namespace: dict[str, list[Service]] = {}
        self._known: Kept[_KnownKey, Mapping[str, str]] = Kept(_MAX_KNOWN, _MAX_WEIGHT)

    def of(self, pod: Pod) -> LabelSelector:
        """Return the selector; empty if nothing selects or owns the pod."""
        wanted = self._of_services(pod)
        owner = None
        for reference in pod.metadata.owner_references:
            if reference.controller:
                owner = reference
                break
        if owner is None:
            return LabelSelector({**wanted}) if wanted else _EMPTY
        key = f"{pod.metadata.namespace}/{owner.name}"
        if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
            controller = self._controllers.get(key)
            return LabelSelector({**wanted, **(controller.spec.selector if controller is not None else {})})
        return _and_also(wanted, self._of_set(owner, key))

    def _of_set(self, owner: OwnerReference, key: str) -> LabelSelector | None:
        owning: ReplicaSet | StatefulSet | None = None
        if (owner.api_version, owner.kind) == ("apps/v1", "ReplicaSet"):
            owning = self._replica_sets.get(key)
        elif (owner.api_version, owner.kind) == ("apps/v1", "StatefulSet"):
            owning = self._stateful_sets.get(key)
        if owning is None or validate_label_selector(owning.spec.selector) is not None:
            return None
        return owning.spec.selector

    def _of_services(self, pod: Pod) -> Mapping[str, str]:
        if self._services.version != self._version:
            self._read_services()
        meta = pod.metadata
        key = (meta.namespace, tuple(meta.labels.items()))
        found = self._known.get(key)
        if found is None:
            found = self._look_up(meta.namespace, meta.labels)
            self._known.keep(key, found, len(meta.labels))
        return found

    def _look_up(self, namespace: str, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Return the selectors of the matching services in one; they cannot contradict each other."""
        merged: dict[str, str] = {}
        for service in self._by_namespace.get(namespace, ()):
            if labels_match(service.spec.selector, labels):
                merged.update(service.spec.selector)
        return merged

    def _read_services(self) -> None:
        self._version = self._services.version
        self._known.clear()
        self._by_namespace = {}
        for service in self._services.list():
            # A service without a selector has endpoints made by hand; it says nothing of pods.
            if service.spec.selector:
                self._by_namespace.setdefault(service.metadata.namespace, []).append(service)


def _and_also(wanted: Mapping[str, str], more: LabelSelector | None) -> LabelSelector:
    """Return a selector for pods that both match ``wanted`` and are selected by ``more``."""
    if more is None:
        return LabelSelector({**wanted})
    # A label on which the two disagree is asked for twice: nothing has both values.
    twice = tuple(
        LabelSelectorRequirement(key, "In", (value,))
        for key, value in more.match_labels.items()
        if wanted.get(key, value) != value
    )
    return LabelSelector({**more.match_labels, **wanted}, more.match_expressions + twice)
