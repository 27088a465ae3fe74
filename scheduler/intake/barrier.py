"""Barrier: no decision before every kind has been delivered once.

A scheduler that decides before it has seen all assigned pods books nodes twice. Kinds that the server does not serve,
or does not let us read, must not hold it up for ever: optional kinds count as settled once they are known to be
unavailable, and the plugin that wanted them works without.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.model.meta import KubeObject

__all__ = ["Barrier"]


class Barrier:
    """Remembers which kinds are still missing."""

    __slots__ = ("_missing", "_optional", "unavailable")

    def __init__(self, required: Iterable[type[KubeObject]], optional: Iterable[type[KubeObject]] = ()) -> None:
        self._optional = frozenset(optional)
        self._missing = {*required, *self._optional}
        self.unavailable: dict[type[KubeObject], str] = {}
        """Optional kinds that cannot be read, with the reason."""

    @property
    def is_open(self) -> bool:
        """Say whether decisions may be made."""
        return not self._missing

    @property
    def missing(self) -> list[str]:
        """Return the names of the kinds still awaited, for health checks and logs."""
        return sorted(kind.__name__ for kind in self._missing)

    def needs(self, kind: type[KubeObject]) -> bool:
        """Say whether there is no deciding without ``kind``."""
        return kind not in self._optional

    def synced(self, kind: type[KubeObject]) -> None:
        """Note that all objects of ``kind`` have been delivered."""
        self._missing.discard(kind)
        self.unavailable.pop(kind, None)

    def unreadable(self, kind: type[KubeObject], reason: str) -> None:
        """Note that ``kind`` cannot be read; a required kind stays missing."""
        self.unavailable[kind] = reason
        if kind in self._optional:
            self._missing.discard(kind)
