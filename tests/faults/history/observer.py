"""The observer: an independent client that records every version of every pod and node.

It speaks to the API server directly, with a connection and a thread for each kind, and shares no code with the scheduler.
A cut watch is resumed from the last version, so nothing is missed unless the server has forgotten it; then what
has changed meanwhile is recorded as one change an object.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.controlplane.cluster import HOST, ControlPlane
from tests.faults.history.record import Json, Version, bindings_of

_PATHS = {"Pod": "/api/v1/pods", "Node": "/api/v1/nodes"}
_RETRY_S = 0.1
_SILENCE_S = 40.0
"""Bookmarks come about once a minute only, so an idle watch is opened anew; that costs nothing."""


class Observer:
    """Watches pods and nodes until `stop`; `versions` grows meanwhile."""

    def __init__(self, plane: ControlPlane) -> None:
        """List both kinds, then watch them.

        Raises:
            OSError: the API server cannot be reached.
        """
        self.versions: list[Version] = []
        self.bound_before: set[tuple[str, str]] = set()
        kubeconfig = plane.client_kubeconfig("observer", ["system:masters"])
        self._kinds = [_Kind(plane, kind, plane.ssl_context(kubeconfig), self.versions) for kind in _PATHS]
        for kind in self._kinds:
            kind.begin(epoch=0)

    @property
    def relists(self) -> int:
        """How often the server no longer had the versions in between."""
        return sum(kind.relists for kind in self._kinds)

    def restart(self) -> None:
        """Begin a new epoch: the server's data have been replaced."""
        self.stop()
        for kind in self._kinds:
            kind.begin(epoch=kind.epoch + 1)

    def live(self, kind: str) -> dict[str, Json]:
        """Return the objects of a kind that exist now, as far as it is known, by UID."""
        (watched,) = [each for each in self._kinds if each.kind == kind]
        with watched.paused:
            return {uid: version.object for uid, version in watched.live.items()}

    def cut(self) -> None:
        """Forget everything but the newest version of each object, and who was bound, for runs of hours."""
        for kind in self._kinds:
            kind.paused.acquire()
        try:
            live = [version for kind in self._kinds for version in kind.live.values()]
            self.bound_before |= bindings_of(self.versions)  # an event about it may come later
            self.versions[:] = [replace(version, change="LISTED") for version in live]
        finally:
            for kind in self._kinds:
                kind.paused.release()

    def stop(self) -> None:
        """End the watches."""
        for kind in self._kinds:
            kind.stop()


class _Kind:
    """The watch of one kind."""

    def __init__(self, plane: ControlPlane, kind: str, tls: Any, versions: list[Version]) -> None:
        self.kind = kind
        self.live: dict[str, Version] = {}
        self.version = 0
        self.epoch = 0
        self.relists = 0
        self.paused = threading.Lock()
        self._plane, self._tls, self._versions = plane, tls, versions
        self._connection: http.client.HTTPSConnection | None = None
        self._is_stopping = False
        self._thread: threading.Thread | None = None

    def begin(self, epoch: int) -> None:
        self.epoch, self.version, self._is_stopping = epoch, 0, False
        self.live.clear()
        self._list("LISTED")
        self._thread = threading.Thread(target=self._run, name=f"observer-{self.kind}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join(10)
            assert not self._thread.is_alive(), f"the observer of {self.kind} does not end"

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                self._watch()
            except (OSError, http.client.HTTPException):
                time.sleep(_RETRY_S)  # the server is away, or the watch was silent for long

    def _watch(self) -> None:
        query = f"?watch=true&allowWatchBookmarks=true&resourceVersion={self.version}&timeoutSeconds=600"
        is_expired = False
        with self._get(_PATHS[self.kind] + query) as response:
            if response.status not in (200, 410):
                raise OSError(f"watching {self.kind}: {response.status}")
            is_expired = response.status == 410
            while not is_expired and not self._is_stopping and (line := response.readline()).endswith(b"\n"):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    is_expired = event["object"].get("code") == 410
                    break
                self._take(event["type"], event["object"])
        if is_expired:
            self.relists += 1
            self._list("ADDED")

    def _list(self, change_of_new: str) -> None:
        with self._get(_PATHS[self.kind]) as response:
            if response.status != 200:
                raise OSError(f"listing {self.kind}: {response.status}")
            listed = json.loads(response.read())
        present = {item["metadata"]["uid"]: item for item in listed["items"]}
        version = listed["metadata"]["resourceVersion"]
        for uid, known in list(self.live.items()):
            if uid not in present:
                gone = {**known.object, "metadata": {**known.object["metadata"], "resourceVersion": version}}
                self._take("DELETED", gone)
        for uid, item in present.items():
            known = self.live.get(uid)
            if known is None or known.object["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._take(change_of_new if known is None else "MODIFIED", {"kind": self.kind, **item})
        self.version = max(self.version, int(version))

    def _take(self, change: str, manifest: Mapping[str, Any]) -> None:
        if change != "BOOKMARK":
            recorded = Version(time.time(), self.kind, change, manifest, self.epoch)
            with self.paused:
                self._versions.append(recorded)
                if change == "DELETED":
                    self.live.pop(recorded.uid, None)
                else:
                    self.live[recorded.uid] = recorded
        self.version = max(self.version, int(manifest["metadata"]["resourceVersion"]))

    @contextlib.contextmanager
    def _get(self, path: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(HOST, self._plane.port, timeout=_SILENCE_S, context=self._tls)
        self._connection = connection
        with contextlib.closing(connection):
            connection.request("GET", path)
            with connection.getresponse() as response:
                yield response
