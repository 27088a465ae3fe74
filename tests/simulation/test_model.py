"""The model API server keeps the contract: the same scripts run on it, on the embedded server and on kube-apiserver.

They reach it as the simulated schedulers do, through a network without faults and in virtual time. Those left out are
about what no scheduler asks for, and the model does not have: each says why.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import pytest

from scheduler.kube.errors import ApiError
from scheduler.kube.framing import LineSplitter
from tests.contract.scripts.client import Answer, Api, Json, Stream, unique
from tests.contract.test_apiserver_contract import ALL, Script
from tests.simulation.cluster import Cluster
from tests.simulation.model_api import ModelApi
from tests.simulation.network import Link, Traffic, Weather, WeatherOf
from tests.simulation.virtual_loop import VirtualLoop


class ModelStream(Stream):
    """An open watch of the model."""

    def __init__(self, chunks: AsyncIterator[bytes], status: int = 200) -> None:
        self.status = status
        self._chunks = chunks
        self._splitter = LineSplitter()
        self._lines: list[bytes] = []

    async def next(self, timeout_s: float = 10.0) -> tuple[str, Json] | None:
        async with asyncio.timeout(timeout_s):
            while not self._lines:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    return None
                self._lines += self._splitter.feed(chunk)
        event = json.loads(self._lines.pop(0))
        return event["type"], event["object"]


class ModelClient(Api):
    """Speaks to a model as a simulated scheduler does."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        api = ModelApi(loop.time)
        Cluster(api)
        chance = random.Random(0)
        weather = WeatherOf(Weather((), loop, chance), 0)
        self._link = Link(api, "contract", weather, chance, lambda *_: None, Traffic(), bookmark_s=1.0)
        self.namespace = unique("contract")

        async def compact() -> None:
            api.store.compact()

        self.compact = compact

    async def call(self, method, path, body=None, *, content_type="application/json", raw=None, **query) -> Answer:
        if query.get("watch"):
            return await self._refused_watch(path, query)
        data = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        path += f"?{urlencode(query)}" if query else ""
        response = await self._link.request(method, path, body=data, content_type=content_type, timeout_s=10.0)
        try:
            return Answer(response.status, json.loads(response.body))
        except ValueError:
            return Answer(response.status, response.body.decode())

    async def _refused_watch(self, path: str, query: Json) -> Answer:
        with pytest.raises(ApiError) as caught:
            async with self._link.stream(f"{path}?{urlencode(query)}", connect_timeout_s=10.0):
                pass
        return Answer(caught.value.status, {"reason": caught.value.reason, "message": caught.value.message})

    @asynccontextmanager
    async def watch(self, path, **query) -> AsyncIterator[Stream]:
        path += f"?{urlencode({'watch': 'true', **query})}"
        try:
            async with self._link.stream(path, connect_timeout_s=10.0) as chunks:
                yield ModelStream(chunks)
        except ApiError as error:
            yield ModelStream(aiter(()), error.status)


NOT_ASKED_FOR = {
    "bind_through_the_old_bindings_resource": "schedulers use the sub-resource",
    "unknown_media_types_are_unsupported": "they send JSON",
    "yaml_is_accepted": "they send JSON",
    "json_patch_that_does_not_fit_is_invalid": "they send merge patches",
    "dry_run_changes_nothing": "they mean what they write",
    "collections_are_deleted_by_selector": "they delete one pod at a time",
    "priority_comes_from_the_class": "the model has one class of its own instead of the system's",
    "access_reviews_are_answered": "the serving side is not simulated",
    "health_and_version": "the serving side is not simulated",
    "wrong_methods_are_not_allowed": "they use the right ones",
}
"""Scripts that the model need not pass -> why no scheduler misses it."""


@pytest.mark.parametrize("script", [each for each in ALL if each.values[0].__name__ not in NOT_ASKED_FOR])
def test_the_model_keeps_the_contract(script: Script) -> None:
    """The model does what the script asks."""

    async def run() -> None:
        api = ModelClient()
        answer = await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": api.namespace}})
        assert answer.code == 201, answer
        await script(api)

    loop = VirtualLoop()
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
