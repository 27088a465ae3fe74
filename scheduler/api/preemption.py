"""Preemption: the values and services with which a PostFilter plugin makes room for a pod by evicting others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self

from scheduler.api.views import NodesView, NodeView
from scheduler.model.pod import Pod

__all__ = ["EditableNode", "Eviction", "ExtenderError", "PreemptionExtender", "Victims"]


class ExtenderError(Exception):
    """An extender could not be asked, refused, or answered nonsense."""


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that preemption would evict from one node.

    Attributes:
        pods: the most important one first.
        num_pdb_violations: how many of them a disruption budget would spare.
    """

    pods: tuple[Pod, ...]
    num_pdb_violations: int = 0


class EditableNode(NodeView, Protocol):
    """A private copy of a node, for "what if"."""

    def clone(self) -> Self:
        """Return an independent copy."""

    def add_pod(self, pod: Pod) -> None:
        """Put a pod on the copy."""

    def remove_pod(self, pod: Pod) -> None:
        """Take a pod off the copy."""


class PreemptionExtender(Protocol):
    """A configured extender, as far as preemption is concerned.

    Attributes:
        name: its URL prefix.
        is_ignorable: its errors do not fail an attempt.
        supports_preemption: whether it wants a say.
    """

    name: str
    is_ignorable: bool
    supports_preemption: bool

    def is_interested(self, pod: Pod) -> bool:
        """Say whether the pod is this extender's business."""

    def preempt(self, pod: Pod, victims: Mapping[str, Victims], nodes: NodesView) -> dict[str, Victims]:
        """Ask which of the candidate nodes, and which victims there, it agrees to.

        Raises:
            ExtenderError: the call failed, or the answer makes no sense.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Eviction:
    """Pods that are to leave a node for another one. They go side by side, but the last one only after all others.

    A victim whose binding is not done yet is sent back to the queue instead of being deleted.

    Attributes:
        preemptor: the pod that room is made for.
        node_name: the node.
        victims: at least one, none of them terminating already.
        num_chosen: how many victims there are, those included that are terminating already.
        plugin: who wants it.
        on_last: is called on the scheduling thread before the last victim goes.
        on_end: is called there when all is done, with the error that ended it early or None, and with whether the last
            victim turned out to be gone already.
    """

    preemptor: Pod
    node_name: str
    victims: tuple[Pod, ...]
    num_chosen: int
    plugin: str
    on_last: Callable[[], None]
    on_end: Callable[[Exception | None, bool], None]
