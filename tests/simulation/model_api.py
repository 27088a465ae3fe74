"""The model API server: objects, versions, watches with compaction, the bind's compare-and-set, and leases.

It is the store of the embedded API server, which the contract tests compare with the real kube-apiserver request by
request, without its HTTP. A request is carried out in one step at one moment of virtual time.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from scheduler.kube.transport import Response
from scheduler.testing.apiserver.binding import bind
from scheduler.testing.apiserver.deletion import delete
from scheduler.testing.apiserver.discovery import discover
from scheduler.testing.apiserver.events_view import from_core
from scheduler.testing.apiserver.http import begin_watch, delete_options, parse_path
from scheduler.testing.apiserver.listing import ListOptions, encode_list, list_page
from scheduler.testing.apiserver.objects import Objects
from scheduler.testing.apiserver.resources import BY_PATH, Resource
from scheduler.testing.apiserver.status import ApiStatusError, success, unknown_path
from scheduler.testing.apiserver.store import Store, Stored, encode_json
from scheduler.testing.apiserver.target import Target, parse_json
from scheduler.testing.apiserver.watching import Watcher, bookmark_line

__all__ = ["Json", "ModelApi"]

Json = dict[str, Any]
_EPOCH = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
_BOUND = encode_json(success(code=201))
_PATHS = 1_000
"""How many are remembered with what they mean: histories ask for the same ones."""


class ModelApi:
    """One cluster's state, and what a request does to it.

    Args:
        now_s: virtual time in seconds.

    Attributes:
        requester: whose request is being carried out; "" between requests.
        meant_uid: of the object that had the request's name when it was sent; "" if there was none.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.store = Store()
        self.objects = Objects(self.store, lambda: _EPOCH + dt.timedelta(seconds=now_s()))
        self.requester = self.meant_uid = ""

    def uid_of(self, path: str) -> str:
        """Return the UID of the object that a path names now; "" if there is none."""
        target = _target(path)
        stored = self.store.table(target.resource).objects.get(target.key) if target.name else None
        return "" if stored is None else stored.data["metadata"]["uid"]

    def answer(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        *,
        requester: str = "",
        meant_uid: str = "",
    ) -> Response:
        """Carry a request out and return the answer."""
        self.requester, self.meant_uid = requester, meant_uid
        try:
            return self._carried_out(method, path, body, content_type)
        except ApiStatusError as error:
            return Response(error.code, {}, encode_json(error.body()))
        finally:
            self.requester = self.meant_uid = ""

    def watch(self, path: str) -> tuple[Watcher, float | None]:
        """Open a watch, and return with it after how many seconds it is asked to end.

        Raises:
            ApiStatusError: a refusal.
        """
        target, options = _collection(path)
        watcher = begin_watch(self.store, target, options)
        self.store.table(target.resource).subscribers[watcher] = None
        return watcher, options.timeout_s

    def bookmark(self, watcher: Watcher) -> bytes:
        """Return a line that says: everything until now has been sent."""
        return bookmark_line(watcher.resource, self.store.revision)

    def unwatch(self, path: str, watcher: Watcher) -> None:
        """Forget a watch."""
        self.store.table(_collection(path)[0].resource).subscribers.pop(watcher, None)

    def _carried_out(self, method: str, path: str, body: bytes | None, content_type: str) -> Response:
        if method == "GET" and (document := discover(path)) is not None:
            return Response(200, {}, encode_json(document))
        target = _target(path)
        if method == "DELETE":
            gone = delete(self.objects, target, delete_options(body or b"", _query(path)))
            return Response(200, {}, encode_json(gone) if isinstance(gone, dict) else gone.typed_body(target.resource))
        is_created = method == "POST"
        decoded: Any = _decoded(method, body, target) if body else {}
        if target.subresource == "binding":
            bind(self.objects, target, decoded)
            return Response(201, {}, _BOUND)
        match method:
            case "GET" if target.name:
                stored = self.objects.get(target)
            case "GET":
                found, options = _collection(path)
                return Response(200, {}, encode_list(found.resource, list_page(self.store, found, options)))
            case "POST":
                stored = self.objects.create(target, decoded)
            case "PUT":
                stored, is_created = self.objects.update(target, decoded)
            case "PATCH":
                stored, is_created = self.objects.patch(target, content_type, decoded)
            case _:
                raise unknown_path()
        return Response(201 if is_created else 200, {}, _shown(target.resource, stored))


def _shown(resource: Resource, stored: Stored) -> bytes:
    if resource.view_of:
        return encode_json({"kind": resource.kind, "apiVersion": resource.api_version, **from_core(stored.data)})
    return stored.typed_body(resource)


def _decoded(method: str, body: bytes, target: Target) -> Any:
    return msgspec.json.decode(body) if method == "PATCH" else parse_json(body, target.resource.kind)


def _query(path: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(path).query))


@functools.lru_cache(maxsize=_PATHS)
def _target(path: str) -> Target:
    route = parse_path(urlsplit(path).path)
    resource = None if route is None else BY_PATH.get((route.group, route.version, route.plural))
    if route is None or resource is None:
        raise unknown_path()
    return Target(resource, route.namespace, route.name, route.subresource)


@functools.lru_cache(maxsize=_PATHS)
def _collection(path: str) -> tuple[Target, ListOptions]:
    target = _target(path)
    return target, ListOptions.parse(target.resource, _query(path))
