"""SchedulerProfile objects, as the API server has them.

The resource's definition is ``deploy/crds/schedulerprofiles.yaml``. Nothing is taken on trust that only its schema
guarantees: an object may have been stored under an older one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.kube.errors import ProtocolError

__all__ = [
    "COLLECTION",
    "GROUP",
    "KIND",
    "MAX_OBJECTS",
    "PLURAL",
    "VERSION",
    "ObjectMeta",
    "SchedulerProfile",
    "decode_list",
    "status_path",
]

GROUP = "scheduling.podium.dev"
VERSION = "v1alpha1"
KIND = "SchedulerProfile"
PLURAL = "schedulerprofiles"
COLLECTION = f"/apis/{GROUP}/{VERSION}/{PLURAL}"

MAX_OBJECTS = 100
"""So many live profiles at most: each has plugins, metrics and a status of its own."""


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an object's metadata that counts here."""

    name: str
    uid: str
    generation: int = 1
    creation_timestamp: str = ""


class SchedulerProfile(msgspec.Struct, frozen=True):
    """One object: ``spec`` is an entry of ``profiles`` in a KubeSchedulerConfiguration."""

    metadata: ObjectMeta
    spec: Any = None
    status: Any = None

    @property
    def name(self) -> str:
        """Return the object's name, which is not the scheduler's."""
        return self.metadata.name

    @property
    def scheduler_name(self) -> str:
        """Return the name that pods use; "" where there is none."""
        found = self.spec.get("schedulerName") if isinstance(self.spec, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def known_status(self) -> dict[str, Any]:
        """Return the status as the API server has it."""
        return self.status if isinstance(self.status, dict) else {}


class _List(msgspec.Struct):
    items: list[SchedulerProfile]


_decode = msgspec.json.Decoder(_List).decode


def decode_list(body: bytes) -> list[SchedulerProfile]:
    """Return the objects of a list, oldest first; of equal age by name.

    Raises:
        ProtocolError: the body is no such list.
    """
    try:
        items = _decode(body).items
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProtocolError(f"list of {PLURAL}: {error}") from error
    return sorted(items, key=lambda item: (item.metadata.creation_timestamp, item.name))


def status_path(name: str) -> str:
    """Return the path of an object's status; the API server allows no name that needs quoting."""
    return f"{COLLECTION}/{name}/status"
