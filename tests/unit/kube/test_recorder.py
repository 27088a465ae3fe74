"""The recorder against an API server in memory: posting, series, retries, pressure."""

import asyncio
import json
import random

import pytest

from scheduler.kube.errors import TransportError
from scheduler.kube.event_series import Reference
from scheduler.kube.recorder import EventRecorder
from scheduler.kube.transport import Response

POD = Reference("Pod", "v1", "shop", "web", "uid-1", "17")
NEW = "/apis/events.k8s.io/v1"
CORE = "/api/v1"


class Server:
    """Keeps events; ``answers`` overrides the next answers to writes."""

    def __init__(self, *, has_group=True):
        self.has_group = has_group
        self.events, self.log, self.answers = {}, [], []
        self.probe_failures = 0

    async def request(self, method, path, *, body=None, content_type="application/json", timeout_s):
        if method == "GET":
            if self.probe_failures:
                self.probe_failures -= 1
                raise TransportError("refused", sent=False)
            return Response(200 if self.has_group else 404, {}, b"{}")
        self.log.append((method, path, content_type, json.loads(body)))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return Response(answer, {}, b'{"kind":"Status","reason":"Test"}')
        if method == "PATCH" and path not in self.events:
            return Response(404, {}, b"{}")
        obj = json.loads(body)
        key = path if method == "PATCH" else f"{path}/{obj['metadata']['name']}"
        self.events[key] = {**self.events.get(key, {}), **obj}
        return Response(201, {}, b"{}")

    async def close(self):
        """Nothing to close."""


class Counts:
    def __init__(self):
        self.posted, self.dropped = [], []

    def event_posted(self, verb):
        self.posted.append(verb)

    def event_dropped(self, reason):
        self.dropped.append(reason)


class Bench:
    """A recorder whose time runs only when told; sleeping parks the sleeper until ``advance``."""

    def __init__(self, server, **settings):
        self.server, self.counts = server, Counts()
        self.now_ns = 1769847300_000_000_000
        self.sleepers = []
        self.recorder = EventRecorder(
            server,
            hostname="host",
            random=random.Random(1),
            metrics=self.counts,
            now_ns=lambda: self.now_ns,
            sleep=self.sleep,
            **settings,
        )

    async def sleep(self, duration_s):
        done = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now_ns + int(duration_s * 1e9), done))
        await done

    async def settle(self):
        for _ in range(50):
            await asyncio.sleep(0)

    async def advance(self, seconds):
        until_ns = self.now_ns + int(seconds * 1e9)
        await self.settle()
        while due := [sleeper for sleeper in self.sleepers if sleeper[0] <= until_ns]:
            sleeper = min(due, key=lambda s: s[0])
            self.sleepers.remove(sleeper)
            self.now_ns = max(self.now_ns, sleeper[0])
            sleeper[1].set_result(None)
            await self.settle()
        self.now_ns = until_ns

    def emit(self, note="no fit", regarding=POD, **fields):
        self.recorder.emit(
            regarding,
            **{
                "controller": "podium",
                "kind": "Warning",
                "reason": "FailedScheduling",
                "action": "Scheduling",
                "note": note,
                **fields,
            },
        )


def play(script, server=None, **settings):
    async def run():
        bench = Bench(server or Server(), **settings)
        task = asyncio.create_task(bench.recorder.run())
        await bench.settle()
        try:
            await script(bench)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_event_is_posted_and_its_repetition_patched():
    async def script(bench):
        bench.emit()
        await bench.settle()
        bench.emit("other text")
        await bench.settle()
        bench.emit()
        await bench.settle()
        [(post, path, _, body), (patch, patched, content_type, series)] = bench.server.log
        assert (post, path) == ("POST", f"{NEW}/namespaces/shop/events")
        assert body["note"] == "no fit"
        assert (patch, patched) == ("PATCH", f"{path}/{body['metadata']['name']}")
        assert content_type == "application/merge-patch+json"
        assert series["series"]["count"] == 2
        assert bench.counts.posted == ["create", "patch"]

    play(script)


def test_events_emitted_before_the_start_are_not_lost():
    async def run():
        bench = Bench(Server())
        bench.emit()
        task = asyncio.create_task(bench.recorder.run())
        await bench.settle()
        assert len(bench.server.events) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_patch_of_a_vanished_event_creates_it_anew():
    async def script(bench):
        bench.emit()
        await bench.settle()
        bench.server.events.clear()
        bench.emit()
        await bench.settle()
        [event] = bench.server.events.values()
        assert event["series"]["count"] == 2

    play(script)


def test_event_that_cannot_be_encoded_costs_no_other():
    async def script(bench):
        bench.emit(reason="file \udcff")
        bench.emit(reason="Scheduled")
        await bench.settle()
        assert [event["reason"] for event in bench.server.events.values()] == ["Scheduled"]
        assert bench.counts.dropped == ["rejected"]

    play(script)


def test_full_queue_drops_and_counts_at_once():
    bench = Bench(Server(), capacity=2)
    for _ in range(5):
        bench.emit()
    assert bench.counts.dropped == ["queue_full"] * 3
    assert bench.recorder.depth == 2


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(TransportError("reset", sent=True), id="no answer"),
        pytest.param(500, id="server error"),
        pytest.param(429, id="too many requests"),
    ],
)
def test_passing_trouble_is_tried_again_after_ten_seconds(failure):
    async def script(bench):
        bench.server.answers = [failure]
        bench.emit()
        await bench.advance(9)
        assert len(bench.server.log) == 1
        await bench.advance(5)
        assert len(bench.server.events) == 1
        assert bench.counts.dropped == []

    play(script)


@pytest.mark.parametrize("after_s", [0.5, 4, 9.9, 10.1, 73])
def test_failure_is_tried_again_in_time_whenever_it_comes(after_s):
    """Who waits for retries sleeps long when there are none, but not past the first that comes meanwhile."""

    async def script(bench):
        await bench.advance(after_s)
        bench.server.answers = [500]
        bench.emit()
        await bench.advance(9.9)
        assert len(bench.server.log) == 1
        await bench.advance(2.7)
        assert len(bench.server.events) == 1

    play(script)


def test_nobody_wakes_up_often_for_retries_that_are_not_there():
    async def script(bench):
        sleeps, sleep = [], bench.recorder._sleep
        bench.recorder._sleep = lambda duration_s: (sleeps.append(duration_s), sleep(duration_s))[1]
        await bench.advance(600)
        assert len(sleeps) <= 61

    play(script)


def test_twelve_failures_are_enough():
    async def script(bench):
        bench.server.answers = [500] * 20
        bench.emit()
        await bench.advance(300)
        assert len(bench.server.log) == 12
        assert bench.counts.dropped == ["retries"]

    play(script)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422])
def test_refused_event_is_given_up(status):
    async def script(bench):
        bench.server.answers = [status]
        bench.emit()
        await bench.advance(100)
        assert len(bench.server.log) == 1
        assert bench.counts.dropped == ["rejected"]

    play(script)


def test_server_without_the_group_gets_core_events():
    async def script(bench):
        bench.emit()
        await bench.settle()
        bench.emit()
        await bench.settle()
        [event] = bench.server.events.values()
        assert bench.server.log[0][1] == f"{CORE}/namespaces/shop/events"
        assert (event["message"], event["count"]) == ("no fit", 2)

    play(script, Server(has_group=False))


def test_absent_server_is_asked_again_while_events_wait():
    async def script(bench):
        bench.emit()
        await bench.settle()
        assert bench.server.log == []
        await bench.advance(13)
        assert len(bench.server.events) == 1

    server = Server()
    server.probe_failures = 1
    play(script, server)


def test_series_whose_event_is_gone_is_not_posted_anew_without_the_lease():
    """It may have ended while the answer to the patch was on its way."""
    gate = [True, True, False]

    async def script(bench):
        bench.emit()
        await bench.settle()
        bench.server.events.clear()
        bench.emit()
        await bench.settle()
        assert [method for method, *_ in bench.server.log] == ["POST", "PATCH"]

    play(script, may_write=lambda _within_s: gate.pop(0) if gate else False)


def test_lease_events_go_to_core():
    async def script(bench):
        lease = Reference("Lease", "coordination.k8s.io/v1", "kube-system", "podium")
        bench.emit(regarding=lease, is_core=True, reason="LeaderElection", kind="Normal", action="")
        await bench.settle()
        assert bench.server.log[0][1] == f"{CORE}/namespaces/kube-system/events"

    play(script)


def test_binds_go_first_but_events_still_trickle():
    """While urgent writes wait, a post is held back for a quarter of a second, not for ever."""

    async def script(bench):
        bench.emit()
        await bench.advance(0.2)
        assert bench.server.log == []
        await bench.advance(0.2)
        assert len(bench.server.log) == 1

    play(script, is_busy=lambda: True)


def test_a_storm_is_written_sixteen_at_a_time():
    """As long as nothing more urgent waits; nothing is lost and nothing written twice."""

    async def script(bench):
        answer, at_once = asyncio.Event(), []
        plain = bench.server.request

        async def slowly(method, path, **rest):
            at_once.append(len(at_once) + 1)
            await answer.wait()
            return await plain(method, path, **rest)

        bench.server.request = slowly
        for number in range(40):
            bench.emit(regarding=Reference("Pod", "v1", "shop", f"web-{number}"))
        await bench.settle()
        assert len(at_once) == 16
        assert bench.recorder.depth == 40
        answer.set()
        await bench.settle()
        assert (len(bench.server.events), len(bench.server.log), bench.recorder.depth) == (40, 40, 0)

    play(script)


def test_series_is_finished_with_its_last_count():
    async def script(bench):
        bench.emit()
        await bench.settle()
        bench.emit()
        await bench.settle()
        bench.emit()
        await bench.advance(8 * 60)
        [event] = bench.server.events.values()
        assert event["series"]["count"] == 3

    play(script)


def test_drain_waits_for_what_is_queued():
    async def run():
        bench = Bench(Server())
        bench.recorder._sleep = asyncio.sleep
        task = asyncio.create_task(bench.recorder.run())
        for number in range(20):
            bench.emit(regarding=Reference("Pod", "v1", "shop", f"web-{number}"))
        await bench.recorder.drain(5.0)
        assert len(bench.server.events) == 20
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
