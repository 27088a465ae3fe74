"""Comparing now and then: drift is counted, named and repaired by a list; failures are no findings."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from scheduler.app.comparing import Comparing
from scheduler.kube.errors import TransportError
from scheduler.kube.transport import Response
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.testing.harness import Harness


class Rounds(Exception):  # noqa: N818  no error
    """Enough rounds; ends ``Comparing.run``."""


class Reflector:
    def __init__(self):
        self.stats = SimpleNamespace(last_resource_version="5")
        self.asked = []

    def is_rejected(self, key):
        return False

    def request_relist(self, cause):
        self.asked.append(cause)


class Bench:
    """A core without anything in it, and a server that lists nodes."""

    def __init__(self, *nodes, is_deciding=True, error=None, rounds=1):
        self.nodes, self.error = nodes, error
        self.reflectors = {Node: Reflector(), Pod: Reflector()}
        self.drift, self.compared_, self.pauses = [], [], []
        self.left = rounds
        with Harness() as harness, capture_logs() as self.logs:
            comparing = Comparing(
                harness.core,
                self.reflectors,
                self,
                metrics=self,
                period_s=100.0,
                is_deciding=lambda: is_deciding,
                caught_up=self.caught_up,
                sleep=self.sleep,
            )
            with pytest.raises(Rounds):
                asyncio.run(comparing.run())

    async def sleep(self, seconds):
        if seconds > 50:
            self.left -= 1
            if self.left < 0:
                raise Rounds
        if seconds:
            self.pauses.append(seconds)

    async def caught_up(self):
        pass

    async def request(self, method, path, *, accept, timeout_s):
        if self.error:
            raise self.error
        items = [{"metadata": {"name": n, "uid": n, "resourceVersion": "3"}} for n in self.nodes if "/nodes" in path]
        return Response(200, {}, json.dumps({"metadata": {"resourceVersion": "6"}, "items": items}).encode())

    def cache_drift(self, kind, difference):
        self.drift.append((kind, difference))

    def compared(self, kind, result):
        self.compared_.append((kind, result))


def test_drift_is_counted_named_and_listed_again():
    """Only the kind that drifted is listed again, once however many objects differ."""
    bench = Bench(*(f"n{i}" for i in range(30)))
    assert sorted(bench.compared_) == [("Node", "drift"), ("Pod", "same")]
    assert bench.drift == [("Node", "missed")] * 30
    assert bench.reflectors[Node].asked == ["drift"]
    assert bench.reflectors[Pod].asked == []
    named = [entry["object"] for entry in bench.logs if entry["event"] == "object differs from the api server"]
    assert named == [f"n{i}" for i in range(20)], "a great many would drown the log"
    assert [entry["objects"] for entry in bench.logs if "objects" in entry] == [30]


def test_a_comparison_that_fails_finds_nothing():
    """The server is away: that is the reflectors' matter."""
    bench = Bench(error=TransportError("refused", sent=False, refused=True))
    assert sorted(bench.compared_) == [("Node", "failed"), ("Pod", "failed")]
    assert bench.reflectors[Node].asked == []
    assert bench.drift == []


def test_a_standby_does_not_compare():
    """It lists everything when it takes over; until then its lists would only be load."""
    assert Bench("n0", is_deciding=False).compared_ == []


def test_what_is_lost_is_found_and_repaired_within_the_period():
    """Pause and grace together are the period."""
    bench = Bench("n0", rounds=2)
    pause_s, grace_s = bench.pauses[:2]
    assert pause_s + grace_s == pytest.approx(100.0)
    assert len(bench.compared_) == 4
