"""Store: the newest known version of every watched object of one kind; what plugins read through a Lister."""

from __future__ import annotations

from collections.abc import ValuesView
from typing import Generic, TypeVar

from scheduler.model.meta import KubeObject

__all__ = ["Store", "Stores"]

K = TypeVar("K", bound=KubeObject)


class Store(Generic[K]):
    """Objects by ``namespace/name`` (bare name for cluster-scoped kinds).

    Attributes:
        version: grows with every change.
    """

    __slots__ = ("_objects", "version")

    def __init__(self) -> None:
        self._objects: dict[str, K] = {}
        self.version = 0

    def get(self, key: str) -> K | None:
        """Return the object under ``key``, or None."""
        return self._objects.get(key)

    def list(self) -> ValuesView[K]:
        """Return all objects, in the order in which they first came."""
        return self._objects.values()

    def put(self, obj: K) -> None:
        """Keep ``obj`` as the newest version."""
        self._objects[obj.key] = obj
        self.version += 1

    def remove(self, obj: K) -> None:
        """Forget the object with ``obj``'s key and UID; another object under the same key stays."""
        known = self._objects.get(obj.key)
        if known is not None and known.uid == obj.uid:
            del self._objects[obj.key]
            self.version += 1

    def __len__(self) -> int:
        return len(self._objects)


class Stores:
    """One Store for each kind that is watched."""

    __slots__ = ("_stores",)

    def __init__(self) -> None:
        self._stores: dict[type[KubeObject], Store[KubeObject]] = {}

    def of(self, kind: type[K]) -> Store[K]:
        """Return the store of ``kind``, made at the first call."""
        store = self._stores.get(kind)
        if store is None:
            store = self._stores[kind] = Store()
        return store  # type: ignore[return-value]  # the key is the proof
