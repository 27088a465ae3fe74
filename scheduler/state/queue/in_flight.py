"""Pods in flight, and what happened in the cluster meanwhile.

A pod is in flight from pop to done: being decided on, waiting in Permit, being bound. An event that comes in that time
finds the pod in no queue, yet it may be the very one that makes the pod schedulable. So events are kept as long as some
pod is in flight, and replayed to a pod that comes back rejected.

    log     e3  e4  e5  e6  e7          events in order of arrival; the first has number _first
            ^           ^
            A (start 3) B (start 6)     a pod sees the events from its start number on

Invariants: pods stand in order of their pop; events older than the first pod's start are dropped; with no pod in flight
the log is empty. (Upstream: one linked list of events and pods.)
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from scheduler.api.events import ClusterEvent
from scheduler.model.pod import Pod
from scheduler.state.changes import POD_POPPED_LABEL
from scheduler.state.queue.metrics import QueueMetrics

__all__ = ["Happening", "InFlight"]


class Happening(NamedTuple):
    """A cluster event with the objects it is about.

    Attributes:
        event: what happened.
        label: ``event.label``, computed once.
        old: the object before; None if it was added.
        new: the object after; None if it was deleted.
    """

    event: ClusterEvent
    label: str
    old: object | None
    new: object | None

    @classmethod
    def of(cls, event: ClusterEvent, old: object | None, new: object | None) -> Happening:
        """Return the happening with its label."""
        return cls(event, event.label, old, new)


class InFlight:
    """The pods that were popped and are not done, and the events since."""

    __slots__ = ("_first", "_log", "_metrics", "_pods")

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        self._pods: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        self._log: list[Happening] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    @property
    def pods(self) -> list[Pod]:
        """Return the pods in flight as they were when they were popped, oldest flight first."""
        return [pod for pod, _ in self._pods.values()]

    @property
    def num_events(self) -> int:
        """Return the number of events kept."""
        return len(self._log)

    def start(self, pod: Pod) -> bool:
        """Note that ``pod`` was popped; False if it is in flight already, which leaves everything as it is."""
        uid = pod.metadata.uid
        if uid in self._pods:
            return False
        self._pods[uid] = (pod, self._first + len(self._log))
        self._metrics.inflight_events(POD_POPPED_LABEL, 1)
        return True

    def note(self, happening: Happening) -> None:
        """Keep an event for the pods in flight, if there are any."""
        if self._pods:
            self._log.append(happening)
            self._metrics.inflight_events(happening.label, 1)

    def note_about(self, pod: Pod, happenings: Iterable[Happening]) -> bool:
        """Keep events about ``pod`` if it is in flight itself; return whether it is."""
        if pod.metadata.uid not in self._pods:
            return False
        for happening in happenings:
            self.note(happening)
        return True

    def since_pop(self, uid: str) -> list[Happening] | None:
        """Return the events since the pod was popped, oldest first; None if it is not in flight."""
        flight = self._pods.get(uid)
        return None if flight is None else self._log[flight[1] - self._first :]

    def done(self, uid: str) -> None:
        """End a pod's flight and drop the events that no other flight can ask for; unknown pods are fine."""
        flight = self._pods.pop(uid, None)
        if flight is None:
            return
        self._metrics.inflight_events(POD_POPPED_LABEL, -1)
        if self._log and flight[1] == self._first:
            self._prune()

    def clear(self) -> None:
        """End all flights."""
        for uid in list(self._pods):
            self.done(uid)

    def _prune(self) -> None:
        """Drop the events before the start of the oldest flight."""
        oldest = next(iter(self._pods.values()), None)
        num_dead = len(self._log) if oldest is None else oldest[1] - self._first
        for label, count in Counter(happening.label for happening in self._log[:num_dead]).items():
            self._metrics.inflight_events(label, -count)
        del self._log[:num_dead]
        self._first += num_dead
