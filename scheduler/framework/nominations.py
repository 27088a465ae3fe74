"""Nominations: what the framework reads of the queue's nominator, and how a node looks with its nominated pods on it.

A pod must fit on a node both with and without the pods of equal or higher priority that are nominated to it: with
them, so that it does not take the room that was made for them; without them, because nobody knows whether they come
(pod affinity must not count on them). Source: ``RunFilterPluginsWithNominatedPods``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, cast

from scheduler.api import EditableNode, NodeView, Pod

__all__ = ["EditableNode", "NoNominations", "Nominations", "editable_copy", "yielding_to"]


class Nominations(Protocol):
    """Who is nominated where."""

    @property
    def nominated_nodes(self) -> Collection[str]:
        """Return the names of the nodes that any pod is nominated to."""

    def nominated_pods_for_node(self, node_name: str, /) -> Sequence[Pod]:
        """Return the pods nominated to run on the node."""


class NoNominations:
    """Nobody is nominated anywhere; for tests and single-pod evaluations."""

    @property
    def nominated_nodes(self) -> Collection[str]:
        """Return nothing."""
        return ()

    def nominated_pods_for_node(self, node_name: str, /) -> Sequence[Pod]:
        """Return nothing."""
        del node_name
        return ()


def yielding_to(pod: Pod, nominated: Sequence[Pod]) -> list[Pod]:
    """Return those of the ``nominated`` pods that ``pod`` must leave room for."""
    priority, uid = pod.priority, pod.metadata.uid
    return [other for other in nominated if other.priority >= priority and other.metadata.uid != uid]


def editable_copy(node: NodeView) -> EditableNode:
    """Return a copy of a snapshot's node that may be changed."""
    return cast("EditableNode", node).clone()
