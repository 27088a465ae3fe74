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
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from scheduler.kube.errors import TransportError, api_error
from scheduler.kube.transport import JSON, Response
from scheduler.testing.apiserver.resources import Resource
from scheduler.testing.apiserver.status import ApiStatusError, conflict, expired, internal
from scheduler.testing.apiserver.store import encode_json
from scheduler.testing.apiserver.watching import Watcher, error_line
from tests.simulation.garbling import merged, swapped
from tests.simulation.model_api import ModelApi
from tests.simulation.plan import LOST_LINE, Fault

__all__ = ["Link", "Sent", "Traffic", "Weather", "WeatherOf"]

Sent = Callable[[str, str, str], None]
"""Is told of each write when it is sent: by whom, method, path."""


@dataclass(slots=True)
class Traffic:
    """What has passed.

    Attributes:
        requests: that were sent; ``writes``: those that would change something.
        lines: of watches that arrived.
        fingerprint: of all requests and their moments.
    """

    requests: int = 0
    writes: int = 0
    lines: int = 0
    fingerprint: int = 0

    def sent(self, now_s: float, method: str, path: str) -> None:
        """Count a request."""
        self.requests += 1
        self.writes += method != "GET"
        self.fingerprint = zlib.crc32(f"{now_s} {method} {path}".encode(), self.fingerprint)


_LATENCY_S = (0.0005, 0.01)
_SLOW_S = (0.5, 6.0)
_LATE_S = (1.0, 20.0)
_CUT_AFTER_S = 1.0
_BOOKMARK_S = 60.0
_JUST_AFTER_S = 0.001
_NOBODYS = contextvars.Context()


class Weather:
    """Which faults there are now: each begins and ends by a timer of the loop.

    Args:
        faults: of the plan; the history begins now.
        loop: whose time passes.
        chance: decides whom a fault hits.
    """

    def __init__(self, faults: tuple[Fault, ...], loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        self._loop = loop
        self._chance = chance
        self._present: list[Fault] = []
        self._changes_s = deque(
            sorted(loop.time() + edge_s for each in faults for edge_s in (each.start_s, each.end_s))
        )
        for fault in faults:
            loop.call_later(fault.start_s, self._change, self._present.append, fault)
            loop.call_later(fault.end_s, self._change, self._present.remove, fault)

    def find(self, kind: str, replica: int) -> Fault | None:
        """Return the first such fault that there is for a replica."""
        for fault in self._present:
            if fault.kind == kind and fault.replica in {-1, replica}:
                return fault
        return None

    def hits(self, kind: str, replica: int) -> bool:
        """Say whether such a fault hits this request."""
        fault = self.find(kind, replica)
        return fault is not None and self._chance.random() < fault.share

    def changes_in_s(self) -> float:
        """Return in how many seconds a fault begins or ends next."""
        return self._changes_s[0] - self._loop.time() + _JUST_AFTER_S if self._changes_s else math.inf

    def _change(self, change: Callable[[Fault], None], fault: Fault) -> None:
        self._changes_s.popleft()
        change(fault)


class WeatherOf:
    """The faults that one replica has now."""

    def __init__(self, weather: Weather, replica: int) -> None:
        self._replica = replica
        self._weather = weather
        self.changes_in_s = weather.changes_in_s

    def is_on(self, kind: str) -> bool:
        """Say whether there is such a fault."""
        return self._weather.find(kind, self._replica) is not None

    def hits(self, kind: str) -> bool:
        """Say whether such a fault hits this request."""
        return self._weather.hits(kind, self._replica)


class Link:
    """A Transport of one scheduler process.

    Args:
        api: the server.
        identity: of the process.
        weather: the faults.
        chance: latencies.
        on_write: is told of writes as they are sent.
        traffic: counts.
        bookmark_s: how long a watch is quiet until a bookmark comes.
    """

    def __init__(
        self,
        api: ModelApi,
        identity: str,
        weather: WeatherOf,
        chance: random.Random,
        on_write: Sent,
        traffic: Traffic,
        bookmark_s: float = _BOOKMARK_S,
    ) -> None:
        self._api = api
        self._identity = identity
        self._weather = weather
        self._chance = chance
        self._on_write = on_write
        self._traffic = traffic
        self._bookmark_s = bookmark_s
        self._loop = asyncio.get_running_loop()

    async def request(self, method, path, *, body=None, content_type=JSON, accept=JSON, timeout_s):
        if self._weather.is_on("down"):
            await asyncio.sleep(self._latency_s())
            raise TransportError("connection refused", sent=False, refused=True)
        is_write = method != "GET"
        self._traffic.sent(self._loop.time(), method, path)
        if is_write:
            self._on_write(self._identity, method, path)
        answered: asyncio.Future[Response] = self._loop.create_future()
        if not self._is_lost(is_write):
            self._later(
                self._arrive, answered, method, path, body, content_type, self._api.uid_of(path) if is_write else ""
            )
        give_up = self._loop.call_later(timeout_s, self._give_up, answered, timeout_s)
        try:
            return await answered
        finally:
            give_up.cancel()

    def _is_lost(self, is_write: bool) -> bool:
        if self._weather.is_on("blackhole"):
            return True
        return is_write and self._weather.hits("lost_request")

    def _arrive(
        self,
        answered: asyncio.Future[Response],
        method: str,
        path: str,
        body: bytes | None,
        kind: str,
        meant_uid: str,
    ) -> None:
        if answered.done():
            return  # the sender has closed the connection: what was still on its way is lost
        response = self._refusal() if method != "GET" else None
        if response is None:
            response = self._api.answer(method, path, body, kind, requester=self._identity, meant_uid=meant_uid)
            if method != "GET" and self._weather.hits("lost_answer"):
                return
            if path.endswith("/binding") and self._weather.hits("false_conflict"):
                response = _as_response(conflict("pods/binding", "pod", "somebody in the middle says so"))
        self._later(self._come_back, answered, response)

    def _later(self, step: Callable[..., None], *arguments: object) -> None:
        """Let a step of the network happen; it is no part of the sender's process."""
        self._loop.call_later(self._latency_s(), step, *arguments, context=_NOBODYS)

    @staticmethod
    def _come_back(answered: asyncio.Future[Response], response: Response) -> None:
        if not answered.done():
            answered.set_result(response)

    @staticmethod
    def _give_up(answered: asyncio.Future[Response], after_s: float) -> None:
        if not answered.done():
            answered.set_exception(TransportError(f"no answer within {after_s} s", sent=True))

    def _refusal(self) -> Response | None:
        if not self._weather.hits("refused"):
            return None
        status = self._chance.choice((500, 503, 429))
        refusal = (
            ApiStatusError(status, "TooManyRequests", "too many", details={}) if status == 429 else internal("sorry")
        )
        headers = {"retry-after": "1"} if status == 429 else {}
        return Response(status, headers, encode_json(refusal.body()))

    def _latency_s(self) -> float:
        slow = self._weather.hits("slow")
        return self._chance.uniform(*(_SLOW_S if slow else _LATENCY_S))

    # --- watches -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stream(self, path: str, *, connect_timeout_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        if self._weather.is_on("down"):
            await asyncio.sleep(self._latency_s())
            raise TransportError("connection refused", sent=False, refused=True)
        if self._weather.is_on("blackhole"):
            await asyncio.sleep(connect_timeout_s)
            raise TransportError("no answer", sent=True)
        await asyncio.sleep(self._latency_s())
        try:
            watcher, lifetime_s = self._api.watch(path)
        except ApiStatusError as error:
            refusal = _as_response(error)
            raise api_error(refusal.status, refusal.headers, refusal.body) from None
        end = None if lifetime_s is None else self._loop.call_later(lifetime_s, watcher.close, context=_NOBODYS)
        try:
            yield self._chunks(watcher)
        finally:
            self._api.unwatch(path, watcher)
            if end is not None:
                end.cancel()

    async def _chunks(self, watcher: Watcher) -> AsyncIterator[bytes]:
        opened_s = self._loop.time()
        while True:
            chunk = await self._next_chunk(watcher)
            is_over = not chunk and watcher.is_closed
            chunk = chunk or self._api.bookmark(watcher)  # of this moment, however late it comes
            if self._weather.is_on("down"):
                raise TransportError("connection reset", sent=True)
            if self._weather.is_on("blackhole"):
                await asyncio.Event().wait()  # what was sent is gone, and nobody says so
            if self._weather.is_on("late"):
                await asyncio.sleep(self._chance.uniform(*_LATE_S))
            if self._weather.is_on("cut") and self._loop.time() - opened_s > _CUT_AFTER_S:
                yield chunk[: len(chunk) // 2]
                raise TransportError("connection reset", sent=True)
            if self._weather.hits("expired"):
                yield error_line(expired("too old resource version"))
                return
            chunk = self._garbled(chunk, watcher.resource)
            if is_over:
                return
            self._traffic.lines += chunk.count(b"\n")
            if self._weather.is_on("pieces"):
                yield chunk[: len(chunk) // 2]
                chunk = chunk[len(chunk) // 2 :]
            yield chunk

    async def _next_chunk(self, watcher: Watcher) -> bytes:
        """Wait for lines, but look up when the weather changes, and for bookmarks."""
        is_cut = self._weather.is_on("cut")
        return await watcher.next_chunk(_CUT_AFTER_S if is_cut else min(self._weather.changes_in_s(), self._bookmark_s))

    def _garbled(self, chunk: bytes, resource: Resource) -> bytes:
        """Return lines as the present faults make them."""
        if resource.plural in {"pods", "nodes"} and self._weather.is_on(LOST_LINE):
            chunk = b"".join(line for line in chunk.splitlines(keepends=True) if not self._weather.hits(LOST_LINE))
        if self._weather.is_on("repeated"):
            chunk = b"".join(line + line for line in chunk.splitlines(keepends=True))
        if self._weather.is_on("swapped"):
            chunk = swapped(chunk)
        if self._weather.is_on("merged"):
            chunk = merged(chunk)
        return chunk

    async def close(self) -> None:
        """Nothing is kept open."""


def _as_response(error: ApiStatusError) -> Response:
    return Response(error.code, {}, encode_json(error.body()))
