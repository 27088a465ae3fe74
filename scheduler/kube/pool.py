"""Pool: connections that are kept for the next request.

A request takes the connection that was used last, so that a quiet time leaves the others to run out. A connection that
has been idle for long is not used again: the server, which closes idle ones after some time of its own, might do so
just while a request is on its way, and nobody could tell then what became of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from scheduler.kube.connection import CONNECT_TIMEOUT_S, Connection, Endpoint, connect

__all__ = ["KEEP_IDLE_S", "Pool"]

KEEP_IDLE_S = 55.0
"""Shorter than the API server's 90 s."""


class Pool:
    """Connections to one endpoint, at most ``size`` of them."""

    def __init__(self, endpoint: Endpoint, size: int, *, monotonic: Callable[[], float]) -> None:
        """Make an empty pool.

        Args:
            endpoint: where to connect to.
            size: connections at a time; who comes then waits in the order of coming.
            monotonic: tells how long a connection has been idle.
        """
        self._endpoint = endpoint
        self._monotonic = monotonic
        self._idle: list[Connection] = []
        self._size = size
        self._in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    def take_idle(self) -> Connection | None:
        """Return a connection that is there already, or None; to be given back with ``put_back``."""
        if self._in_use >= self._size:
            return None
        connection = self._newest_idle()
        if connection is not None:
            self._in_use += 1
        return connection

    async def take(self) -> Connection:
        """Wait for a place and return a connection; to be given back with ``put_back``.

        Raises:
            OSError: cannot connect, or not in time.
            UnicodeError: the host is not a name.
        """
        await self._take_place()
        try:
            connection = self._newest_idle()
            if connection is None:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    connection = await connect(self._endpoint)
                connection.when_lost(self._forget)
        except BaseException:
            self._leave_place()
            raise
        return connection

    def put_back(self, connection: Connection) -> None:
        """Give a connection back; one whose answer is not complete is closed."""
        self._leave_place()
        if not connection.is_idle or self._is_closed:
            connection.give_up("closed by us")
            return
        connection.idle_since_s = self._monotonic()
        self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.give_up("closed by us")

    async def _take_place(self) -> None:
        if self._in_use < self._size:
            self._in_use += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave_place()  # it came just as the wait was given up
            raise

    def _leave_place(self) -> None:
        """Hand the place to the first who waits for one."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._in_use -= 1

    def _newest_idle(self) -> Connection | None:
        oldest_s = self._monotonic() - KEEP_IDLE_S
        while self._idle:
            connection = self._idle.pop()
            if connection.is_idle and connection.idle_since_s >= oldest_s:
                return connection
            connection.give_up("closed by us")
        return None

    def _forget(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)
