"""Wire: bytes on their way to one side of a connection, held up and cut as the TCP actions say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from tests.faults.proxy.rules import Handle, Subject
from tests.faults.proxy.tcp_actions import Bandwidth, Blackhole, Latency, LimitData, Slicer, SlowClose, TcpAction

__all__ = ["Wire"]

_TURN_S = 0.05
_CLOSE_S = 2.0


class Wire:
    """The way to one side. Sending takes as long as the way does, so whoever sends comes one after the other.

    Args:
        writer: of that side.
        subject: returns what the rules stand over at the moment.
        is_to_client: only this direction counts for ``LimitData`` and ``SlowClose``.
    """

    def __init__(
        self, writer: asyncio.StreamWriter, subject: Callable[[], Subject], *, is_to_client: bool = False
    ) -> None:
        self._writer = writer
        self._subject = subject
        self._is_to_client = is_to_client
        self._sent_bytes = 0
        self._told: set[tuple[Handle, Subject]] = set()

    async def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            ConnectionError: the other end is gone, or a rule has closed the connection.
        """
        if not data:
            return
        await self._delay()
        data, is_last = self._limited(data)
        while data:
            size, pause_s = self._piece(len(data))
            self._writer.write(data[:size])
            await self._writer.drain()
            data = data[size:]
            if pause_s:
                await asyncio.sleep(pause_s)
        if is_last:
            self._writer.close()
            raise ConnectionAbortedError("closed by a rule")

    async def passable(self) -> None:
        """Wait while a black hole is in the way."""
        while (handle := next(iter(self._standing(Blackhole)), None)) is not None:
            self._tell(handle)
            await handle.book.until_change()

    async def close(self) -> None:
        """Let the other side know the end."""
        await self.passable()
        for handle in self._standing(SlowClose):
            action = handle.action
            assert isinstance(action, SlowClose)
            if self._is_to_client:
                self._tell(handle)
                await asyncio.sleep(action.delay_s)
        self._writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()

    async def _delay(self) -> None:
        await self.passable()
        latency_s = 0.0
        for handle in self._standing(Latency):
            self._tell(handle)
            action = handle.action
            assert isinstance(action, Latency)
            latency_s += max(0.0, action.latency_s + action.jitter_s * handle.random.uniform(-1.0, 1.0))
        if latency_s:
            await asyncio.sleep(latency_s)
            await self.passable()

    def _limited(self, data: bytes) -> tuple[bytes, bool]:
        """Return what may go, and whether that is the last."""
        self._sent_bytes += len(data)
        for handle in self._standing(LimitData):
            action = handle.action
            assert isinstance(action, LimitData)
            if self._is_to_client and self._sent_bytes >= action.max_bytes:
                self._tell(handle)
                return data[: max(0, len(data) - (self._sent_bytes - action.max_bytes))], True
        return data, False

    def _piece(self, size: int) -> tuple[int, float]:
        """Return how much goes at once, and the pause after it."""
        pause_s = 0.0
        for handle in self._standing(Slicer, Bandwidth):
            self._tell(handle)
            action = handle.action
            if isinstance(action, Slicer):
                variation = handle.random.randint(-action.variation_bytes, action.variation_bytes)
                size = min(size, max(1, action.average_bytes + variation))
                pause_s += action.pause_s
            elif isinstance(action, Bandwidth):
                size = min(size, max(1, int(action.bytes_per_s * _TURN_S)))
                pause_s += size / action.bytes_per_s
        return size, pause_s

    def _standing(self, *kinds: type[TcpAction]) -> list[Handle]:
        return self._subject().standing(*kinds)

    def _tell(self, handle: Handle) -> None:
        """Note that an action is carried out, once over each thing that it stands over."""
        key = (handle, self._subject())
        if key not in self._told:
            self._told.add(key)
            handle.hit(key[1].request)
