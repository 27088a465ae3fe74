"""The embedded API server's life: sockets, threads, and the in-process calls of tests and demos.

Two ways to run it, one loop in both:
    async with EmbeddedApiServer() as server: ...          on the caller's loop
    with EmbeddedApiServer.in_thread() as server: ...      on its own thread and loop

The store belongs to that loop; `create`, `get` and the other in-process calls may come from any thread and are carried
over. A stopped server keeps its objects and its port: started again, it is the same cluster after an outage.

States: new ──start──▶ serving ──stop──▶ stopped ──start──▶ serving
"""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import msgspec
import yaml
from aiohttp import web

from scheduler.testing.apiserver.binding import bind
from scheduler.testing.apiserver.deletion import DeleteOptions, delete
from scheduler.testing.apiserver.http import HttpApi
from scheduler.testing.apiserver.listing import view_converter
from scheduler.testing.apiserver.objects import Objects
from scheduler.testing.apiserver.patches import MERGE_PATCH
from scheduler.testing.apiserver.resources import BY_PATH, Resource, by_kind
from scheduler.testing.apiserver.status import Json
from scheduler.testing.apiserver.store import Store, Stored
from scheduler.testing.apiserver.target import Target

__all__ = ["EmbeddedApiServer"]

T = TypeVar("T")

HOST = "127.0.0.1"
STOP_TIMEOUT_S = 2.0
BACKLOG = 1024
MAX_BODY_BYTES = 3 * 1024 * 1024
"""The real server's limit of a request body."""
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def wall_clock() -> dt.datetime:
    """Return the present time in UTC."""
    return dt.datetime.now(dt.UTC)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]) -> web.BaseRequest:
    """Make aiohttp's request object, with the real server's limit of a body."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)


class EmbeddedApiServer:
    """A Kubernetes API server in memory, with real HTTP on a loopback port.

    Args:
        port: the port to listen on; 0 takes a free one.
        history_limit: changes remembered for each resource; resuming before them is answered 410.
        bookmark_interval_s: how often a watch that asked for bookmarks gets one (the real server: about a minute).
        clock: what stamps objects; tests may hand in a fixed one.

    """

    def __init__(
        self,
        *,
        port: int = 0,
        history_limit: int = 10_000,
        bookmark_interval_s: float = 60.0,
        clock: Callable[[], dt.datetime] = wall_clock,
    ) -> None:
        self.port = port
        self._objects = Objects(Store(history_limit), clock)
        self._api = HttpApi(self._objects, bookmark_interval_s=bookmark_interval_s, now=clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id: int | None = None
        self._runner: web.ServerRunner | None = None
        self._create_bootstrap_objects()

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen; returns when requests are answered. A server that was stopped takes its port again."""
        listener = self._listen()
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        server = web.Server(self._api.handle, request_factory=_request, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_TIMEOUT_S)
        await self._runner.setup()
        await web.SockSite(self._runner, listener, backlog=BACKLOG).start()

    def _listen(self) -> socket.socket:
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, self.port))
        except OSError:
            listener.close()
            raise
        self.port = listener.getsockname()[1]
        return listener

    async def stop(self) -> None:
        """End all streams and connections; the objects stay."""
        self._api.close_watches()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = self._loop = self._thread_id = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @classmethod
    @contextmanager
    def in_thread(cls, **arguments: Any) -> Iterator[Self]:
        """Run a server on its own thread for the length of a `with` block; takes the constructor's arguments."""
        server = cls(**arguments)
        started: Future[asyncio.Event] = Future()
        thread = threading.Thread(target=server._serve, args=(started,), name="embedded-apiserver")
        thread.start()
        ending = started.result()
        try:
            yield server
        finally:
            assert server._loop is not None, "stopped by somebody else"
            server._loop.call_soon_threadsafe(ending.set)
            thread.join()

    def _serve(self, started: Future[asyncio.Event]) -> None:
        async def run() -> None:
            ending = asyncio.Event()
            try:
                await self.start()
            except OSError as error:
                started.set_exception(error)
                return
            started.set_result(ending)
            await ending.wait()
            await self.stop()

        asyncio.run(run())

    # --- where it is -------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def kubeconfig(self) -> str:
        """Return a kubeconfig file's text for kubectl and every other client."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "embedded",
            "clusters": [{"name": "embedded", "cluster": {"server": self.url}}],
            "users": [{"name": "anyone", "user": {}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "anyone"}}],
        }
        return yaml.safe_dump(document, sort_keys=False)

    # --- in-process calls, from any thread ---------------------------------------------------------------------------

    @property
    def resource_version(self) -> int:
        """The version of the newest change."""
        return self._objects.store.revision

    def create(self, obj: Json) -> Json:
        """Create an object as a POST would; `obj` names its kind and apiVersion.

        Raises:
            ApiStatusError: what the HTTP request would be answered.
            KeyError: there is no such kind.

        """
        target = self._target_of(obj)._replace(name="")
        return self._call(lambda: self._shown(target.resource, self._objects.create(target, obj)))

    def update(self, obj: Json) -> Json:
        """Replace an object as a PUT would."""
        target = self._target_of(obj)
        return self._call(lambda: self._shown(target.resource, self._objects.update(target, obj)[0]))

    def patch(self, plural: str, name: str, patch: Json, *, namespace: str = "default", subresource: str = "") -> Json:
        """Merge-patch an object or its sub-resource."""
        target = self._target(plural, namespace, name)._replace(subresource=subresource)
        return self._call(lambda: self._shown(target.resource, self._objects.patch(target, MERGE_PATCH, patch)[0]))

    def get(self, plural: str, name: str, namespace: str = "default") -> Json | None:
        """Return a copy of an object, or None; the namespace is ignored for cluster-wide resources."""
        target = self._target(plural, namespace, name)

        def read() -> Json | None:
            stored = self._objects.store.table(target.resource).objects.get(target.key)
            return None if stored is None else self._shown(target.resource, stored)

        return self._call(read)

    def list(self, plural: str, namespace: str | None = None) -> list[Json]:
        """Return copies of all objects of a resource, of one namespace or of all, in key order."""
        target = self._target(plural, namespace or "", "")

        def read() -> list[Json]:
            found = self._objects.store.table(target.resource).scan(target.prefix)
            return [self._shown(target.resource, stored) for _, stored in found]

        return self._call(read)

    def delete(self, plural: str, name: str, namespace: str = "default", *, grace_period_s: int | None = None) -> None:
        """Delete an object as a DELETE would."""
        target = self._target(plural, namespace, name)
        self._call(lambda: delete(self._objects, target, DeleteOptions(grace_period_s)))

    def bind(self, name: str, node_name: str, namespace: str = "default") -> None:
        """Bind a pod as another scheduler would."""
        target = self._target("pods", namespace, name)
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node_name}}
        self._call(lambda: bind(self._objects, target, binding))

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to `revision` (default: all): watches that resume before it are answered 410."""
        self._call(lambda: self._objects.store.compact(revision))

    def close_watches(self) -> None:
        """End all watch streams now; clients resume by version."""
        self._call(self._api.close_watches)

    def _call(self, function: Callable[[], T]) -> T:
        """Run on the server's loop, where the store lives."""
        loop = self._loop
        if loop is None or threading.get_ident() == self._thread_id:
            return function()

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    @staticmethod
    def _shown(resource: Resource, stored: Stored) -> Json:
        copied: Json = msgspec.json.decode(stored.body)
        convert = view_converter(resource)
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        return {**head, **(copied if convert is None else convert(copied))}

    @staticmethod
    def _target(plural: str, namespace: str, name: str) -> Target:
        resource = next((each for each in BY_PATH.values() if each.plural == plural), None)
        if resource is None:
            raise KeyError(f"the embedded API server has no resource {plural!r}")
        return Target(resource, namespace if resource.namespaced else "", name)

    @staticmethod
    def _target_of(obj: Json) -> Target:
        metadata = obj.get("metadata") or {}
        resource = by_kind(obj["apiVersion"], obj["kind"])
        namespace = metadata.get("namespace") or "default"
        return Target(resource, namespace if resource.namespaced else "", metadata.get("name") or "")

    def _create_bootstrap_objects(self) -> None:
        for name in _NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value in _SYSTEM_PRIORITIES.items():
            priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            self.create({**priority, "value": value})
