"""The administrator's view of the real API server, for tests: a keep-alive JSON client with the few calls they need.

Everything a test creates belongs to one `Cluster`: a fresh namespace, and the cluster-scoped objects (nodes, priority
classes) that are deleted again when the test ends, so that tests do not disturb one another on the shared server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from scheduler.testing.manifests import Builder
from scheduler.testing.node_builder import NodeBuilder, node
from scheduler.testing.pod_builder import PodBuilder, pod
from tests.controlplane.cluster import HOST, ControlPlane

Json = dict[str, Any]
T = TypeVar("T")

DEADLINE_S = 30.0
POLL_S = 0.03
STRATEGIC = "application/strategic-merge-patch+json"
FORCE = "?gracePeriodSeconds=0&propagationPolicy=Background"


def eventually(probe: Callable[[], T | None], what: str, *, timeout_s: float = DEADLINE_S, poll_s: float = POLL_S) -> T:
    """Poll until `probe` returns something true, and return it; fails with `what` when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(poll_s)


def unique(prefix: str) -> str:
    """Return a name that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


class Client:
    """One keep-alive connection as administrator; reconnects when the server has gone away in between."""

    def __init__(self, plane: ControlPlane) -> None:
        self._port = plane.port
        self._tls = plane.ssl_context()
        self._connection: http.client.HTTPSConnection | None = None

    def call(
        self, method: str, path: str, body: object | None = None, *, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """Send a request; return status and decoded answer (text where it is not JSON)."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        response, answer = self._exchange(method, path, data, headers)
        try:
            return response.status, json.loads(answer)
        except ValueError:
            return response.status, answer.decode(errors="replace")

    def ok(self, method: str, path: str, body: object | None = None, *, content_type: str = "application/json") -> Any:
        """Send a request that must succeed; return the decoded answer."""
        status, answer = self.call(method, path, body, content_type=content_type)
        assert 200 <= status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        is_fresh = self._connection is None
        try:
            return self._exchange_once(method, path, data, headers)
        except (OSError, http.client.HTTPException):
            self.close()
            if is_fresh:
                raise
        return self._exchange_once(method, path, data, headers)

    def _exchange_once(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(HOST, self._port, timeout=20, context=self._tls)
        self._connection.request(method, path, body=data, headers=dict(headers))
        response = self._connection.getresponse()
        return response, response.read()


class Cluster:
    """One test's namespace and nodes on the shared control plane.

    Attributes:
        namespace: of the test's pods.
        scheduler: a schedulerName of its own.
        client: for anything else.
    """

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane = plane
        self.client = Client(plane)
        self.namespace = unique(name)
        self.scheduler = self.namespace
        self.label = {"test": self.namespace}
        self._classes: list[str] = []
        self.client.ok("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    # --- creating ----------------------------------------------------------------------------------------------------

    def node(self, name: str = "n", /, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110") -> NodeBuilder:
        """Start a node with room; its name is prefixed with the test's namespace."""
        full = f"{self.namespace}-{name}"
        return node(full).labels(self.label).hostname().capacity(cpu=cpu, memory=memory, pods=pods)

    def pod(self, name: str = "p", /) -> PodBuilder:
        """Start a pod of this test's scheduler in its namespace."""
        return pod(name).in_ns(self.namespace).scheduler(self.scheduler)

    def create(self, *builders: Builder[Any]) -> list[Json]:
        """Create objects; returns them as the server has them."""
        return [self.create_manifest(builder.create_manifest()) for builder in builders]

    def create_manifest(self, manifest: Json) -> Json:
        created: Json = self.client.ok("POST", self._collection(manifest), manifest)
        return created

    def priority_class(self, name: str, value: int, *, preempts: bool = False) -> str:
        """Create a priority class for this test and return its full name."""
        full = f"{self.namespace}-{name}"
        manifest = {
            "metadata": {"name": full},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
        }
        self.client.ok("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", manifest)
        self._classes.append(full)
        # Admission has informers of its own, which hear of the class a moment later.
        trial = self.pod("trial").set("spec.priorityClassName", full).create_manifest()
        path = f"{self._collection(trial)}?dryRun=All"
        eventually(lambda: self.client.call("POST", path, trial)[0] == 201, f"pods of {full} to be admitted")
        return full

    # --- looking -----------------------------------------------------------------------------------------------------

    def pod_path(self, name: str, more: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}{more}"

    def get(self, name: str = "p") -> Json:
        found: Json = self.client.ok("GET", self.pod_path(name))
        return found

    def pods(self) -> list[Json]:
        """Return all pods of the namespace."""
        listed: list[Json] = self.client.ok("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return listed

    def nodes(self) -> list[Json]:
        """Return all nodes of this test."""
        listed: list[Json] = self.client.ok("GET", f"/api/v1/nodes?labelSelector={self._selector()}")["items"]
        return listed

    def bound(self) -> dict[str, str]:
        """Return node by pod name, for the bound pods."""
        return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in self.pods() if p["spec"].get("nodeName")}

    def wait_begun(self, name: str) -> None:
        """Wait for one of the first pods of many to be bound; listing them all would take longer than to bind them."""
        eventually(lambda: self.get(name)["spec"].get("nodeName"), "the first binds", poll_s=0.002)

    def events(self, name: str, reason: str = "") -> list[Json]:
        """Return the events about a pod, oldest first."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events?fieldSelector=regarding.name={name}"
        found: list[Json] = self.client.ok("GET", path)["items"]
        return [event for event in found if reason in ("", event["reason"])]

    # --- waiting -----------------------------------------------------------------------------------------------------

    def wait_bound(self, *names: str, timeout_s: float = DEADLINE_S) -> dict[str, str]:
        """Wait until these pods (default: all) are bound; returns node by pod name."""

        def probe() -> dict[str, str] | None:
            pods = self.pods()
            bound = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if p["spec"].get("nodeName")}
            wanted = set(names) or {p["metadata"]["name"] for p in pods}
            return bound if wanted <= bound.keys() else None

        return eventually(probe, f"bound: {', '.join(names) or 'all pods'}", timeout_s=timeout_s)

    def wait_unschedulable(self, name: str = "p", *, timeout_s: float = DEADLINE_S) -> Json:
        """Wait until the pod has been told why it is pending; returns the condition."""
        return eventually(
            lambda: condition(self.get(name)), f"a PodScheduled=False condition on {name}", timeout_s=timeout_s
        )

    # --- changing ----------------------------------------------------------------------------------------------------

    def patch(self, path: str, patch: Json) -> Json:
        """Apply a strategic merge patch."""
        patched: Json = self.client.ok("PATCH", path, patch, content_type=STRATEGIC)
        return patched

    def delete(self, *names: str) -> None:
        """Delete pods at once."""
        for name in names:
            self.client.ok("DELETE", self.pod_path(name, FORCE))

    def delete_node(self, name: str) -> None:
        """Delete a node by its short name."""
        self.client.ok("DELETE", f"/api/v1/nodes/{self.namespace}-{name}")

    def bind(self, name: str, node_name: str) -> tuple[int, Any]:
        """Bind a pod as somebody else would."""
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node_name}}
        return self.client.call("POST", self.pod_path(name, "/binding"), body)

    def clear(self) -> None:
        """Delete all pods and nodes of the test."""
        self.client.ok("DELETE", f"/api/v1/namespaces/{self.namespace}/pods{FORCE}")
        self.client.ok("DELETE", f"/api/v1/nodes?labelSelector={self._selector()}")

    def close(self) -> None:
        """Delete everything that could disturb another test."""
        with contextlib.suppress(OSError, http.client.HTTPException):  # the test may have taken the server down
            self.clear()
            for name in self._classes:
                self.client.ok("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
            self.client.ok("DELETE", f"/api/v1/namespaces/{self.namespace}")
        self.client.close()

    def _selector(self) -> str:
        return f"test%3D{self.namespace}"

    @staticmethod
    def _collection(manifest: Mapping[str, Any]) -> str:
        if manifest["kind"] == "Node":
            return "/api/v1/nodes"
        return f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"


def condition(manifest: Json, kind: str = "PodScheduled", status: str = "False") -> Json | None:
    """Return a pod's condition of this type and status."""
    conditions: Iterable[Json] = manifest["status"].get("conditions", ())
    return next((c for c in conditions if (c["type"], c["status"]) == (kind, status)), None)
