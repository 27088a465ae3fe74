"""HttpTransport: the daemon's way to the API server, HTTP/1.1 on the loop's own sockets.

Everything happens on the loop of the caller, without a thread and without a task a request, because each bind waits
for it: a request to a warm connection is one write, and its answer one call back. (Design record 0011 has the figures.)

At most 128 requests are in flight, each on a connection of its own; watches have theirs, without a bound, so that
streams never take a bind's place. A changed certificate makes new connections; running streams keep theirs until they
end.

A 401 is answered by getting a new token and sending once more, which is safe: the request was not carried out.
Nothing else is ever sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from scheduler import __version__
from scheduler.kube.boottime import boottime_s
from scheduler.kube.client_tls import client_context
from scheduler.kube.connection import (
    CONNECT_TIMEOUT_S,
    BodyStream,
    Connection,
    ConnectionBrokenError,
    Endpoint,
    connect,
)
from scheduler.kube.credentials import Credentials, TlsMaterial
from scheduler.kube.errors import ApiError, CredentialsError, TransportError, api_error, cut
from scheduler.kube.http1 import is_request_target, request_bytes
from scheduler.kube.pool import Pool
from scheduler.kube.rate_limit import TokenBucket
from scheduler.kube.transport import JSON, RequestObserver, Response
from scheduler.telemetry.logging import get_logger

__all__ = ["POOL_SIZE", "USER_AGENT", "HttpTransport"]

USER_AGENT = f"podium/{__version__} (scheduler)"
POOL_SIZE = 128

NO_LONGER_ALLOWED = "the lease ended while the request waited for a connection"

_ERROR_BODY_TIMEOUT_S = 5.0
_MAX_ERROR_BODY_BYTES = 1 << 20
_NO_CODE = "<error>"

_log = get_logger(__name__)


def _always() -> bool:
    return True


class HttpTransport:
    """A Transport to the server of ``credentials``. All methods belong to one event loop.

    Args:
        credentials: server and identity, looked at before every request.
        user_agent: of all requests.
        extra_fields: further header lines of all requests, each with its end (see ``kube.impersonation``).
        pool_size: requests in flight; further ones wait inside their time limit.
        limiter: our own rate limit (``qps``/``burst``), or None.
        observe: told of every request.
        may_change: asked just before a request that changes something is handed to its connection.
        monotonic: measures durations; by default it counts the time for which the machine was suspended, so that
            nothing is sent afterwards whose time was over.

    Raises:
        CredentialsError: the server's address or the TLS material cannot be used.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str = USER_AGENT,
        extra_fields: str = "",
        pool_size: int = POOL_SIZE,
        limiter: TokenBucket | None = None,
        observe: RequestObserver | None = None,
        may_change: Callable[[], bool] = _always,
        monotonic: Callable[[], float] = boottime_s,
    ) -> None:
        self._credentials = credentials
        self._pool_size = pool_size
        self._limiter = limiter
        self._observe = observe
        self._may_change = may_change
        self._monotonic = monotonic
        url = urlsplit(credentials.server)
        self._host, self._base_path = url.netloc.rpartition("@")[2], url.path.rstrip("/")
        address = self._host + self._base_path
        if not is_request_target(address):
            raise CredentialsError(f"the server's address cannot be used: {cut(ascii(address))} is not plain ASCII")
        self._common = f"Host: {self._host}\r\nUser-Agent: {user_agent}\r\n{extra_fields}{_accepting(JSON)}"
        self._fields = self._common
        self._token: str | None = None
        self._tls = credentials.tls()
        self._endpoint = self._make_endpoint(self._tls)
        self._pool = Pool(self._endpoint, pool_size, monotonic=monotonic)

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
        deadline_s = self._monotonic() + timeout_s
        waited_s = 0.0 if self._limiter is None else await self._wait_for_turn(timeout_s)
        started_s, code, received_bytes = self._monotonic(), _NO_CODE, None
        try:
            token = self._credentials.token()
            data = self._request(method, path, body, content_type, accept)
            response = await self._send(method, data, deadline_s)
            if response.status == 401 and await self._has_new_identity(token, deadline_s):
                data = self._request(method, path, body, content_type, accept)
                response = await self._send(method, data, deadline_s)
            code, received_bytes = str(response.status), len(response.body)
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
        status, body = await self._open(path, connect_timeout_s, waited_s)
        try:
            if status == 401 and await self._has_new_identity(token, self._monotonic() + connect_timeout_s):
                body.close()
                status, body = await self._open(path, connect_timeout_s)
            if status != 200:
                raise await _stream_refusal(body)
            yield _Chunks(body)
        finally:
            body.close()

    async def close(self) -> None:
        self._pool.close()

    async def _wait_for_turn(self, timeout_s: float) -> float:
        """Wait for our own rate limit; the wait counts against the time limit, which a lease may stand behind."""
        if self._limiter is None:
            return 0.0
        waited_s = await self._limiter.take(timeout_s)
        if waited_s is None:
            raise TransportError(f"no turn within {timeout_s:g} s under our own rate limit (qps)", sent=False)
        return waited_s

    # --- one request -------------------------------------------------------------------------------------------------

    async def _send(self, method: str, data: bytes, deadline_s: float) -> Response:
        pool = self._current_pool()
        connection = pool.take_idle()
        if connection is None:
            connection = await self._connected(pool, deadline_s - self._monotonic())
        left_s = deadline_s - self._monotonic()
        problem = ""
        if left_s <= 0.0:  # the connection came in the last moment
            problem = "no connection in time"
        elif method != "GET" and not self._may_change():  # the lease may have ended during the wait
            problem = NO_LONGER_ALLOWED
        if problem:
            pool.put_back(connection)
            raise TransportError(f"{self._host}: {problem}", sent=False)
        timer = asyncio.get_running_loop().call_later(left_s, connection.give_up, "no answer in time")
        try:
            return await connection.request(data)
        except ConnectionBrokenError as error:
            raise TransportError(cut(f"{method} {self._host}: {error}"), sent=True) from None
        finally:
            timer.cancel()
            pool.put_back(connection)

    async def _connected(self, pool: Pool, timeout_s: float) -> Connection:
        """Wait for a place in the pool and connect; nothing of the request has left as long as that lasts."""
        try:
            async with asyncio.timeout(timeout_s):
                return await pool.take()
        except (OSError, UnicodeError) as error:
            raise self._unconnected(error) from error

    def _unconnected(self, error: Exception) -> TransportError:
        refused = isinstance(error, ConnectionRefusedError)
        if not refused:
            self._credentials.recheck()  # perhaps a handshake failed because certificates were replaced
        what = "no connection in time" if isinstance(error, TimeoutError) else f"no connection: {error}"
        return TransportError(cut(f"{self._host}: {what}"), sent=False, refused=refused)

    def _request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON, accept: str = JSON
    ) -> bytes:
        if not is_request_target(path):
            raise TransportError(f"not a path: {cut(ascii(path))}", sent=False)
        token = self._credentials.token()
        if token is not self._token:
            self._fields = self._common + (f"Authorization: Bearer {_header_value(token)}\r\n" if token else "")
            self._token = token
        fields = self._fields if accept == JSON else self._fields.replace(_accepting(JSON), _accepting(accept))
        return request_bytes(method, self._base_path + path, fields, body, content_type)

    async def _has_new_identity(self, used_token: str | None, deadline_s: float) -> bool:
        """Renew the identity, unless another request has done so already, and tell whether there is one in time."""
        if self._credentials.token() == used_token:
            try:
                async with asyncio.timeout(deadline_s - self._monotonic()):
                    await self._credentials.renew()
            except TimeoutError:
                return False  # a program that gives out tokens may take its time
        has_changed = self._credentials.token() != used_token or self._credentials.tls() is not self._tls
        return has_changed and self._monotonic() < deadline_s

    # --- one stream --------------------------------------------------------------------------------------------------

    async def _open(self, path: str, connect_timeout_s: float, waited_s: float = 0.0) -> tuple[int, BodyStream]:
        started_s, code = self._monotonic(), _NO_CODE
        body: BodyStream | None = None
        data = self._request("GET", path)
        try:
            async with asyncio.timeout(connect_timeout_s):
                body = (await self._connected_for_stream()).open(data)
                status = (await body.answered()).status
            code = str(status)
        except ConnectionBrokenError as error:
            raise TransportError(cut(f"GET {self._host}: {error}"), sent=True) from None
        except TimeoutError as error:
            raise TransportError(f"no answer within {connect_timeout_s:g} s", sent=True) from error
        finally:
            if code == _NO_CODE and body is not None:
                body.close()
            if self._observe is not None:
                duration_s = self._monotonic() - started_s
                self._observe("GET", self._host, code, duration_s, waited_s=waited_s, sent_bytes=0, received_bytes=None)
        return status, body

    async def _connected_for_stream(self) -> Connection:
        self._current_pool()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await connect(self._endpoint)
        except (OSError, UnicodeError) as error:
            raise self._unconnected(error) from error

    # --- where to ----------------------------------------------------------------------------------------------------

    def _current_pool(self) -> Pool:
        tls = self._credentials.tls()
        if tls is not self._tls:
            self._replace_pool(tls)
        return self._pool

    def _replace_pool(self, tls: TlsMaterial) -> None:
        try:
            endpoint = self._make_endpoint(tls)
        except CredentialsError as error:
            # Certificate and key are replaced one after the other; the next change brings us here again.
            _log.warning("kept the old tls settings", error=str(error))
        else:
            self._pool.close()
            self._endpoint = endpoint
            self._pool = Pool(endpoint, self._pool_size, monotonic=self._monotonic)
            _log.info("replaced the tls settings")
        self._tls = tls

    def _make_endpoint(self, tls: TlsMaterial) -> Endpoint:
        url = urlsplit(self._credentials.server)
        is_tls = url.scheme == "https"
        try:
            port = url.port or (443 if is_tls else 80)
        except ValueError as error:
            raise CredentialsError(f"the server's address cannot be used: {error}") from None
        context = client_context(tls) if is_tls else None
        return Endpoint(url.hostname or "", port, context, tls.server_name or "")


class _Chunks:
    """The body of a stream, piece by piece; an object instead of a generator, so that breaking out leaves nothing."""

    __slots__ = ("_body",)

    def __init__(self, body: BodyStream) -> None:
        self._body = body

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._body.__anext__()
        except ConnectionBrokenError as error:
            raise TransportError(cut(str(error)), sent=True) from None


async def _stream_refusal(body: BodyStream) -> ApiError:
    parser = await body.answered()
    text = b""
    try:
        async with asyncio.timeout(_ERROR_BODY_TIMEOUT_S):
            async for piece in body:
                text += piece
                if len(text) > _MAX_ERROR_BODY_BYTES:
                    break
    except (ConnectionBrokenError, TimeoutError):
        pass  # the status alone says no
    return api_error(parser.status, parser.headers, text)


def _accepting(media_types: str) -> str:
    return f"Accept: {media_types}\r\n"


def _header_value(token: str) -> str:
    if not (token.isascii() and token.isprintable()):
        raise CredentialsError("the bearer token is not a line of printable ASCII")
    return token
