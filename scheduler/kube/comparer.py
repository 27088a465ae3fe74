"""The server's comparer: does our store hold what the API server has?

A watch is trusted to deliver everything, and has failed to: kube-scheduler left a pod unseen for hours (k/k#102790).
Nothing that comes later repairs a lost line, so once in a while everything is listed, metadata only, and compared.

    list ─▶ what differs? ─▶ grace ─▶ what still differs, untouched by the watch? ─▶ drift
              └ nothing: clean          └ nothing: it was under way, clean

* The list names no resource version, so it is as new as the moment of asking (etcd's state, or a cache that has proved
  to be as new). ``resourceVersion=0`` may be answered from the very cache that lost the event.
* A store that is ahead of the list is right: the watch has gone on meanwhile. What is behind gets the grace to arrive.
* A pod that is listed and unknown after the grace may have come and gone within it. So it counts only if a second list
  shows it again; then it was there all the time.
* A server whose list is older than what its watch had told before was put back (etcd restored): everything is in doubt.

Objects that could not be understood are known to be missing, and are no drift.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Container
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from scheduler.api.handle import Lister
from scheduler.kube.errors import ProtocolError
from scheduler.kube.known import is_older
from scheduler.kube.paging import LIST_TIMEOUT_S, all_pages
from scheduler.kube.paths import list_path
from scheduler.kube.transport import JSON, Transport, raise_for_status
from scheduler.model.kinds import KINDS
from scheduler.model.meta import KubeObject

__all__ = ["METADATA_ONLY", "Difference", "Drift", "ServerComparer"]

METADATA_ONLY = f"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
"""A server that cannot leave the rest out sends whole objects, which is only dearer."""

_PAGE_SIZE = 1_000
"""Larger than a page of whole objects: each page costs a turn under our own rate limit, which binds need."""

_OBJECTS_PER_TURN = 5_000


class Difference(enum.Enum):
    """How the store differs from the server."""

    MISSED = "missed"
    OUTDATED = "outdated"
    REDUNDANT = "redundant"


@dataclass(frozen=True, slots=True)
class Drift:
    """One object that the store has wrong.

    Attributes:
        difference: in which way.
        key: ``namespace/name``; "" if everything is in doubt.
        known: UID and version in the store, "" if it is not there.
        listed: UID and version on the server, "" if it is not there.
    """

    difference: Difference
    key: str
    known: tuple[str, str] = ("", "")
    listed: tuple[str, str] = ("", "")


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Item(msgspec.Struct, gc=False):
    metadata: _Meta


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Item] | None = None

    @property
    def continue_token(self) -> str:
        return self.metadata.continue_


_decode = msgspec.json.Decoder(_List).decode

Listed = dict[str, tuple[str, str]]
"""UID and version by ``namespace/name``."""


class ServerComparer:
    """Compares one kind.

    Args:
        kind: a key of ``KINDS``.
        transport: to the API server.
        store: what decisions are made from.
        is_rejected: says of a key that its newest version could not be understood.
        watched_version: returns the newest version that the watch has told, "" if there is none.
        caught_up: waits until everything that the watch has delivered is in the store.
        grace_s: how long an event may be under way.
        sleep: waits.
    """

    def __init__(
        self,
        kind: type[KubeObject],
        transport: Transport,
        *,
        store: Lister[KubeObject],
        is_rejected: Callable[[str], bool],
        watched_version: Callable[[], str],
        caught_up: Callable[[], Awaitable[None]],
        grace_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._info = KINDS[kind]
        self._transport = transport
        self._store = store
        self._is_rejected = is_rejected
        self._watched_version = watched_version
        self._caught_up = caught_up
        self._grace_s = grace_s
        self._sleep = sleep

    async def compare(self) -> list[Drift]:
        """Return what the store has wrong, beyond what may be under way.

        Raises:
            ApiError: the server refused.
            TransportError: a page did not arrive.
            ProtocolError: an answer is not a list.
        """
        watched = self._watched_version()
        version, found = await self._look()
        if is_older(version, watched):
            return [Drift(Difference.OUTDATED, "", ("", watched), ("", version))]
        if not found:
            return []
        await self._sleep(self._grace_s)
        await self._caught_up()
        found = [drift for drift in found if self._is_unchanged(drift)]
        missed = {drift.key for drift in found if drift.difference is Difference.MISSED}
        if missed:
            there = await self._listed(missed)
            found = [d for d in found if d.key not in missed or there.get(d.key, ("",))[0] == d.listed[0]]
        return found

    async def _look(self) -> tuple[str, list[Drift]]:
        """List everything and return the list's version and what differs now."""
        version, uids = "", set[str]()
        found: list[Drift] = []
        async with aclosing(all_pages(self._page, _PAGE_SIZE)) as pages:
            async for is_first, page in pages:
                if is_first:
                    uids, found, version = set(), [], page.metadata.resource_version
                for item in page.items or ():
                    uids.add(item.metadata.uid)
                    if (drift := self._behind(item.metadata)) is not None:
                        found.append(drift)
                await self._sleep(0.0)
        replaced = {drift.key for drift in found}
        for number, obj in enumerate(tuple(self._store.list()), 1):
            is_there = obj.uid in uids or is_older(version, obj.metadata.resource_version)
            if not is_there and obj.key not in replaced:
                found.append(Drift(Difference.REDUNDANT, obj.key, _identity(obj)))
            if number % _OBJECTS_PER_TURN == 0:
                await self._sleep(0.0)
        return version, found

    def _behind(self, meta: _Meta) -> Drift | None:
        """Return in what the store is behind the list, if it is."""
        key, listed = meta.key, (meta.uid, meta.resource_version)
        known = self._store.get(key)
        if known is not None and _identity(known) == listed:
            return None
        if self._is_rejected(key):
            return None
        if known is None:
            return Drift(Difference.MISSED, key, listed=listed)
        if is_older(meta.resource_version, known.metadata.resource_version):
            return None  # the watch has gone on
        return Drift(Difference.OUTDATED, key, _identity(known), listed)

    def _is_unchanged(self, drift: Drift) -> bool:
        """Say whether nothing has been heard of the object since it was found to differ."""
        now = self._store.get(drift.key)
        return (("", "") if now is None else _identity(now)) == drift.known and not self._is_rejected(drift.key)

    async def _listed(self, keys: Container[str]) -> Listed:
        """List everything again and return those of ``keys`` that are there."""
        listed: Listed = {}
        async with aclosing(all_pages(self._page, _PAGE_SIZE)) as pages:
            async for is_first, page in pages:
                if is_first:
                    listed.clear()
                metas = (item.metadata for item in page.items or ())
                listed |= {meta.key: (meta.uid, meta.resource_version) for meta in metas if meta.key in keys}
                await self._sleep(0.0)
        return listed

    async def _page(self, limit: int, token: str) -> _List:
        path = list_path(self._info, limit=limit, continue_token=token)
        response = await self._transport.request("GET", path, accept=METADATA_ONLY, timeout_s=LIST_TIMEOUT_S)
        try:
            return _decode(raise_for_status(response).body)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise ProtocolError(f"not a list of {self._info.plural}: {error}") from error


def _identity(obj: KubeObject) -> tuple[str, str]:
    return obj.metadata.uid, obj.metadata.resource_version
