"""A Transport that tells "not allowed" from "cannot say yet".

An API server that has just started serves requests before it has read its RBAC objects, and refuses all of them with
403. Taken at its word, that would put pods into a long back-off and kinds out of use, just when the outage is over. So
for a while after a connection failed, a 403 is believed only if the server calls itself ready; before that it is handed
on as the 503 that it means. ``/readyz`` is open to everyone and says so only once the authoriser has its rules.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from scheduler.kube.errors import ApiError, KubeError, TransportError
from scheduler.kube.transport import JSON, Response, Transport
from scheduler.telemetry.logging import get_logger

__all__ = ["DOUBT_S", "STARTING", "PatientTransport"]

DOUBT_S = 60.0
"""For so long after the last failed connection (or our own start) the server may still be starting."""

STARTING = "the API server is starting and cannot tell yet what is allowed"

_log = get_logger(__name__)

_READY_PATH = "/readyz"
_READY_TIMEOUT_S = 2.0
_REUSE_S = 0.2
_RETRY_AFTER_S = 1
_BODY = msgspec.json.encode({"kind": "Status", "reason": "ServiceUnavailable", "message": STARTING})


class PatientTransport:
    """Wraps a Transport; see the module. All methods belong to one event loop.

    Args:
        inner: does the work.
        monotonic: measures how long ago the server was lost.
    """

    def __init__(self, inner: Transport, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._inner = inner
        self._monotonic = monotonic
        self._doubt_until_s = monotonic() + DOUBT_S
        self._asking: asyncio.Task[bool] | None = None
        self._asked_s = 0.0
        self._has_said = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_s: float,
    ) -> Response:
        try:
            response = await self._inner.request(
                method, path, body=body, content_type=content_type, accept=accept, timeout_s=timeout_s
            )
        except TransportError:
            self._note_lost()
            raise
        if response.status == 403 and await self._is_starting():
            return Response(503, {"retry-after": str(_RETRY_AFTER_S)}, _BODY)
        return response

    @asynccontextmanager
    async def stream(self, path: str, *, connect_timeout_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            async with self._inner.stream(path, connect_timeout_s=connect_timeout_s) as chunks:
                yield chunks
        except TransportError:
            self._note_lost()
            raise
        except ApiError as error:
            if error.status == 403 and await self._is_starting():
                raise ApiError(503, "ServiceUnavailable", STARTING, float(_RETRY_AFTER_S)) from error
            raise

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
        await self._inner.close()

    def _note_lost(self) -> None:
        self._has_said = False
        self._doubt_until_s = self._monotonic() + DOUBT_S

    async def _is_starting(self) -> bool:
        now_s = self._monotonic()
        if now_s >= self._doubt_until_s:
            return False
        if self._asking is None or (self._asking.done() and now_s - self._asked_s > _REUSE_S):
            # Many requests are refused at once; they share one question.
            self._asked_s = now_s
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        is_ready = await asyncio.shield(self._asking)
        if not is_ready and not self._has_said:
            self._has_said = True
            _log.info("the api server is starting", refusals="not believed until it is ready")
        return not is_ready

    async def _ask(self) -> bool:
        try:
            return (await self._inner.request("GET", _READY_PATH, timeout_s=_READY_TIMEOUT_S)).status == 200
        except KubeError:
            return False
