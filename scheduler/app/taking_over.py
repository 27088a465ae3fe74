"""Taking over: what a new leader must have seen before its first decision, namely all that the one before has done.

Its last write is older than our lease (``kube.lease``). So it is enough that our watches have shown everything up to a
moment after we won; how that becomes certain depends on how much there is to list:

    a page at most ──────────────────────────────────────────────────────────────▶ list anew
    more: ask for the newest version ──the watch reaches it within 0.5 s──▶ seen     ▲
                                      └─ it does not, or is not what it was ─────────┘

Who finds the lease free when it starts has seen no other leader, but there may have been one until a moment ago. There
the first lists are enough if they are of the lease's version, or newer: the one before wrote nothing after it.

A list of a page costs no more than the question, and makes up for lines that the watch may have lost. A list of a
hundred thousand pods takes ten seconds; where there are so many, their watch hardly rests, and reaches the version in
a moment. What it has lost is then found by a comparison after the first decisions.

kube-scheduler has no such thing: it decides from what its watches have shown so far.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from scheduler.api import Clock
from scheduler.app.kinds import REQUIRED
from scheduler.kube.errors import KubeError
from scheduler.kube.known import is_older
from scheduler.kube.paging import PAGE_SIZE
from scheduler.kube.reflector import Reflector, list_again
from scheduler.model.meta import KubeObject
from scheduler.telemetry.logging import get_logger

__all__ = ["PATIENCE_S", "TakingOver"]

PATIENCE_S = 0.5
"""For so long a watch may take to reach the newest version; a leader that was asked to stop is replaced within 2 s."""

_LOOK_S = 0.01
_LOOK_WHILE_SYNCING_S = 0.05

_log = get_logger(__name__)


class TakingOver:
    """Waits until nodes and pods are known as they were when this leader began, or later.

    Args:
        reflectors: the watches by kind; filled later.
        clock: the reflectors'.
        caught_up: waits until everything that the watches have delivered is in the cache.
        sleep: waits.
    """

    def __init__(
        self,
        reflectors: Mapping[type[KubeObject], Reflector],
        *,
        clock: Clock,
        caught_up: Callable[[], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._reflectors = reflectors
        self._clock = clock
        self._caught_up = caught_up
        self._sleep = sleep

    async def see_all(self, given_up_at: str = "") -> bool:
        """Wait for it; returns whether everything has been listed, so that no comparison is needed.

        Args:
            given_up_at: resource version of the lease when the leader before had given it up; "" if that is not known.
        """
        required = [self._reflectors[kind] for kind in REQUIRED if kind in self._reflectors]
        listed = await asyncio.gather(*(self._see(reflector, given_up_at) for reflector in required))
        await self._caught_up()
        return all(listed)

    async def _see(self, reflector: Reflector, given_up_at: str) -> bool:
        if given_up_at and await self._is_listed_since(reflector, given_up_at):
            return True
        if reflector.num_objects > PAGE_SIZE and await self._reaches_newest(reflector):
            return False
        await list_again(reflector, "requested", self._sleep)
        return True

    async def _is_listed_since(self, reflector: Reflector, version: str) -> bool:
        """Wait for the first list; tell whether it, or the watch after it, is of that version at least."""
        while not reflector.is_synced:
            await self._sleep(_LOOK_WHILE_SYNCING_S)
        return _has_reached(reflector, version)

    async def _reaches_newest(self, reflector: Reflector) -> bool:
        """Tell whether one and the same stream reaches the version that the server names now."""
        stats, until_s = reflector.stats, self._clock.now() + PATIENCE_S
        stream, version = stats.watches_opened, stats.last_resource_version
        if not reflector.is_streaming:
            return False
        try:
            newest = await reflector.read_version(PATIENCE_S)
        except KubeError as error:
            _log.info("the newest version could not be read, listing", kind=reflector.kind.__name__, err=str(error))
            return False
        except Exception as bug:  # noqa: BLE001  supervisor: it must not leave a leader that never decides
            _log.error("reading the newest version broke, listing", kind=reflector.kind.__name__, err=repr(bug))
            return False
        if is_older(newest, version):  # etcd has been restored: what the watch has shown is no more
            return False
        while reflector.is_streaming and stats.watches_opened == stream:
            if _has_reached(reflector, newest):
                return True
            if self._clock.now() >= until_s:
                return False
            await self._sleep(_LOOK_S)
        return False


def _has_reached(reflector: Reflector, version: str) -> bool:
    reached = reflector.stats.last_resource_version
    return version == reached or is_older(version, reached)
