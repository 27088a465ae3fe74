"""AssumeCache: a watched kind as it will be once our own decisions are written.

    watched ──assume──▶ assumed ──watch shows a newer version, or restore──▶ watched

An assumed object counts as long as the watch shows the version it was made from. It need not be told of events: what
has become stale is passed over when it is read, and swept out when others are assumed.
Source: ``volumebinding/passive_assume_cache.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from scheduler.api import Lister
from scheduler.model.meta import KubeObject

__all__ = ["AssumeCache", "AssumeError"]

K = TypeVar("K", bound=KubeObject)

_FIRST_SWEEP = 64


class AssumeError(Exception):
    """The object is gone or has changed since the decision was made; the text is upstream's."""


class AssumeCache(Generic[K]):
    """Objects of one kind."""

    __slots__ = ("_assumed", "_plural", "_sweep_at", "_watched")

    def __init__(self, watched: Lister[K], plural: str) -> None:
        """Make the cache; ``plural`` names the kind in texts, e.g. ``persistentvolumes``."""
        self._watched = watched
        self._plural = plural
        self._assumed: dict[str, K] = {}
        self._sweep_at = _FIRST_SWEEP

    def get(self, key: str) -> K | None:
        """Return the object, assumed changes included; None if there is none."""
        stored = self._watched.get(key)
        return None if stored is None else self._newest(stored)

    def get_watched(self, key: str) -> K | None:
        """Return the object as the watch shows it; None if there is none."""
        return self._watched.get(key)

    def list(self) -> Iterator[K]:
        """Yield all objects, assumed changes included."""
        return map(self._newest, self._watched.list()) if self._assumed else iter(self._watched.list())

    def assume(self, obj: K) -> None:
        """Count ``obj`` instead of the version that the watch shows.

        Raises:
            AssumeError: the watch shows another version than ``obj`` was made from, or none.
        """
        stored = self._watched.get(obj.key)
        if stored is None:
            raise AssumeError(self.not_found(obj.key))
        version, wanted = stored.metadata.resource_version, obj.metadata.resource_version
        if version != wanted:
            raise AssumeError(f'"{obj.key}" is out of sync (stored: {version}, assume: {wanted})')
        if len(self._assumed) >= self._sweep_at:
            self._sweep()
        self._assumed[obj.key] = obj

    def restore(self, obj: K) -> None:
        """Take back what was assumed on the version that ``obj`` has; anything else stays."""
        assumed = self._assumed.get(obj.key)
        if assumed is not None and assumed.metadata.resource_version == obj.metadata.resource_version:
            del self._assumed[obj.key]

    def not_found(self, key: str) -> str:
        """Return upstream's text for a missing object."""
        return f'{self._plural} "{key}" not found'

    def __len__(self) -> int:
        return len(self._assumed)

    def _newest(self, stored: K) -> K:
        assumed = self._assumed.get(stored.key)
        if assumed is None or assumed.metadata.resource_version != stored.metadata.resource_version:
            return stored
        return assumed

    def _sweep(self) -> None:
        for key, assumed in list(self._assumed.items()):
            stored = self._watched.get(key)
            if stored is None or stored.metadata.resource_version != assumed.metadata.resource_version:
                del self._assumed[key]
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._assumed))
