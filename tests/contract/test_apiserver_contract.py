"""One contract, two servers: what kube-apiserver does, the embedded server must do.

Each script in `scripts/` is a plain coroutine function that talks to a server in a fresh namespace. A difference found
here is a fault of the embedded server, never of the script.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from types import ModuleType

import aiohttp
import pytest

from scheduler.testing.apiserver import EmbeddedApiServer
from tests.contract.scripts import binding, defaults, deletion, lists, surroundings, watches, writes
from tests.contract.scripts.client import Api
from tests.controlplane.cluster import ControlPlane

Script = Callable[[Api], Awaitable[None]]
MODULES = (binding, lists, watches, writes, deletion, defaults, surroundings)


def scripts_of(module: ModuleType) -> list[Script]:
    """Return a module's scripts in the order in which they are written."""
    return [
        function
        for name, function in vars(module).items()
        if inspect.iscoroutinefunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    ]


ALL = [
    pytest.param(script, id=f"{module.__name__.rpartition('.')[2]}: {script.__name__.replace('_', ' ')}")
    for module in MODULES
    for script in scripts_of(module)
]


@pytest.mark.parametrize("script", ALL)
def test_embedded_server_keeps_the_contract(script: Script) -> None:
    """The embedded server does what the script asks."""

    async def run() -> None:
        async with EmbeddedApiServer(bookmark_interval_s=1.0) as server:

            async def compact() -> None:
                server.compact()

            async with Api.open(server.url, compact=compact) as api:
                await script(api)

    asyncio.run(run())


@pytest.fixture(scope="module")
def contract_plane() -> Iterator[ControlPlane]:
    """A control plane of its own: the scripts leave nodes and classes behind that would disturb other tests."""
    plane = ControlPlane.start()
    try:
        yield plane
    finally:
        plane.stop()


@pytest.mark.integration
@pytest.mark.parametrize("script", ALL)
def test_real_server_keeps_the_contract(script: Script, contract_plane: ControlPlane) -> None:
    """kube-apiserver does what the script asks: the script is right."""

    async def run() -> None:
        async def compact() -> None:
            await compact_etcd(contract_plane.etcd_url)

        async with Api.open(contract_plane.url, tls=contract_plane.ssl_context(), compact=compact) as api:
            await script(api)

    asyncio.run(run())


async def compact_etcd(url: str) -> None:
    """Forget etcd's history up to now, through its JSON gateway."""
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v3/kv/range", json={"key": "AA==", "limit": "1"}) as response:
            revision = (await response.json())["header"]["revision"]
        compaction = {"revision": revision, "physical": True}
        async with session.post(f"{url}/v3/kv/compaction", json=compaction) as response:
            assert response.status == 200, await response.text()
