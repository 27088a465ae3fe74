"""An extender of the model cluster: it keeps its pods off one pool and binds them itself, well or badly.

What the scheduler gives to it is carried out at once; the way there and back takes time only for what the scheduler
does beside its decisions (binding), because a decision waits for its answers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from scheduler.framework.extender import ExtenderError
from tests.simulation.cluster import Cluster
from tests.simulation.model_api import Json

__all__ = ["FORBIDDEN_POOL", "THING", "Extender"]

THING = "example.com/thing"
"""The resource that makes a pod the extender's business."""

FORBIDDEN_POOL = "pool-1"
_LATENCY_S = (0.0005, 0.01)
_NONSENSE = (b"<html>Welcome</html>", b'{"NodeNames":["nowhere"]}', b'{"Error":"sorry"}', b'{"NodeNames":7}', b"\xff")


class Extender:
    """As one scheduler process sees it.

    Args:
        cluster: where it binds.
        identity: of the process.
        chance: of latencies and answers.
        fails: says whether it fails this time.
        on_bind: is told when it is asked to bind: by whom, method, URL.
    """

    def __init__(
        self,
        cluster: Cluster,
        identity: str,
        chance: random.Random,
        fails: Callable[[], bool],
        on_bind: Callable[[str, str, str], None],
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._chance = chance
        self._fails = fails
        self._on_bind = on_bind

    def __call__(self, url: str, verb: str, body: bytes, /) -> bytes:
        question = msgspec.json.decode(body)
        return self._bind(url, question) if verb == "bind" else self._filter(url, question)

    async def run_blocking(self, function: Callable[[], Any], /) -> Any:
        """Do what waits for the extender: the answer takes a moment."""
        try:
            return function()
        finally:
            await asyncio.sleep(self._chance.uniform(*_LATENCY_S))

    def _filter(self, url: str, question: Json) -> bytes:
        if self._fails():
            if self._chance.random() < 0.5:
                raise ExtenderError(f'Post "{url}": connection refused')
            return self._chance.choice(_NONSENSE)
        kept = [name for name in question["NodeNames"] if self._is_allowed(name)]
        failed = {name: "not that pool" for name in question["NodeNames"] if name not in kept}
        return msgspec.json.encode({"NodeNames": kept, "FailedNodes": failed, "Error": ""})

    def _is_allowed(self, name: str) -> bool:
        node = self._cluster.node(name)
        return node is None or node["metadata"]["labels"].get("pool") != FORBIDDEN_POOL

    def _bind(self, url: str, question: Json) -> bytes:
        self._on_bind(self._identity, "POST", url)
        is_failing = self._fails()
        if is_failing and self._chance.random() < 0.5:
            raise ExtenderError(f'Post "{url}": connection refused')
        problem = self._cluster.bind_pod(question["PodName"], question["Node"], question["PodUID"], self._identity)
        if is_failing:
            raise ExtenderError(f'Post "{url}": no answer in time')
        return msgspec.json.encode({"Error": problem})
