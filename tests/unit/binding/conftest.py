"""Surroundings of the binding side: a scripted API server, a clock that sleep moves, a recording core."""

import asyncio
import json

import pytest

from scheduler.kube.transport import JSON, Response
from scheduler.testing import FakeClock


class ScriptedServer:
    """A Transport that answers in order; keeps what it was sent and how many requests are under way."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []
        self.under_way = 0
        self.most_under_way = 0
        self.gate = None

    async def request(self, method, path, *, body=None, content_type=JSON, timeout_s):
        self.sent.append((method, path.split("?")[0], json.loads(body) if body else None))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(0)
            step = self.answers.pop(0) if self.answers else answer(200)
        finally:
            self.under_way -= 1
        if isinstance(step, Exception):
            raise step
        return step

    @property
    def methods(self):
        return [method for method, _, _ in self.sent]


def answer(status, message="", headers=None):
    return Response(status, headers or {}, json.dumps({"kind": "Status", "message": message}).encode())


def shown(uid="", node_name=""):
    return Response(200, {}, json.dumps({"metadata": {"uid": uid}, "spec": {"nodeName": node_name}}).encode())


@pytest.fixture
def server():
    return ScriptedServer


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def sleep(clock):
    """Sleep that moves the fake clock."""

    async def move(seconds):
        move.slept.append(seconds)
        clock.advance(seconds)
        await asyncio.sleep(0)

    move.slept = []
    return move


@pytest.fixture
def say():
    """How the server words its answers."""
    return answer


@pytest.fixture
def show():
    """How the server shows a pod."""
    return shown
