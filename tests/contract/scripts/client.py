"""What the contract's scripts speak through: a thin JSON client, the same for both servers."""

from __future__ import annotations

import asyncio
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

Json = dict[str, Any]

EVENT_TIMEOUT_S = 10.0
QUIET_S = 0.3
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Answer(NamedTuple):
    """Status code and decoded body."""

    code: int
    body: Any

    @property
    def reason(self) -> str:
        return self.body.get("reason", "")

    @property
    def message(self) -> str:
        return self.body.get("message", "")


class Stream:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def next(self, timeout_s: float = EVENT_TIMEOUT_S) -> tuple[str, Json] | None:
        """Return the next event's type and object; None at the stream's end.

        Raises:
            TimeoutError: no event in time.

        """
        line = await asyncio.wait_for(self._response.content.readline(), timeout_s)
        if not line:
            return None
        event = json.loads(line)
        return event["type"], event["object"]

    async def names(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events, bookmarks left out."""
        found = []
        while len(found) < count:
            event = await self.next()
            assert event is not None, f"the stream ended after {found}"
            if event[0] != "BOOKMARK":
                found.append((event[0], event[1]["metadata"]["name"]))
        return found

    async def is_quiet(self) -> bool:
        """Return whether nothing comes for a moment."""
        try:
            await self.next(QUIET_S)
        except TimeoutError:
            return True
        return False


class Api:
    """One server, one fresh namespace."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        namespace: str,
        compact: Callable[[], Awaitable[None]],
    ) -> None:
        self._session = session
        self._url = url
        self.namespace = namespace
        self.compact = compact

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        compact: Callable[[], Awaitable[None]],
    ) -> AsyncIterator[Api]:
        connector = aiohttp.TCPConnector(ssl=tls if tls is not None else True)
        async with aiohttp.ClientSession(connector=connector) as session:
            api = cls(session, url, unique("contract"), compact)
            answer = await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": api.namespace}})
            assert answer.code == 201, answer
            yield api

    async def call(
        self,
        method: str,
        path: str,
        body: object | None = None,
        *,
        content_type: str = "application/json",
        raw: bytes | None = None,
        **query: str,
    ) -> Answer:
        data = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self._session.request(
            method,
            self._url + path,
            data=data,
            headers=headers,
            params=query,
        ) as response:
            text = await response.text()
        try:
            return Answer(response.status, json.loads(text))
        except ValueError:
            return Answer(response.status, text)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Stream]:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=30)
        params = {"watch": "true", **query}
        async with self._session.get(self._url + path, params=params, timeout=timeout) as response:
            try:
                yield Stream(response)
            finally:  # a polite TLS goodbye would outlive the test's loop
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    # --- pods --------------------------------------------------------------------------------------------------------

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pod_path(self, name: str) -> str:
        return f"{self.pods}/{name}"

    async def create_pod(self, name: str = "p", *, labels: Json | None = None, **spec: Any) -> Json:
        answer = await self.call("POST", self.pods, pod(name, labels=labels, **spec))
        assert answer.code == 201, answer
        return answer.body

    async def get_pod(self, name: str = "p") -> Json:
        answer = await self.call("GET", self.pod_path(name))
        assert answer.code == 200, answer
        return answer.body

    async def bind(self, name: str, node: str, **metadata: str) -> Answer:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, **metadata},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return await self.call("POST", f"{self.pod_path(name)}/binding", body)

    async def patch(self, name: str, patch: object, kind: str = STRATEGIC, subresource: str = "") -> Answer:
        path = self.pod_path(name) + (f"/{subresource}" if subresource else "")
        return await self.call("PATCH", path, patch, content_type=kind)

    async def create_node(self, **fields: Any) -> Json:
        labels = fields.pop("labels", {})
        body = {"metadata": {"name": unique("node"), "labels": labels}, **fields}
        answer = await self.call("POST", "/api/v1/nodes", body)
        assert answer.code == 201, answer
        return answer.body


def unique(prefix: str) -> str:
    """Return a name that no other script uses."""
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def pod(name: str = "p", *, labels: Json | None = None, **spec: Any) -> Json:
    """Return a pod's manifest."""
    metadata: Json = {"name": name}
    if labels:
        metadata["labels"] = labels
    spec.setdefault("containers", [{"name": "c", "image": "example.org/app:1"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def container(name: str = "c", **fields: Any) -> Json:
    """Return one container."""
    return {"name": name, "image": "example.org/app:1", **fields}


def version(obj: Json) -> str:
    """Return an object's or list's resourceVersion."""
    return obj["metadata"]["resourceVersion"]


def names(listed: Json) -> list[str]:
    """Return the names of a list's items."""
    return [item["metadata"]["name"] for item in listed["items"]]
