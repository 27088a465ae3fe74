"""HTTP over the verbs: paths to targets, bodies in and out, watch streams.

A low-level aiohttp handler without a router: one function takes every request, so that a bind costs little besides
parsing it. Failures become Status bodies here and nowhere else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import yaml
from aiohttp import web

from scheduler.testing.apiserver.binding import bind
from scheduler.testing.apiserver.deletion import DeleteOptions, delete
from scheduler.testing.apiserver.discovery import discover, version
from scheduler.testing.apiserver.events_view import from_core
from scheduler.testing.apiserver.listing import (
    ListOptions,
    encode_list,
    list_page,
    view_converter,
)
from scheduler.testing.apiserver.objects import Objects
from scheduler.testing.apiserver.patches import APPLY_PATCH, PATCH_TYPES
from scheduler.testing.apiserver.resources import BY_PATH, Resource
from scheduler.testing.apiserver.reviews import review
from scheduler.testing.apiserver.status import (
    ApiStatusError,
    Json,
    bad_request,
    expired,
    internal,
    method_not_allowed,
    success,
    unknown_path,
    unsupported_media_type,
)
from scheduler.testing.apiserver.store import Store, Stored, encode_json
from scheduler.testing.apiserver.tables import table, wants_table
from scheduler.testing.apiserver.target import Target, parse_json
from scheduler.testing.apiserver.watching import Watcher, bookmark_line, error_line

__all__ = ["HttpApi", "Route", "begin_watch", "delete_options", "parse_path"]

HEALTH_PATHS = ("/readyz", "/healthz", "/livez")
MIN_WATCH_S, MAX_WATCH_S = 1800.0, 3600.0
_JSON_TYPES = ("", "application/json", "application/octet-stream")
_YAML_TYPES = ("application/yaml",)
_MEDIA_MESSAGE = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json, application/yaml"
)


class Route(NamedTuple):
    """A parsed path below /api or /apis."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def parse_path(path: str) -> Route | None:
    """Split `/api/v1/namespaces/NS/PLURAL/NAME/SUB` and its relatives; None for paths of another form."""
    steps = path.strip("/").split("/")
    if steps[0] == "api" and len(steps) >= 3:
        group, api_version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) >= 4:
        group, api_version, rest = steps[1], steps[2], steps[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Route(group, api_version, namespace, plural, name, subresource)


class HttpApi:
    """The request handler over one set of objects."""

    def __init__(self, objects: Objects, *, bookmark_interval_s: float, now: Callable[[], Any]) -> None:
        self._objects = objects
        self._bookmark_interval_s = bookmark_interval_s
        self._now = now
        self._watchers: set[Watcher] = set()

    def close_watches(self) -> None:
        """End all streams, as a server that stops does."""
        for watcher in tuple(self._watchers):
            watcher.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            return await self._dispatch(request)
        except ApiStatusError as error:
            headers = {"Retry-After": "1"} if error.code in (429, 504) else None
            return web.Response(
                body=encode_json(error.body()),
                status=error.code,
                content_type="application/json",
                headers=headers,
            )

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        route = parse_path(path)
        if route is None:
            return self._plain(path)
        resource = BY_PATH.get((route.group, route.version, route.plural))
        if resource is None:
            return await self._unlisted(request, route)
        if resource.namespaced and not route.namespace and (route.name or request.method not in ("GET", "HEAD")):
            raise unknown_path() if route.name else method_not_allowed()
        if not resource.namespaced and route.namespace:
            raise unknown_path()
        if route.subresource and route.subresource not in resource.subresources:
            raise unknown_path()
        target = Target(resource, route.namespace, route.name, route.subresource)
        if target.name:
            return await self._object_request(request, target)
        return await self._collection_request(request, target)

    @staticmethod
    def _plain(path: str) -> web.Response:
        if path in HEALTH_PATHS:
            return web.Response(text="ok")
        document = version() if path == "/version" else discover(path)
        if document is None:
            return web.Response(text="404 page not found\n", status=404)
        return _json_response(document)

    async def _unlisted(self, request: web.BaseRequest, route: Route) -> web.Response:
        """Answer the resources without stored objects: reviews, and the old form of binding."""
        if request.method == "POST" and not route.name:
            body = await _read_object(request, "object")
            if (route.group, route.plural) == ("", "bindings"):
                name = (body.get("metadata") or {}).get("name") or ""
                pods = BY_PATH[("", "v1", "pods")]
                return self._bind(Target(pods, route.namespace, name, "binding"), body, request)
            answered = review(route.group, route.plural, body)
            if answered is not None:
                return _json_response(answered, 201)
        if discover(f"/apis/{route.group}/{route.version}" if route.group else f"/api/{route.version}") is None:
            return web.Response(text="404 page not found\n", status=404)
        raise unknown_path()

    # --- one object --------------------------------------------------------------------------------------------------

    async def _object_request(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        method = request.method
        if target.subresource == "binding":
            if method != "POST":
                raise method_not_allowed()
            return self._bind(target, await _read_object(request, "Binding"), request)
        if method in ("GET", "HEAD"):
            return self._show(request, target, self._objects.get(target))
        if method == "PUT":
            obj = await _read_object(request, target.resource.kind)
            stored, created = self._objects.update(target, obj, dry_run=_is_dry_run(request))
            return self._show(request, target, stored, 201 if created else 200)
        if method == "PATCH":
            content_type = request.content_type
            if content_type not in PATCH_TYPES:
                raise ApiStatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
            patch = await _read_patch(request, content_type)
            stored, created = self._objects.patch(target, content_type, patch, dry_run=_is_dry_run(request))
            return self._show(request, target, stored, 201 if created else 200)
        if method == "DELETE" and not target.subresource:
            result = delete(self._objects, target, await _read_delete_options(request))
            return _json_response(result) if isinstance(result, dict) else self._show(request, target, result)
        raise method_not_allowed()

    def _bind(self, target: Target, body: Json, request: web.BaseRequest) -> web.Response:
        bind(self._objects, target, body, dry_run=_is_dry_run(request))
        return web.Response(body=_BOUND, status=201, content_type="application/json")

    def _show(self, request: web.BaseRequest, target: Target, stored: Stored, code: int = 200) -> web.Response:
        resource = target.resource
        if wants_table(request.headers.get("Accept", "")):
            return _json_response(table(resource, [stored], self._now(), {}))
        if resource.view_of:
            head = {"kind": resource.kind, "apiVersion": resource.api_version}
            return _json_response({**head, **from_core(stored.data)}, code)
        return web.Response(body=stored.typed_body(resource), status=code, content_type="application/json")

    # --- collections -------------------------------------------------------------------------------------------------

    async def _collection_request(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        resource = target.resource
        if request.method == "POST":
            obj = await _read_object(request, resource.kind)
            stored = self._objects.create(target, obj, dry_run=_is_dry_run(request))
            return self._show(request, target, stored, 201)
        if request.method not in ("GET", "HEAD", "DELETE"):
            raise method_not_allowed()
        options = ListOptions.parse(resource, request.query)
        if request.method == "DELETE":
            return await self._delete_collection(request, target, options)
        if options.watch:
            return await self._watch(request, target, options)
        page = list_page(self._objects.store, target, options)
        if wants_table(request.headers.get("Accept", "")):
            metadata = {"resourceVersion": str(page.revision)}
            return _json_response(table(resource, page.items, self._now(), metadata))
        return web.Response(body=encode_list(resource, page), content_type="application/json")

    async def _delete_collection(
        self,
        request: web.BaseRequest,
        target: Target,
        options: ListOptions,
    ) -> web.StreamResponse:
        delete_options = await _read_delete_options(request)
        page = list_page(self._objects.store, target, options)
        for stored in page.items:
            metadata = stored.data["metadata"]
            each = target._replace(namespace=metadata.get("namespace", ""), name=metadata["name"])
            delete(self._objects, each, delete_options)
        return web.Response(body=encode_list(target.resource, page), content_type="application/json")

    # --- watch -------------------------------------------------------------------------------------------------------

    async def _watch(self, request: web.BaseRequest, target: Target, options: ListOptions) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        subscribers = self._objects.store.table(target.resource).subscribers
        watcher = begin_watch(self._objects.store, target, options)
        subscribers[watcher] = None
        self._watchers.add(watcher)
        try:
            await response.prepare(request)
            await self._stream(response, watcher, target.resource, options)
            await response.write_eof()
        except (ConnectionResetError, ConnectionError):
            pass  # the client went away, which is how watches end
        finally:
            subscribers.pop(watcher, None)
            self._watchers.discard(watcher)
        return response

    async def _stream(
        self,
        response: web.StreamResponse,
        watcher: Watcher,
        resource: Resource,
        options: ListOptions,
    ) -> None:
        loop = asyncio.get_running_loop()
        # chance only spreads the clients' reconnects, as the real server does
        lifetime_s = options.timeout_s or random.uniform(MIN_WATCH_S, MAX_WATCH_S)  # noqa: S311  no secret
        end = loop.time() + lifetime_s
        next_bookmark = loop.time() + self._bookmark_interval_s
        while True:
            now = loop.time()
            until = min(end, next_bookmark) if options.allow_bookmarks else end
            chunk = await watcher.next_chunk(max(0.0, until - now))
            now = loop.time()
            if options.allow_bookmarks and now >= next_bookmark and not watcher.is_closed:
                chunk += bookmark_line(resource, self._objects.store.revision)
                next_bookmark = now + self._bookmark_interval_s
            if chunk:
                await response.write(chunk)
            if now >= end or (watcher.is_closed and not chunk):
                return


def begin_watch(store: Store, target: Target, options: ListOptions) -> Watcher:
    """Return a watch with its initial events: the present objects, or the changes since the asked version.

    Raises:
        ApiStatusError: 500 a version that is no number.
    """
    asked = options.resource_version
    if asked and not asked.isdigit():  # parity: 400 for lists, a bare 500 for watches
        raise internal(
            f'resourceVersion: Invalid value: "{asked}": strconv.ParseUint: parsing "{asked}": invalid syntax'
        )
    watcher = Watcher(target.resource, target.prefix, options.matches, view_converter(target.resource))
    table_ = store.table(target.resource)
    revision = int(options.resource_version or 0)
    if revision == 0 or options.send_initial_events:
        if options.send_initial_events is not False:
            for _, stored in table_.scan(target.prefix):
                watcher.show(stored)
        if options.send_initial_events and options.allow_bookmarks:
            watcher.bookmark(store.revision, ends_initial_events=True)
    elif revision < table_.compacted:
        watcher.push(error_line(expired(f"too old resource version: {revision} ({table_.compacted})")))
        watcher.close()
    else:
        watcher.offer_all(table_.changes_after(revision))
    return watcher


_BOUND = encode_json(success(code=201))


def _json_response(document: Json, code: int = 200) -> web.Response:
    return web.Response(body=encode_json(document), status=code, content_type="application/json")


def _is_dry_run(request: web.BaseRequest) -> bool:
    return request.query.get("dryRun") == "All"


async def _read_object(request: web.BaseRequest, kind: str) -> Json:
    body = await request.read()
    content_type = request.content_type
    if content_type in _YAML_TYPES:
        return _parse_yaml(body)
    if content_type not in _JSON_TYPES:
        raise unsupported_media_type(_MEDIA_MESSAGE)
    return parse_json(body, kind)


async def _read_patch(request: web.BaseRequest, content_type: str) -> Any:
    body = await request.read()
    if content_type == APPLY_PATCH:
        return _parse_yaml(body)
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from None


async def _read_delete_options(request: web.BaseRequest) -> DeleteOptions:
    body = await request.read() if request.can_read_body else b""
    options = delete_options(body, request.query)
    return options._replace(dry_run=options.dry_run or _is_dry_run(request))


def delete_options(body: bytes, query: Mapping[str, str]) -> DeleteOptions:
    """Return what the body and the query of a DELETE ask for.

    Raises:
        ApiStatusError: 400 it cannot be read.
    """
    document = parse_json(body, "DeleteOptions") if body.strip() else {}
    preconditions = document.get("preconditions") or {}
    grace = document.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    try:
        grace_s = None if grace is None else int(grace)
    except ValueError:
        raise bad_request(f"gracePeriodSeconds is not a number: {grace!r}") from None
    is_dry = document.get("dryRun") == ["All"]
    return DeleteOptions(grace_s, preconditions.get("uid"), preconditions.get("resourceVersion"), is_dry)


def _parse_yaml(body: bytes) -> Json:
    try:
        document = yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise bad_request(f"error parsing YAML: {error}") from None
    if not isinstance(document, dict):
        raise bad_request("the object provided is unrecognized")
    return document
