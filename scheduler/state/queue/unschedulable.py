"""unschedulablePods: pods that wait for an event, rejected by plugins or gated by one.

A cluster with thousands of hopeless pods sees hundreds of events a second, nearly all of which concern none of them. So
the pods are indexed by the plugins that rejected them, and an event costs nothing where its plugins rejected nobody.

Invariants: a pod (by ``namespace/name``) is in exactly one of ``_rejected`` and ``_gated`` and under each of its
rejectors in ``_by_plugin``; the two gauges equal the sizes of the two maps.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from scheduler.api.queued import QueuedPodInfo
from scheduler.state.queue.metrics import GATED, UNSCHEDULABLE, QueueMetrics

__all__ = ["UnschedulablePods"]

_ANY = ""
"""Index entry of pods that every event concerns."""


class UnschedulablePods:
    """Records by pod, with the index by rejector."""

    __slots__ = ("_by_plugin", "_gated", "_indexed", "_metrics", "_profiles", "_rejected")

    def __init__(self, profiles: Container[str], metrics: QueueMetrics) -> None:
        """Make an empty pool; pods of other than these profiles concern every event, as nobody knows better."""
        self._profiles = profiles
        self._metrics = metrics
        self._rejected: dict[str, QueuedPodInfo] = {}
        self._gated: dict[str, QueuedPodInfo] = {}
        self._indexed: dict[str, frozenset[str]] = {}
        self._by_plugin: dict[str, dict[str, QueuedPodInfo]] = {}

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

    def rejected_by_any(self, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """Return the pods that one of the plugins rejected or gates, each once; a replay gives the same order."""
        found = [pods for name in (_ANY, *plugins) if (pods := self._by_plugin.get(name))]
        if len(found) <= 1:
            return list(found[0].values()) if found else []
        merged: dict[str, QueuedPodInfo] = {}
        for pods in found:
            merged.update(pods)
        return list(merged.values())

    def set_profiles(self, profiles: Container[str]) -> None:
        """Index anew for other profiles."""
        self._profiles = profiles
        for info in self.infos():
            self._index(info.pod.pod_key, info)

    def _count(self, *, gated: bool, delta: int) -> None:
        self._metrics.pending(GATED if gated else UNSCHEDULABLE, delta)

    def _index(self, key: str, info: QueuedPodInfo) -> None:
        names = frozenset(info.unschedulable_plugins | info.pending_plugins)
        if not names or info.pod.spec.scheduler_name not in self._profiles:
            names = frozenset((_ANY,))
        self._unindex(key)
        self._indexed[key] = names
        for name in names:
            self._by_plugin.setdefault(name, {})[key] = info

    def _unindex(self, key: str) -> None:
        for name in self._indexed.pop(key, ()):
            pods = self._by_plugin[name]
            del pods[key]
            if not pods:
                del self._by_plugin[name]
