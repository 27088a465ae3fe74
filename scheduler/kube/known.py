"""Known: what the reflector has told so far about the objects of one kind, and what is news.

Pure bookkeeping between the wire and intake. It makes the stream whole:

* an object seen for the first time is ``Added``, a newer version ``Changed``, the same version again is nothing;
* another UID under the same name is a deletion that we missed, then a new object;
* after a full list, what was known and is not in the list is ``Removed`` with ``is_stale``;
* an object that cannot be understood is ``Rejected`` once a version; the last good version, if any, stays known.

Versions within a watch only grow, so an older one is a repetition; a list is taken as it is, because the server may
have been restored from a backup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from scheduler.model.delta import Added, Changed, Delta, Rejected, Removed
from scheduler.model.meta import KubeObject

__all__ = ["Known", "is_older"]

K = TypeVar("K", bound=KubeObject)


def is_older(version: str, than: str) -> bool:
    """Tell whether a resource version is surely older than another; never for versions that are not decimal."""
    if len(version) == len(than):
        return version < than and version.isdigit() and than.isdigit()
    return len(version) < len(than) and version.isdigit() and than.isdigit()


class Known:
    """The newest told version of every object, by ``namespace/name``.

    Args:
        emit: receives the news.
    """

    __slots__ = ("_emit", "_listed", "_objects", "_rejected")

    def __init__(self, emit: Callable[[Delta], None]) -> None:
        self._emit = emit
        self._objects: dict[str, KubeObject] = {}
        self._rejected: dict[str, Rejected] = {}
        self._listed: set[str] | None = None

    def __len__(self) -> int:
        return len(self._objects)

    def is_rejected(self, key: str) -> bool:
        """Tell whether the newest version of an object could not be understood."""
        return key in self._rejected

    def begin_list(self) -> None:
        """Start a full list; one that was begun before and not finished is forgotten."""
        self._listed = set()

    def put(self, obj: KubeObject) -> bool:
        """Take a version of an object and return whether it was news."""
        key = obj.key
        if self._listed is not None:
            self._listed.add(key)
        if self._rejected:
            self._rejected.pop(key, None)
        old = self._objects.get(key)
        if old is None:
            self._objects[key] = obj
            self._emit(Added(obj))
            return True
        return self._replace(key, old, obj)

    def reject(self, rejected: Rejected) -> bool:
        """Take a version that cannot be understood and return whether it was news."""
        key = _rejected_key(rejected)
        if self._listed is not None:
            self._listed.add(key)
        last = self._rejected.get(key)
        if key and last is not None and _same(last, rejected):
            return False
        old = self._objects.get(key)
        if old is not None and rejected.uid and old.uid != rejected.uid:
            self._forget(key, old)
        if key:
            self._rejected[key] = rejected
        self._emit(rejected)
        return True

    def remove(self, obj: KubeObject | Rejected) -> bool:
        """Take a deletion and return whether it was news."""
        if isinstance(obj, Rejected):
            return self._remove_rejected(obj)
        key = obj.key
        self._rejected.pop(key, None)
        old = self._objects.get(key)
        if old is None:
            return False
        if old.uid == obj.uid:
            del self._objects[key]
            self._emit(Removed(obj))
            return True
        if is_older(obj.metadata.resource_version, old.metadata.resource_version):
            return False  # the end of an earlier object of that name, told late
        self._forget(key, old)
        return True

    def finish_list(self) -> int:
        """End a full list: tell the deletions that nobody told us, and return their number."""
        listed, self._listed = self._listed, None
        if listed is None:
            return 0
        gone = [key for key in self._objects if key not in listed]
        for key in gone:
            self._forget(key, self._objects[key])
        for key in [key for key in self._rejected if key not in listed]:
            del self._rejected[key]
        return len(gone)

    def _replace(self, key: str, old: KubeObject, obj: KubeObject) -> bool:
        version, known_version = obj.metadata.resource_version, old.metadata.resource_version
        if version == known_version and obj.uid == old.uid:
            return False
        if self._listed is None and is_older(version, known_version):
            return False
        if obj.uid != old.uid:
            self._forget(key, old)
            self._objects[key] = obj
            self._emit(Added(obj))
            return True
        self._objects[key] = obj
        self._emit(Changed(old, obj))
        return True

    def _remove_rejected(self, rejected: Rejected) -> bool:
        key = _rejected_key(rejected)
        self._rejected.pop(key, None)
        old = self._objects.get(key)
        if old is None or (rejected.uid and rejected.uid != old.uid):
            return False
        self._forget(key, old)
        return True

    def _forget(self, key: str, old: KubeObject) -> None:
        del self._objects[key]
        self._emit(Removed(old, is_stale=True))


def _rejected_key(rejected: Rejected) -> str:
    return f"{rejected.namespace}/{rejected.name}" if rejected.namespace else rejected.name


def _same(last: Rejected, rejected: Rejected) -> bool:
    return (last.uid, last.resource_version) == (rejected.uid, rejected.resource_version)
