"""Deltas: what a reflector tells intake about one object of one kind.

The reflector has already made the stream whole: after a relist, objects that vanished meanwhile arrive as ``Removed``
with ``is_stale``, and a kind's first ``Synced`` says that everything that existed at the start has been delivered.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.model.meta import KubeObject

__all__ = ["Added", "Changed", "Delta", "Rejected", "Removed", "Synced", "Unavailable"]


@dataclass(frozen=True, slots=True)
class Added:
    """An object that the reflector did not know."""

    obj: KubeObject


@dataclass(frozen=True, slots=True)
class Changed:
    """A new version of a known object; same UID as ``old``."""

    old: KubeObject
    obj: KubeObject


@dataclass(frozen=True, slots=True)
class Removed:
    """An object that is gone; with ``is_stale`` the last state may be older than the deletion."""

    obj: KubeObject
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Synced:
    """The first list of the kind has been delivered in full."""

    kind: type[KubeObject]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The server does not serve the kind, or does not let us read it; the reflector goes on trying."""

    kind: type[KubeObject]
    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """An object that cannot be understood; the stream went on behind it.

    Attributes:
        kind: the kind it was meant to be.
        namespace: as far as it could be read, else "".
        name: as far as it could be read, else "".
        uid: as far as it could be read, else "".
        resource_version: as far as it could be read, else "".
        reason: what is wrong with it, with the path of the field.
        scheduler_name: of a pod, as far as it could be read.
        node_name: of a pod, as far as it could be read.
    """

    kind: type[KubeObject]
    namespace: str
    name: str
    uid: str
    resource_version: str
    reason: str
    scheduler_name: str = ""
    node_name: str = ""


Delta = Added | Changed | Removed | Synced | Unavailable | Rejected
