"""Label classes: the pods on nodes, grouped by what a label selector can see of them.

A selector looks at a pod's namespace and labels (and some rules at whether it is being deleted). Pods that agree in
these are one *class*; the replicas of one workload are usually one or two classes. A question about pods is therefore
put once a class instead of once a pod, and a class knows how many of its pods each node has.

A node is a *slot* here: a small number that stays with the node's name for as long as the cache has a record of it, so
that nothing moves when the order of a snapshot's rows changes. A slot that was given back has no pods and is used anew.

Every change is noted in a log of bounded length, which readers with sums of their own follow (see ``matching``).

Invariants: ``classes`` holds exactly the classes with a pod; a count in a class is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from scheduler.model.meta import ObjectMeta
from scheduler.model.pod import Pod

__all__ = ["CHEAP_BACKLOG", "Change", "LabelClass", "LabelClasses"]

CHEAP_BACKLOG = 64
"""Readers with a longer backlog than this, and than there are classes, count anew: so long a log is of no use."""

_LOG_LIMIT = 8192
_MAX_WEIGHT = 16 * _LOG_LIMIT  # labels in the log

ClassKey = tuple[str, bool, tuple[tuple[str, str], ...]]


class LabelClass:
    """Pods that look alike to every selector.

    Attributes:
        namespace: the namespace of all of them.
        labels: the labels of all of them.
        is_terminating: whether they are being deleted.
        counts: slot -> how many of them are on that node.
    """

    __slots__ = ("counts", "is_terminating", "labels", "namespace")

    def __init__(self, meta: ObjectMeta) -> None:
        self.namespace = meta.namespace
        self.labels: Mapping[str, str] = meta.labels
        self.is_terminating = meta.deletion_timestamp is not None
        self.counts: dict[int, int] = {}


class Change(NamedTuple):
    """One pod that came to a node or left it."""

    of: LabelClass
    slot: int
    delta: int


class LabelClasses:
    """All classes, the slots of the nodes, and the log of changes."""

    __slots__ = ("_by_key", "_by_namespace", "_first", "_free", "_log", "_slots", "_weight", "num_slots")

    def __init__(self) -> None:
        self._by_key: dict[ClassKey, LabelClass] = {}
        self._by_namespace: dict[str, dict[ClassKey, LabelClass]] = {}
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._log: list[Change] = []
        self._first = 0
        self._weight = 0
        self.num_slots = 0

    # --- nodes ---

    def open_slot(self, node_name: str) -> None:
        """Give the node a slot; it must have none."""
        if self._free:
            self._slots[node_name] = self._free.pop()
        else:
            self._slots[node_name] = self.num_slots
            self.num_slots += 1

    def close_slot(self, node_name: str) -> None:
        """Take the node's slot back; all its pods must have left before."""
        self._free.append(self._slots.pop(node_name))

    def slot(self, node_name: str) -> int:
        """Return the node's slot."""
        return self._slots[node_name]

    # --- pods ---

    def add(self, pod: Pod) -> None:
        """Count the pod in on the node that its value names."""
        key = _key_of(pod)
        of = self._by_key.get(key)
        if of is None:
            of = self._by_key[key] = LabelClass(pod.metadata)
            self._by_namespace.setdefault(of.namespace, {})[key] = of
        slot = self._slots[pod.spec.node_name]
        of.counts[slot] = of.counts.get(slot, 0) + 1
        self._note(Change(of, slot, 1))

    def remove(self, pod: Pod) -> None:
        """Count out the pod that was counted in with this value."""
        key = _key_of(pod)
        of = self._by_key[key]
        slot = self._slots[pod.spec.node_name]
        left = of.counts[slot] - 1
        if left:
            of.counts[slot] = left
        else:
            del of.counts[slot]
            if not of.counts:
                self._drop(key, of)
        self._note(Change(of, slot, -1))

    def within(self, namespaces: frozenset[str] | None) -> Iterable[LabelClass]:
        """Return the classes in these namespaces; None means in all."""
        if namespaces is None:
            return self._by_key.values()
        if len(namespaces) == 1:
            (namespace,) = namespaces
            return self._by_namespace.get(namespace, _NONE).values()
        return chain.from_iterable(self._by_namespace.get(namespace, _NONE).values() for namespace in namespaces)

    def num_within(self, namespaces: frozenset[str] | None) -> int:
        """Return how many classes ``within`` goes through."""
        if namespaces is None:
            return len(self._by_key)
        return sum(len(self._by_namespace.get(namespace, _NONE)) for namespace in namespaces)

    # --- log ---

    @property
    def position(self) -> int:
        """Return the number of changes so far."""
        return self._first + len(self._log)

    def changes_since(self, position: int) -> Sequence[Change] | None:
        """Return the changes after the first ``position`` ones, or None if the log is too young to know."""
        return self._log[position - self._first :] if position >= self._first else None

    def _note(self, change: Change) -> None:
        self._log.append(change)
        self._weight += len(change.of.labels)
        useful = min(2 * max(CHEAP_BACKLOG, len(self._by_key)), _LOG_LIMIT)
        if len(self._log) >= useful or self._weight > _MAX_WEIGHT:
            half = (len(self._log) + 1) // 2
            self._weight -= sum(len(dropped.of.labels) for dropped in self._log[:half])
            del self._log[:half]
            self._first += half

    def _drop(self, key: ClassKey, of: LabelClass) -> None:
        del self._by_key[key]
        same_namespace = self._by_namespace[of.namespace]
        del same_namespace[key]
        if not same_namespace:
            del self._by_namespace[of.namespace]


_NONE: Mapping[ClassKey, LabelClass] = {}


def _key_of(pod: Pod) -> ClassKey:
    meta = pod.metadata
    return meta.namespace, meta.deletion_timestamp is not None, tuple(sorted(meta.labels.items()))
