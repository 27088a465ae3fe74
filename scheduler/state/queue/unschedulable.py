"""unschedulablePods: pods that wait for an event, rejected by plugins or gated by one.

A cluster with thousands of hopeless pods sees hundreds of events a second, nearly all of which concern none of them. So
the pods are indexed by the plugins that rejected them, and where a plugin's hint has an index by what they want of an
event (``listeners``): an event costs nothing for the pods that it cannot help.

Invariants: a pod (by ``namespace/name``) is in exactly one of ``_rejected`` and ``_gated``, under each of its rejectors
in ``_by_plugin``, and with the listeners of each index of each; the two gauges equal the sizes of the two maps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from scheduler.api.events import HintIndex
from scheduler.api.queued import QueuedPodInfo
from scheduler.state.queue.hints import Asked, QueueingHints
from scheduler.state.queue.listeners import Listeners
from scheduler.state.queue.metrics import GATED, UNSCHEDULABLE, QueueMetrics

__all__ = ["UnschedulablePods"]

_ANY = ""
"""Index entry of pods that every event concerns."""


_Hint = tuple[str, HintIndex]
"""A plugin, and the index of one of its hints; several plugins may have the same."""


class _Place(NamedTuple):
    """Where a pod is in the indexes; ``arrival`` orders the pods."""

    arrival: int
    plugins: tuple[str, ...]
    hints: tuple[_Hint, ...]


class UnschedulablePods:
    """Records by pod, with the index by rejector."""

    __slots__ = ("_arrivals", "_by_plugin", "_gated", "_hints", "_listeners", "_metrics", "_places", "_rejected")

    def __init__(self, hints: QueueingHints, metrics: QueueMetrics) -> None:
        """Make an empty pool; pods of profiles that the hints do not know concern every event: nobody knows better."""
        self._hints = hints
        self._metrics = metrics
        self._rejected: dict[str, QueuedPodInfo] = {}
        self._gated: dict[str, QueuedPodInfo] = {}
        self._arrivals = 0
        self._places: dict[str, _Place] = {}
        self._by_plugin: dict[str, dict[str, QueuedPodInfo]] = {}
        self._listeners: dict[_Hint, Listeners] = {}

    def __len__(self) -> int:
        return len(self._rejected) + len(self._gated)

    @property
    def num_gated(self) -> int:
        """Return how many of the pods are gated."""
        return len(self._gated)

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the record of the pod ``namespace/name``, or None."""
        return self._rejected.get(key) or self._gated.get(key)

    def infos(self) -> list[QueuedPodInfo]:
        """Return all records, rejected pods before gated ones, each in order of arrival."""
        return [*self._rejected.values(), *self._gated.values()]

    def put(self, info: QueuedPodInfo, event: str) -> None:
        """Put a pod in, or bring its gate, its rejectors and its record up to date; only new pods are counted."""
        key = info.pod.pod_key
        here, there = (self._gated, self._rejected) if info.is_gated else (self._rejected, self._gated)
        if there.pop(key, None) is not None:
            self._count(gated=not info.is_gated, delta=-1)
            self._count(gated=info.is_gated, delta=1)
        elif key not in here:
            self._count(gated=info.is_gated, delta=1)
            self._metrics.incoming(UNSCHEDULABLE, event)
        here[key] = info
        self._index(key, info)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take a pod out and return its record, or None."""
        info = self._rejected.pop(key, None)
        if info is not None:
            self._count(gated=False, delta=-1)
        else:
            info = self._gated.pop(key, None)
            if info is None:
                return None
            self._count(gated=True, delta=-1)
        self._unindex(key)
        return info

    def concerned(self, asked: Iterable[Asked], old: object | None, new: object | None) -> list[QueuedPodInfo]:
        """Return the pods that one of the plugins rejected or gates and that the event may help.

        Each comes once, in the order of the plugins and then of arrival, so that a replay gives the same order.
        """
        by_plugin = self._by_plugin
        found = [pods] if (pods := by_plugin.get(_ANY)) else []
        for plugin, indexes in asked:
            pods = by_plugin.get(plugin)
            if pods and indexes is not None:
                pods = self._listening(plugin, indexes, old, new)
            if pods:
                found.append(pods)
        if len(found) <= 1:
            return list(found[0].values()) if found else []
        merged: dict[str, QueuedPodInfo] = {}
        for pods in found:
            merged.update(pods)
        return list(merged.values())

    def set_hints(self, hints: QueueingHints) -> None:
        """Index anew for other hints."""
        self._hints = hints
        for info in self.infos():
            self._index(info.pod.pod_key, info)

    def _count(self, *, gated: bool, delta: int) -> None:
        self._metrics.pending(GATED if gated else UNSCHEDULABLE, delta)

    def _listening(
        self, plugin: str, indexes: Iterable[HintIndex], old: object | None, new: object | None
    ) -> dict[str, QueuedPodInfo]:
        names: dict[str, None] = {}
        for index in indexes:
            listeners = self._listeners.get((plugin, index))
            if listeners is not None:
                names.update(dict.fromkeys(listeners.concerned(old, new)))
        if not names:
            return {}
        pods, places = self._by_plugin[plugin], self._places
        if len(names) == len(pods):
            return pods
        return {name: pods[name] for name in sorted(names, key=lambda name: places[name].arrival)}

    def _index(self, key: str, info: QueuedPodInfo) -> None:
        self._unindex(key)
        self._arrivals += 1
        place = self._places[key] = self._place(info)
        for name in place.plugins:
            self._by_plugin.setdefault(name, {})[key] = info
        for hint in place.hints:
            listeners = self._listeners.get(hint)
            if listeners is None:
                listeners = self._listeners[hint] = Listeners(hint[1])
            listeners.put(key, info.pod)

    def _place(self, info: QueuedPodInfo) -> _Place:
        plugins = info.unschedulable_plugins | info.pending_plugins
        hints: list[_Hint] = []
        for plugin in plugins:
            indexes = self._hints.indexes(info.pod.spec.scheduler_name, plugin)
            if indexes is None:
                return _Place(self._arrivals, (_ANY,), ())
            hints += [(plugin, index) for index in indexes]
        return _Place(self._arrivals, tuple(plugins) or (_ANY,), tuple(hints))

    def _unindex(self, key: str) -> None:
        place = self._places.pop(key, None)
        if place is None:
            return
        for name in place.plugins:
            pods = self._by_plugin[name]
            del pods[key]
            if not pods:
                del self._by_plugin[name]
        for hint in place.hints:
            listeners = self._listeners[hint]
            listeners.remove(key)
            if not listeners:
                del self._listeners[hint]
