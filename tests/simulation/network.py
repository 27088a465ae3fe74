"""The network between one scheduler and the model API server: latencies, and the faults of the plan.

A request travels, is carried out in one step, and its answer travels back; a client that has gone away meanwhile does
not undo it. What a fault does to a request is decided when it is sent.

    sent ──latency──▶ carried out ──latency──▶ answered
      │ lost_request      │ lost_answer: no answer
      ▼                   ▼
    no answer           refused, false_conflict: another answer
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from scheduler.kube.errors import TransportError, api_error
from scheduler.kube.transport import JSON, Response
from scheduler.testing.apiserver.status import ApiStatusError, conflict, internal
from scheduler.testing.apiserver.store import encode_json
from scheduler.testing.apiserver.watching import Watcher
from tests.simulation.model_api import ModelApi
from tests.simulation.plan import Fault

__all__ = ["Link", "Sent", "Weather"]

Sent = Callable[[int, str, str], None]
"""Is told of each write when it is sent: replica, method, path."""

_LATENCY_S = (0.0005, 0.01)
_SLOW_S = (0.5, 6.0)
_LATE_S = (1.0, 20.0)
_CUT_AFTER_S = 1.0
_BOOKMARK_S = 60.0
_JUST_AFTER_S = 0.001
_NOBODYS = contextvars.Context()


class Weather:
    """Which faults there are now.

    Args:
        faults: of the plan.
        elapsed_s: seconds since the history began.
        chance: decides whom a fault hits.
    """

    def __init__(self, faults: tuple[Fault, ...], elapsed_s: Callable[[], float], chance: random.Random) -> None:
        self._faults = faults
        self._edges_s = [edge_s for fault in faults for edge_s in (fault.start_s, fault.end_s)]
        self._elapsed_s = elapsed_s
        self._chance = chance

    def is_on(self, kind: str, replica: int) -> bool:
        """Say whether there is such a fault for a replica."""
        return self._find(kind, replica) is not None

    def hits(self, kind: str, replica: int) -> bool:
        """Say whether such a fault hits this request."""
        fault = self._find(kind, replica)
        return fault is not None and self._chance.random() < fault.share

    def changes_in_s(self) -> float:
        """Return in how many seconds a fault begins or ends next."""
        now_s = self._elapsed_s()
        return min((edge_s - now_s + _JUST_AFTER_S for edge_s in self._edges_s if edge_s >= now_s), default=math.inf)

    def _find(self, kind: str, replica: int) -> Fault | None:
        if not self._faults:
            return None
        now_s = self._elapsed_s()
        for fault in self._faults:
            if fault.kind == kind and fault.replica in {-1, replica} and fault.start_s <= now_s < fault.end_s:
                return fault
        return None


class Link:
    """A Transport of one replica.

    Args:
        api: the server.
        replica: whose.
        weather: the faults.
        chance: latencies.
        on_write: is told of writes as they are sent.
    """

    def __init__(self, api: ModelApi, replica: int, weather: Weather, chance: random.Random, on_write: Sent) -> None:
        self._api = api
        self._replica = replica
        self._weather = weather
        self._chance = chance
        self._on_write = on_write
        self._loop = asyncio.get_running_loop()

    async def request(self, method, path, *, body=None, content_type=JSON, timeout_s):
        if self._weather.is_on("down", self._replica):
            await asyncio.sleep(self._latency_s())
            raise TransportError("connection refused", sent=False, refused=True)
        is_write = method != "GET"
        if is_write:
            self._on_write(self._replica, method, path)
        answered: asyncio.Future[Response] = self._loop.create_future()
        if not self._is_lost(is_write):
            self._later(self._arrive, answered, method, path, body, content_type)
        try:
            async with asyncio.timeout(timeout_s):
                return await answered
        except TimeoutError:
            answered.cancel()
            raise TransportError(f"no answer within {timeout_s} s", sent=True) from None

    def _is_lost(self, is_write: bool) -> bool:
        if self._weather.is_on("blackhole", self._replica):
            return True
        return is_write and self._weather.hits("lost_request", self._replica)

    def _arrive(
        self, answered: asyncio.Future[Response], method: str, path: str, body: bytes | None, kind: str
    ) -> None:
        if answered.cancelled():
            return  # the sender has closed the connection: what was still on its way is lost
        response = self._refusal() if method != "GET" else None
        if response is None:
            response = self._api.answer(method, path, body, kind)
            if method != "GET" and self._weather.hits("lost_answer", self._replica):
                return
            if path.endswith("/binding") and self._weather.hits("false_conflict", self._replica):
                response = _as_response(conflict("pods/binding", "pod", "somebody in the middle says so"))
        self._later(self._come_back, answered, response)

    def _later(self, step: Callable[..., None], *arguments: object) -> None:
        """Let a step of the network happen; it is no part of the sender's process."""
        self._loop.call_later(self._latency_s(), step, *arguments, context=_NOBODYS)

    @staticmethod
    def _come_back(answered: asyncio.Future[Response], response: Response) -> None:
        if not answered.done():
            answered.set_result(response)

    def _refusal(self) -> Response | None:
        if not self._weather.hits("refused", self._replica):
            return None
        status = self._chance.choice((500, 503, 429))
        refusal = (
            ApiStatusError(status, "TooManyRequests", "too many", details={}) if status == 429 else internal("sorry")
        )
        headers = {"retry-after": "1"} if status == 429 else {}
        return Response(status, headers, encode_json(refusal.body()))

    def _latency_s(self) -> float:
        slow = self._weather.hits("slow", self._replica)
        return self._chance.uniform(*(_SLOW_S if slow else _LATENCY_S))

    # --- watches -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(self, path: str, *, connect_timeout_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        if self._weather.is_on("down", self._replica):
            await asyncio.sleep(self._latency_s())
            raise TransportError("connection refused", sent=False, refused=True)
        if self._weather.is_on("blackhole", self._replica):
            await asyncio.sleep(connect_timeout_s)
            raise TransportError("no answer", sent=True)
        await asyncio.sleep(self._latency_s())
        watcher = self._api.watch(path)
        if isinstance(watcher, Response):
            raise api_error(watcher.status, watcher.headers, watcher.body)
        try:
            yield self._chunks(watcher)
        finally:
            self._api.unwatch(path, watcher)

    async def _chunks(self, watcher: Watcher) -> AsyncIterator[bytes]:
        opened_s = self._loop.time()
        while True:
            chunk = await self._next_chunk(watcher)
            is_over = not chunk and watcher.is_closed
            chunk = chunk or self._api.bookmark(watcher)  # of this moment, however late it comes
            if self._weather.is_on("down", self._replica):
                raise TransportError("connection reset", sent=True)
            if self._weather.is_on("blackhole", self._replica):
                await asyncio.Event().wait()  # what was sent is gone, and nobody says so
            if self._weather.is_on("late", self._replica):
                await asyncio.sleep(self._chance.uniform(*_LATE_S))
            if self._weather.is_on("cut", self._replica) and self._loop.time() - opened_s > _CUT_AFTER_S:
                yield chunk[: len(chunk) // 2]
                raise TransportError("connection reset", sent=True)
            if chunk and self._weather.is_on("repeated", self._replica):
                chunk = b"".join(line + line for line in chunk.splitlines(keepends=True))
            if is_over:
                return
            yield chunk

    async def _next_chunk(self, watcher: Watcher) -> bytes:
        """Wait for lines, but look up when the weather changes, and for bookmarks."""
        is_cut = self._weather.is_on("cut", self._replica)
        return await watcher.next_chunk(_CUT_AFTER_S if is_cut else min(self._weather.changes_in_s(), _BOOKMARK_S))

    async def close(self) -> None:
        """Nothing is kept open."""


def _as_response(error: ApiStatusError) -> Response:
    return Response(error.code, {}, encode_json(error.body()))
