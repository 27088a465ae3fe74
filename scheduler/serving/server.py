"""The HTTPS server: listens, limits, finds out who is calling and whether they may, then hands over to a route.

Order of a request (parity: kube-scheduler's handler chain)::

    headers too large ▶ 431 · credentials wrong ▶ 401 · not allowed ▶ 403 · review failed ▶ 500
    · unknown path ▶ 404 · other method ▶ 405 · body too large ▶ 413 · else the route

Limits: 100 connections (``connections`` says who gives way), 10 s for a handshake, for a request to arrive, for a pause
between requests and for an answer to be taken, 16 KiB of headers, 1 MiB of body, 30 s for making an answer.

Everything runs on the service thread's loop; routes must not block it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
from aiohttp import web
from aiohttp.web_request import BaseRequest

from scheduler.kube.reviews import NonResource, Resource, ReviewUnavailableError, User
from scheduler.serving.authn import Authenticator, UnauthorizedError
from scheduler.serving.authz import Authorizer
from scheduler.serving.connections import DEFAULT_LIMITS, Connection, Connections, Limits
from scheduler.serving.options import ServingError, ServingOptions
from scheduler.serving.tls import ServingTls
from scheduler.telemetry.logging import get_logger

__all__ = [
    "HttpsServer",
    "Request",
    "Route",
    "json_answer",
    "text_answer",
]

_TEXT = "text/plain; charset=utf-8"
_REST_S = 1.0
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """What a route sees.

    Attributes:
        method: in capitals.
        path: without query.
        query: name → values.
        accept: the Accept header.
        user: who is calling.
        body: at most 1 MiB.
    """

    method: str
    path: str
    query: Mapping[str, list[str]]
    accept: str
    user: User
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Route:
    """What a path does.

    Attributes:
        handler: makes the answer.
        methods: those it takes.
        attributes: what to ask the API server about instead of the path, for answers about objects of the cluster.
    """

    handler: Callable[[Request], Awaitable[web.Response]]
    methods: frozenset[str] = frozenset({"GET", "HEAD"})
    attributes: Callable[[Request], Resource] | None = None


def text_answer(text: str | bytes, status: int = 200, content_type: str = _TEXT) -> web.Response:
    """Return a plain answer."""
    body = text.encode() if isinstance(text, str) else text
    headers = {"Content-Type": content_type, "X-Content-Type-Options": "nosniff"}
    return web.Response(body=body, status=status, headers=headers)


def json_answer(body: bytes, status: int = 200) -> web.Response:
    """Return JSON that is encoded already."""
    return web.Response(body=body, status=status, headers={"Content-Type": "application/json"})


def _status(code: HTTPStatus, message: str) -> web.Response:
    """Return a Kubernetes ``Status``."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": code.phrase.replace(" ", ""),
        "code": int(code),
    }
    return json_answer(msgspec.json.encode(body), code)


class HttpsServer:
    """One listening socket.

    Args:
        options: address and port.
        tls: certificates.
        authenticator: who is calling.
        authorizer: may they.
        routes: exact path → route.
        limits: what callers may take.
    """

    def __init__(
        self,
        options: ServingOptions,
        tls: ServingTls,
        authenticator: Authenticator,
        authorizer: Authorizer,
        routes: Mapping[str, Route],
        *,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._options = options
        self._tls = tls
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._routes = dict(routes)
        self._limits = limits
        self._connections: Connections | None = None

    @property
    def paths(self) -> list[str]:
        """Return the served paths, sorted."""
        return sorted(self._routes)

    @property
    def port(self) -> int:
        """Return the port that is listened on; 0 before ``start``."""
        return self._connections.port if self._connections is not None else 0

    def add(self, path: str, route: Route) -> None:
        """Serve one more path; allowed while running.

        Raises:
            ValueError: the path is taken.
        """
        if path in self._routes:
            msg = f"path {path} is served already"
            raise ValueError(msg)
        self._routes[path] = route

    async def start(self, sock: socket.socket | None = None) -> None:
        """Listen, on ``sock`` if given (tests), else on the address of the options.

        Raises:
            ServingError: the address cannot be had.
        """
        connections = Connections(self._handle, self._tls.context, self._limits)
        try:
            connections.start(_bound(self._options) if sock is None else sock)
        except OSError as error:
            msg = f"cannot listen on {self._options.bind_address}:{self._options.port}: {error}"
            raise ServingError(msg) from error
        self._connections = connections
        _log.info("serving securely", address=self._options.bind_address, port=self.port)

    async def stop(self) -> None:
        """Stop listening, let running answers end for at most 5 s, close all connections."""
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.stop()
            _log.info("secure server has stopped listening")

    # --- one request -------------------------------------------------------------------------------------------------

    async def _handle(self, request: BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        try:
            return await self._answered(request, connection)
        except ConnectionError:  # the caller has gone
            connection.end()
            return web.Response()
        finally:
            connection.answered()

    async def _answered(self, request: BaseRequest, connection: Connection) -> web.StreamResponse:
        try:
            async with asyncio.timeout(self._limits.answer_s):
                answer = await self._answer(request, connection)
        except TimeoutError:
            answer = _status(HTTPStatus.GATEWAY_TIMEOUT, f"no answer within {self._limits.answer_s:.0f} s")
        finally:
            connection.is_safe = False
        answer.headers["Cache-Control"] = "no-cache, private"
        answer.headers["Server"] = "podium"
        try:
            async with asyncio.timeout(self._limits.read_s):
                await answer.prepare(request)
                await answer.write_eof()
        except TimeoutError:  # who asks and does not read
            connection.end()
        else:
            await _ignore_the_rest(request)
        return answer

    async def _answer(self, request: BaseRequest, connection: Connection) -> web.Response:
        if sum(len(name) + len(value) for name, value in request.raw_headers) > self._limits.header_bytes:
            return _status(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "request headers are too large")
        try:
            user = await self._authenticator.user_of(_certificate(request), request.headers)
        except UnauthorizedError as error:
            _log.warning("request was not authenticated", path=request.path, err=str(error))
            return _last(_status(HTTPStatus.UNAUTHORIZED, "Unauthorized"))
        seen = _seen(request, user)
        route = self._routes.get(request.path)
        refusal = await self._refusal(seen, route)
        if refusal is not None:
            return _last(refusal)
        if route is None:
            return text_answer("404 page not found\n", 404)
        if request.method not in route.methods:
            return text_answer("405 method not allowed\n", 405)
        connection.is_safe = True
        return await self._run(request, seen, route)

    async def _refusal(self, seen: Request, route: Route | None) -> web.Response | None:
        is_resource = route is not None and route.attributes is not None
        attributes: NonResource | Resource = NonResource(seen.path, seen.method.lower())
        if is_resource:
            assert route is not None
            assert route.attributes is not None
            attributes = route.attributes(seen)
        try:
            access = await self._authorizer.access(seen.user, attributes)
        except ReviewUnavailableError as error:
            _log.warning("request was not authorized", path=seen.path, err=str(error))
            return text_answer(f'Internal Server Error: "{seen.path}": authorization is not available\n', 500)
        if access.is_allowed:
            return None
        what = f'path "{seen.path}"' if isinstance(attributes, NonResource) else _described(attributes)
        message = f'forbidden: User "{seen.user.name}" cannot {attributes.verb} {what}'
        return _status(HTTPStatus.FORBIDDEN, f"{message}: {access.reason}" if access.reason else message)

    async def _run(self, request: BaseRequest, seen: Request, route: Route) -> web.Response:
        if not request.body_exists:
            return await route.handler(seen)
        try:
            body = await _body(request, self._limits)
        except web.RequestPayloadError:
            return text_answer("request body could not be read\n", 400)
        if body is None:
            return text_answer("request body is too large or came too slowly\n", 413)
        return await route.handler(_seen(request, seen.user, body))


def _last(answer: web.Response) -> web.Response:
    """Return the answer as the last one of its connection.

    A client's certificate is asked for while hands are shaken only, and only if an authority is known by then. Who
    connected before it was known would else stay a stranger for as long as the connection lives.
    """
    answer.force_close()
    return answer


def _seen(request: BaseRequest, user: User, body: bytes = b"") -> Request:
    query: dict[str, list[str]] = {}
    for name, value in request.query.items():
        query.setdefault(name, []).append(value)
    return Request(request.method, request.path, query, request.headers.get("Accept", ""), user, body)


def _certificate(request: BaseRequest) -> bytes | None:
    connection: ssl.SSLObject | None = request.get_extra_info("ssl_object")
    return connection.getpeercert(binary_form=True) if connection is not None else None


def _described(attributes: Resource) -> str:
    where = f' in the namespace "{attributes.namespace}"' if attributes.namespace else ""
    return f'resource "{attributes.resource}" in API group "{attributes.group}"{where}'


async def _body(request: BaseRequest, limits: Limits) -> bytes | None:
    """Return the whole body, or None if it is too large or takes too long."""
    data = bytearray()
    try:
        async with asyncio.timeout(limits.read_s):
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > limits.body_bytes:
                    return None
    except TimeoutError:
        return None
    return bytes(data)


async def _ignore_the_rest(request: BaseRequest) -> None:
    """Read what is left of a body for a moment: closing at once could lose the answer on its way."""
    with contextlib.suppress(TimeoutError, ConnectionError, web.RequestPayloadError):
        async with asyncio.timeout(_REST_S):
            async for _ in request.content.iter_any():
                pass


def _bound(options: ServingOptions) -> socket.socket:
    """Return a socket on the address; ``::`` takes IPv4 too (parity: Go's listeners)."""
    is_v6 = ":" in options.bind_address
    return socket.create_server(
        (options.bind_address, options.port),
        family=socket.AF_INET6 if is_v6 else socket.AF_INET,
        reuse_port=options.reuse_port,
        dualstack_ipv6=is_v6 and options.bind_address == "::" and socket.has_dualstack_ipv6(),
    )
