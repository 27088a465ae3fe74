"""PyreqwestTransport: the daemon's way to the API server, HTTP/1.1 through a Rust client.

Chosen by measurement: it costs a third of the CPU of the alternatives for each bind. Two pools: one for requests, with
at most 128 in flight, and one without a bound for watches, so that streams never take a bind's place.

A changed certificate makes new clients; running streams keep theirs until they end. What the library has to be told is
in ``rust_client``.

A 401 is answered by getting a new token and sending once more, which is safe: the request was not carried out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import lru_cache
from urllib.parse import urlsplit

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.request import RequestBuilder, StreamRequest
from pyreqwest.response import Response as RustResponse
from pyreqwest.response import ResponseBodyReader

from scheduler import __version__
from scheduler.kube.credentials import Credentials, TlsMaterial
from scheduler.kube.errors import ApiError, CredentialsError, TransportError, api_error
from scheduler.kube.rate_limit import TokenBucket
from scheduler.kube.rust_client import (
    CONNECT_TIMEOUT_S,
    base_url,
    configured,
    error_text,
    heeding_cancel,
    was_refused,
    was_sent,
)
from scheduler.kube.transport import JSON, RequestObserver, Response
from scheduler.telemetry.logging import get_logger

__all__ = ["CONNECT_TIMEOUT_S", "POOL_SIZE", "USER_AGENT", "PyreqwestTransport"]

USER_AGENT = f"podium/{__version__} (scheduler)"
POOL_SIZE = 128

_ERROR_BODY_TIMEOUT_S = 5.0
_NO_CODE = "<error>"

_log = get_logger(__name__)


class PyreqwestTransport:
    """A Transport to the server of ``credentials``. All methods belong to one event loop.

    Args:
        credentials: server and identity, looked at before every request.
        user_agent: of all requests.
        pool_size: requests in flight; further ones wait inside their time limit.
        limiter: our own rate limit (``qps``/``burst``), or None.
        observe: told of every request.
        monotonic: measures durations.

    Raises:
        CredentialsError: the TLS material cannot be used.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str = USER_AGENT,
        pool_size: int = POOL_SIZE,
        limiter: TokenBucket | None = None,
        observe: RequestObserver | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._pool_size = pool_size
        self._limiter = limiter
        self._observe = observe
        self._monotonic = monotonic
        self._host = urlsplit(credentials.server).netloc
        self._tls = credentials.tls()
        self._token: str | None = None
        self._authorization = ""
        self._requests, self._streams = self._build_clients(self._tls)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout_s: float,
    ) -> Response:
        waited_s = await self._wait_for_turn(timeout_s)
        timeout_s -= waited_s
        started_s, code, received_bytes = self._monotonic(), _NO_CODE, None
        try:
            token = self._credentials.token()
            response = await self._send(method, path, body, content_type, timeout_s)
            if response.status == 401 and await self._has_new_identity(token):
                response = await self._send(method, path, body, content_type, timeout_s)
            code, received_bytes = str(response.status), len(response.body)
        except PyreqwestError as error:
            raise self._failed(error) from error
        finally:
            if self._observe is not None:
                self._observe(
                    method,
                    self._host,
                    code,
                    self._monotonic() - started_s,
                    waited_s=waited_s,
                    sent_bytes=len(body) if body is not None else 0,
                    received_bytes=received_bytes,
                )
        return response

    @asynccontextmanager
    async def stream(self, path: str, *, connect_timeout_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        waited_s = await self._wait_for_turn(connect_timeout_s)
        token = self._credentials.token()
        request, response = await self._open(path, connect_timeout_s, waited_s)
        if response.status == 401 and await self._has_new_identity(token):
            await request.__aexit__(None, None, None)
            request, response = await self._open(path, connect_timeout_s)
        try:
            if response.status != 200:
                raise await _stream_refusal(response)
            yield _Chunks(response.body_reader)
        finally:
            await request.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._requests.close()
        await self._streams.close()

    async def _wait_for_turn(self, timeout_s: float) -> float:
        """Wait for our own rate limit; the wait counts against the time limit, which a lease may stand behind."""
        if self._limiter is None:
            return 0.0
        waited_s = await self._limiter.take(timeout_s)
        if waited_s is None:
            raise TransportError(f"no turn within {timeout_s:g} s under our own rate limit (qps)", sent=False)
        return waited_s

    async def _send(self, method: str, path: str, body: bytes | None, content_type: str, timeout_s: float) -> Response:
        client, _ = self._clients()
        builder = self._authorized(client.request(method, self._url(path))).timeout(_timedelta(timeout_s))
        if body is not None:
            builder = builder.header("Content-Type", content_type).body_bytes(body)
        answer = await heeding_cancel(builder.build().send())
        return Response(answer.status, answer.headers, (await heeding_cancel(answer.bytes())).to_bytes())

    async def _open(
        self, path: str, connect_timeout_s: float, waited_s: float = 0.0
    ) -> tuple[StreamRequest, RustResponse]:
        _, client = self._clients()
        builder = self._authorized(client.request("GET", self._url(path)))
        request = builder.streamed_read_buffer_limit(0).build_streamed()
        started_s, code = self._monotonic(), _NO_CODE
        try:
            async with asyncio.timeout(connect_timeout_s):
                response = await heeding_cancel(request.__aenter__())
            code = str(response.status)
        except PyreqwestError as error:
            raise self._failed(error) from error
        except TimeoutError as error:
            raise TransportError(f"no answer within {connect_timeout_s:g} s", sent=True) from error
        finally:
            if self._observe is not None:
                duration_s = self._monotonic() - started_s
                self._observe("GET", self._host, code, duration_s, waited_s=waited_s, sent_bytes=0, received_bytes=None)
        return request, response

    def _url(self, path: str) -> str:
        return f"{self._base}{path}"

    def _authorized(self, builder: RequestBuilder) -> RequestBuilder:
        token = self._credentials.token()
        if token is None:
            return builder
        if token is not self._token:
            self._token, self._authorization = token, f"Bearer {token}"
        return builder.header("Authorization", self._authorization, is_sensitive=True)

    async def _has_new_identity(self, used_token: str | None) -> bool:
        """Renew the identity, unless another request has done so already, and tell whether it changed."""
        if self._credentials.token() == used_token:
            await self._credentials.renew()
        return self._credentials.token() != used_token or self._credentials.tls() is not self._tls

    def _failed(self, error: PyreqwestError) -> TransportError:
        failure = _transport_error(error)
        if not failure.sent and not failure.refused:
            self._credentials.recheck()  # perhaps a handshake failed because certificates were replaced
        return failure

    def _clients(self) -> tuple[Client, Client]:
        tls = self._credentials.tls()
        if tls is not self._tls:
            self._replace_clients(tls)
        return self._requests, self._streams

    def _replace_clients(self, tls: TlsMaterial) -> None:
        try:
            clients = self._build_clients(tls)
        except CredentialsError as error:
            # Certificate and key are replaced one after the other; the next change brings us here again.
            _log.warning("kept the old tls settings", error=str(error))
        else:
            self._requests, self._streams = clients
            _log.info("replaced the tls settings")
        self._tls = tls

    def _build_clients(self, tls: TlsMaterial) -> tuple[Client, Client]:
        self._base, resolve = base_url(self._credentials.server, tls.server_name)
        try:
            builders = [configured(ClientBuilder(), self._user_agent, tls, resolve) for _ in range(2)]
            requests = builders[0].max_connections(self._pool_size).pool_max_idle_per_host(self._pool_size)
            return requests.build(), builders[1].build()
        except (PyreqwestError, ValueError) as error:
            raise CredentialsError(f"certificates for {self._host} cannot be used: {error_text(error)}") from None


class _Chunks:
    """The body of a stream, piece by piece; an object instead of a generator, so that breaking out leaves nothing."""

    __slots__ = ("_reader",)

    def __init__(self, reader: ResponseBodyReader) -> None:
        self._reader = reader

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await heeding_cancel(self._reader.read_chunk())
        except PyreqwestError as error:
            raise _transport_error(error) from error
        if chunk is None:
            raise StopAsyncIteration
        return chunk.to_bytes()


def _transport_error(error: PyreqwestError) -> TransportError:
    return TransportError(error_text(error), sent=was_sent(error), refused=was_refused(error))


async def _stream_refusal(response: RustResponse) -> ApiError:
    body = b""
    try:
        async with asyncio.timeout(_ERROR_BODY_TIMEOUT_S):
            body = (await heeding_cancel(response.bytes())).to_bytes()
    except (PyreqwestError, TimeoutError):
        pass  # the status alone says no
    return api_error(response.status, response.headers, body)


@lru_cache(maxsize=64)
def _timedelta(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)
