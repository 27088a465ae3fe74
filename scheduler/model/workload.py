"""Kinds that own pods: only their selectors are read, for the default spread constraints."""

from __future__ import annotations

from scheduler.model.meta import KubeObject, LabelSelector, Value

__all__ = ["ReplicaSet", "ReplicationController", "SelectorSpec", "Service", "SetSpec", "StatefulSet"]


class SelectorSpec(Value, frozen=True):
    """``spec`` of a kind whose selector is a plain label map; an empty one selects nothing."""

    selector: dict[str, str] = {}


class SetSpec(Value, frozen=True):
    """``spec`` of a kind whose selector is a label selector."""

    selector: LabelSelector | None = None


class Service(KubeObject, frozen=True):
    """A service."""

    spec: SelectorSpec = SelectorSpec()


class ReplicationController(KubeObject, frozen=True):
    """A replication controller."""

    spec: SelectorSpec = SelectorSpec()


class ReplicaSet(KubeObject, frozen=True):
    """A replica set."""

    spec: SetSpec = SetSpec()


class StatefulSet(KubeObject, frozen=True):
    """A stateful set."""

    spec: SetSpec = SetSpec()
