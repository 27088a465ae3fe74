"""What only the embedded server has: a thread of its own, outages that keep state, a bounded history, tables."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request

import aiohttp
import pytest

from scheduler.testing.apiserver import EmbeddedApiServer

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


def get(url: str, accept: str = "application/json") -> dict:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept})) as response:
        return json.load(response)


def test_server_on_its_own_thread_takes_calls_from_here() -> None:
    """In-process calls and HTTP see the same objects."""
    with EmbeddedApiServer.in_thread() as server:
        server.create(POD)
        server.bind("p", "n1")
        assert get(f"{server.url}/api/v1/namespaces/default/pods/p")["spec"]["nodeName"] == "n1"
        url = server.url
    with pytest.raises(urllib.error.URLError):
        get(url)


def test_taken_port_is_reported() -> None:
    """The thread's failure reaches the caller."""
    with (
        EmbeddedApiServer.in_thread() as server,
        pytest.raises(OSError, match="in use"),
        EmbeddedApiServer.in_thread(port=server.port),
    ):
        pass


def test_outage_keeps_objects_and_port() -> None:
    """Stopped and started, it is the same cluster."""

    async def run() -> None:
        server = EmbeddedApiServer()
        async with server:
            port = server.port
            server.create(POD)
        async with server, aiohttp.ClientSession() as session:
            assert server.port == port
            async with session.get(f"{server.url}/api/v1/pods") as response:
                assert [item["metadata"]["name"] for item in (await response.json())["items"]] == ["p"]

    asyncio.run(run())


def test_stop_ends_open_watches() -> None:
    """A stream's client sees its end and can resume."""

    async def run() -> None:
        server = EmbeddedApiServer()
        await server.start()
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{server.url}/api/v1/pods", params={"watch": "true"}) as response,
        ):
            await server.stop()
            assert await asyncio.wait_for(response.content.read(), 5) == b""

    asyncio.run(run())


def test_resuming_before_the_history_is_expired() -> None:
    """The bound is the server's own, and an ERROR event tells."""

    async def run() -> None:
        async with EmbeddedApiServer(history_limit=2) as server, aiohttp.ClientSession() as session:
            start = server.resource_version
            for number in range(4):
                server.create({**POD, "metadata": {"name": f"p{number}"}})
            query = {"watch": "true", "resourceVersion": str(start)}
            async with session.get(f"{server.url}/api/v1/pods", params=query) as response:
                event = json.loads(await response.content.readline())
                assert (event["type"], event["object"]["code"]) == ("ERROR", 410)

    asyncio.run(run())


def test_bookmarks_come_by_themselves() -> None:
    """A quiet watch learns of versions that other resources have reached."""

    async def run() -> None:
        async with EmbeddedApiServer(bookmark_interval_s=0.1) as server, aiohttp.ClientSession() as session:
            query = {"watch": "true", "resourceVersion": str(server.resource_version), "allowWatchBookmarks": "true"}
            async with session.get(f"{server.url}/api/v1/pods", params=query) as response:
                server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
                event = json.loads(await asyncio.wait_for(response.content.readline(), 5))
                assert event["type"] == "BOOKMARK"
                assert event["object"]["metadata"]["resourceVersion"] == str(server.resource_version)

    asyncio.run(run())


def test_kubectls_table_shows_where_pods_are() -> None:
    """`kubectl get pods -o wide` has its columns."""
    with EmbeddedApiServer.in_thread() as server:
        server.create(POD)
        server.bind("p", "n1")
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        table = get(f"{server.url}/api/v1/namespaces/default/pods", accept)
        columns = [column["name"] for column in table["columnDefinitions"]]
        cells = dict(zip(columns, table["rows"][0]["cells"], strict=True))
        assert (cells["Name"], cells["Status"], cells["Node"]) == ("p", "Pending", "n1")


def test_openapi_promises_field_validation() -> None:
    """What kubectl looks for before it applies a file."""
    with EmbeddedApiServer.in_thread() as server:
        document = get(f"{server.url}/openapi/v3")["paths"]["api/v1"]["serverRelativeURL"]
        pods = get(server.url + document)["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
        assert pods["patch"]["parameters"][0]["name"] == "fieldValidation"
