"""The harness's own client of the API server: loads and empties clusters fast, lists, reads metrics."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from scheduler.kube.errors import TransportError
from scheduler.kube.http_transport import HttpTransport
from scheduler.kube.kubeconfig import load_credentials
from scheduler.kube.transport import Response
from tests.benchmarks.objects import Manifest

WORKERS = 48
TIMEOUT_S = 60.0
EMPTY_TIMEOUT_S = 120.0
_PATHS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_METRIC = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([0-9.eE+-]+|NaN|[+-]Inf)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class LoadError(RuntimeError):
    """The API server refused what the harness set up; the message holds its answer."""


class Api:
    """Administrator's access for set-up and inspection; never used while a scheduler is timed, except for noise.

    Attributes:
        sent: how many requests were sent, by ``operation``; the API server's counters hold them too.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._transport = HttpTransport(load_credentials(str(kubeconfig)), user_agent="podium-bench")
        self.sent: Counter[str] = Counter()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def request(self, method: str, path: str, body: object | None = None) -> Response:
        """Send one request; a cut connection is tried once more."""
        data = None if body is None else json.dumps(body).encode()
        self.sent[operation(method, path)] += 1
        try:
            return await self._transport.request(method, path, body=data, timeout_s=TIMEOUT_S)
        except TransportError:
            return await self._transport.request(method, path, body=data, timeout_s=TIMEOUT_S)

    async def create(self, manifest: Manifest) -> None:
        """Create one object; one that exists already is fine.

        Raises:
            LoadError: it was refused.
        """
        response = await self.request("POST", path_of(manifest), manifest)
        if response.status not in (200, 201, 202, 409):
            name = manifest["metadata"]["name"]
            raise LoadError(f"creating {manifest['kind']} {name}: {response.status} {response.body[:300]!r}")

    async def create_all(self, manifests: Iterable[Manifest]) -> None:
        """Create many objects, ``WORKERS`` at a time."""
        await for_each(manifests, self.create)

    async def list(self, path: str) -> list[Manifest]:
        """Return all objects under ``path``, as dictionaries."""
        response = await self.request("GET", path)
        if response.status != 200:
            raise LoadError(f"listing {path}: {response.status} {response.body[:300]!r}")
        items: list[Manifest] = msgspec.json.decode(response.body)["items"] or []
        return items

    async def resource_version(self) -> str:
        """Return the version from which a watch sees everything that happens from now on."""
        response = await self.request("GET", "/api/v1/pods?limit=1")
        version: str = msgspec.json.decode(response.body)["metadata"]["resourceVersion"]
        return version

    async def delete_pods(self, namespace: str) -> None:
        """Delete all pods of a namespace at once and wait until they are gone, and its events."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        names = [f"{path}/{item['metadata']['name']}?gracePeriodSeconds=0" for item in await self.list(path)]
        await for_each(names, self._delete)
        await self.request("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        async with asyncio.timeout(EMPTY_TIMEOUT_S):
            while await self.list(f"{path}?limit=1"):  # noqa: ASYNC110  the server is asked
                await asyncio.sleep(0.2)

    async def delete(self, path: str) -> None:
        """Delete one object at once; one that is gone is fine."""
        await self._delete(f"{path}?gracePeriodSeconds=0")

    async def _delete(self, path: str) -> None:
        response = await self.request("DELETE", path)
        if response.status not in (200, 202, 404):
            raise LoadError(f"deleting {path}: {response.status} {response.body[:300]!r}")

    async def metrics(self, names: Iterable[str]) -> Samples:
        """Return the API server's own samples of these families."""
        response = await self.request("GET", "/metrics")
        return parse_metrics(response.body.decode(), frozenset(names))


Samples = dict[str, list[tuple[Mapping[str, str], float]]]


def parse_metrics(text: str, names: frozenset[str]) -> Samples:
    """Return the samples of the named families in the Prometheus text format."""
    found: Samples = {name: [] for name in names}
    for line in text.splitlines():
        if line.partition("{")[0].partition(" ")[0] not in names:
            continue
        match = _METRIC.match(line)
        if match is not None:
            found[match[1]].append((dict(_LABEL.findall(match[2] or "")), float(match[3])))
    return found


async def for_each(items: Iterable[Any], action: Callable[[Any], Any], workers: int = WORKERS) -> None:
    """Run ``action`` on all items, ``workers`` at a time; the first failure ends it."""
    source = iter(items)

    async def work() -> None:
        for item in source:
            await action(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


def operation(method: str, path: str) -> str:
    """Return verb and resource of a request, as the API server's metrics name them."""
    parts = path.partition("?")[0].strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    is_named = len(parts) > 1
    verb = {"GET": "GET" if is_named else "LIST", "DELETE": "DELETE" if is_named else "DELETECOLLECTION"}
    return f"{verb.get(method, method)} {parts[0] if parts else ''}"


def path_of(manifest: Manifest) -> str:
    """Return where objects like this one are created."""
    kind = manifest["kind"]
    if kind in _PATHS:
        return _PATHS[kind]
    return f"/api/v1/namespaces/{manifest['metadata']['namespace']}/{kind.lower()}s"


@asynccontextmanager
async def opened(kubeconfig: Path) -> AsyncIterator[Api]:
    """Yield a client that is closed at the end."""
    api = Api(kubeconfig)
    try:
        yield api
    finally:
        await api.close()
