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
from scheduler.testing.apiserver.deletion import DeleteOptions, delete
from scheduler.testing.apiserver.discovery import discover
from scheduler.testing.apiserver.http import begin_watch, parse_path
from scheduler.testing.apiserver.listing import ListOptions, encode_list, list_page, view_converter
from scheduler.testing.apiserver.objects import Objects
from scheduler.testing.apiserver.resources import BY_PATH, by_kind
from scheduler.testing.apiserver.status import ApiStatusError, success, unknown_path
from scheduler.testing.apiserver.store import Change, Store, encode_json
from scheduler.testing.apiserver.target import Target
from scheduler.testing.apiserver.watching import Watcher, bookmark_line

__all__ = ["URGENT", "Json", "ModelApi"]

URGENT = "urgent"
"""Name of the priority class that preempts."""

Json = dict[str, Any]
_EPOCH = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
_BOUND = encode_json(success(code=201))
_KUBELET_S = 0.25
"""From the end of a pod's time to its removal."""
_PATHS = 1_000
"""How many are remembered with what they mean: histories ask for the same ones."""
_PODS, _NODES = BY_PATH[("", "v1", "pods")], BY_PATH[("", "v1", "nodes")]


class ModelApi:
    """One cluster's state.

    Args:
        now_s: virtual time in seconds.
        later: calls something with an argument after so many seconds.
    """

    def __init__(
        self, now_s: Callable[[], float], later: Callable[[float, Callable[[str], None], str], object]
    ) -> None:
        self.store = Store()
        self.store.table(_PODS).subscribers[_Kubelets(self, later)] = None
        self.objects = Objects(self.store, lambda: _EPOCH + dt.timedelta(seconds=now_s()))
        for name in ("default", "kube-system"):
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": URGENT}}
        self.create({**urgent, "value": 1_000})

    # --- requests of schedulers ------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, body: bytes | None, content_type: str) -> Response:
        """Carry a request out and return the answer."""
        try:
            return self._carried_out(method, path, body, content_type)
        except ApiStatusError as error:
            return Response(error.code, {}, encode_json(error.body()))

    def watch(self, path: str) -> Watcher | Response:
        """Open a watch; a Response is a refusal."""
        target, options = _collection(path)
        watcher = Watcher(target.resource, target.prefix, options.matches, view_converter(target.resource))
        begin_watch(self.store, watcher, target, options)
        self.store.table(target.resource).subscribers[watcher] = None
        return watcher

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
        decoded: Any = msgspec.json.decode(body) if body else {}
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
                stored, _ = self.objects.update(target, decoded)
            case "PATCH":
                stored, _ = self.objects.patch(target, content_type, decoded)
            case "DELETE":
                preconditions = decoded.get("preconditions") or {}
                options_ = DeleteOptions(decoded.get("gracePeriodSeconds"), preconditions.get("uid"))
                gone = delete(self.objects, target, options_)
                return Response(200, {}, encode_json(gone) if isinstance(gone, dict) else gone.body)
            case _:
                raise unknown_path()
        return Response(201 if method == "POST" else 200, {}, stored.typed_body(target.resource))

    # --- what users, kubelets and other controllers do ---------------------------------------------------------------

    def create(self, obj: Json) -> None:
        """Create an object as its user would."""
        resource = by_kind(obj["apiVersion"], obj["kind"])
        namespace = obj["metadata"].get("namespace", "default") if resource.namespaced else ""
        self.objects.create(Target(resource, namespace), obj)

    def pods(self) -> list[Json]:
        """Return all pods; not to be changed."""
        return [stored.data for _, stored in self.store.table(_PODS).scan("")]

    def nodes(self) -> list[Json]:
        """Return all nodes; not to be changed."""
        return [stored.data for _, stored in self.store.table(_NODES).scan("")]

    def pod(self, name: str) -> Json | None:
        """Return a pod of the namespace "default"."""
        stored = self.store.table(_PODS).objects.get(f"default/{name}")
        return None if stored is None else stored.data

    def delete_pod(self, name: str, *, grace_s: int | None) -> None:
        """Delete a pod that may exist."""
        if self.pod(name) is not None:
            delete(self.objects, Target(_PODS, "default", name), DeleteOptions(grace_s))

    def bind_pod(self, name: str, node: str) -> None:
        """Bind a pod as another scheduler would, if it can still be bound."""
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        try:
            bind(self.objects, Target(_PODS, "default", name), binding)
        except ApiStatusError as error:
            if error.code not in {404, 409}:
                raise

    def delete_node(self, name: str) -> None:
        """Delete a node that may exist, and as pod garbage collection does, the pods on it."""
        if name not in self.store.table(_NODES).objects:
            return
        delete(self.objects, Target(_NODES, "", name), DeleteOptions())
        for pod in self.pods():
            if pod["spec"].get("nodeName") == name:
                self.delete_pod(pod["metadata"]["name"], grace_s=0)

    def change_node(self, name: str, spec: Json) -> None:
        """Merge something into a node's spec, if it exists."""
        if name in self.store.table(_NODES).objects:
            target = Target(_NODES, "", name)
            self.objects.patch(target, "application/merge-patch+json", {"spec": spec})


class _Kubelets:
    """Remove the pods whose time to terminate is over."""

    def __init__(self, api: ModelApi, later: Callable[[float, Callable[[str], None], str], object]) -> None:
        self._api = api
        self._later = later

    def offer(self, change: Change) -> None:
        metadata = {} if change.after is None else change.after.data["metadata"]
        if "deletionTimestamp" in metadata:
            self._later(metadata["deletionGracePeriodSeconds"] + _KUBELET_S, self._look, metadata["name"])

    def _look(self, name: str) -> None:
        pod = self._api.pod(name)
        due = None if pod is None else pod["metadata"].get("deletionTimestamp")
        if due is not None and dt.datetime.fromisoformat(due) <= self._api.objects.clock():
            self._api.delete_pod(name, grace_s=0)


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
    return target, ListOptions.parse(target.resource, dict(parse_qsl(urlsplit(path).query)))
