"""BindCall: it comes back only when the outcome is known, and says the truth."""

import asyncio
import random

import pytest

from scheduler.api import Code
from scheduler.binding.bind_call import BindCall
from scheduler.kube.errors import TransportError
from scheduler.kube.transport import Response
from scheduler.kube.writes import WRITE_TIMEOUT_S
from scheduler.model.pod import Pod
from scheduler.state.outcome import BindFailure, BindOutcome
from scheduler.state.store import Store
from scheduler.testing import pod

POD = pod("web").in_ns("shop").uid("u1").obj()
CUT = TransportError("reset", sent=True)
REFUSED_CONNECTION = TransportError("connection refused", sent=False, refused=True)


class Bench:
    def __init__(self, transport, clock, sleep):
        self.transport, self.clock, self.sleep = transport, clock, sleep
        self.store = Store()
        self.store.put(POD)
        self.outcomes = []
        self.may_write = True
        self.asked_for = []
        self.call = BindCall(
            transport,
            pods=self.store,
            clock=clock,
            random=random.Random(1),
            may_write=self._may_write,
            on_outcome=lambda outcome, was_unknown: self.outcomes.append((outcome, was_unknown)),
            sleep=sleep,
        )

    def _may_write(self, seconds):
        self.asked_for.append(seconds)
        return self.may_write

    def run(self):
        status = asyncio.run(self.call(POD, "n1"))
        assert self.call.unknown == 0
        return status


@pytest.fixture
def bench_of(server, clock, sleep):
    return lambda *answers: Bench(server(*answers), clock, sleep)


def test_bound_at_once(bench_of, say):
    """The request names the pod's UID and the node; success is None."""
    bench = bench_of(say(201))
    assert bench.run() is None
    ((method, path, body),) = bench.transport.sent
    assert (method, path) == ("POST", "/api/v1/namespaces/shop/pods/web/binding")
    assert body["metadata"] == {"name": "web", "namespace": "shop", "uid": "u1"}
    assert body["target"] == {"kind": "Node", "name": "n1"}
    assert bench.outcomes == [(BindOutcome.BOUND, False)]
    assert bench.asked_for == [WRITE_TIMEOUT_S]


@pytest.mark.parametrize(
    ("answers", "outcome", "methods"),
    [
        pytest.param([(409, ""), ("u1", "n1")], BindOutcome.BOUND, ["POST", "GET"], id="conflict, bound to our node"),
        pytest.param(
            [(409, ""), ("u1", "n2")], BindOutcome.LOST, ["POST", "GET"], id="conflict, bound to another node"
        ),
        pytest.param([(409, ""), ("u1", "")], BindOutcome.CONFLICT, ["POST", "GET"], id="conflict, not bound"),
        pytest.param([(409, ""), ("u2", "")], BindOutcome.GONE, ["POST", "GET"], id="conflict, made anew"),
        pytest.param([(409, ""), (404, "")], BindOutcome.GONE, ["POST", "GET"], id="conflict, deleted"),
        pytest.param([(404, "not found")], BindOutcome.GONE, ["POST"], id="no such pod"),
        pytest.param([(422, "bad")], BindOutcome.REFUSED, ["POST"], id="invalid"),
        pytest.param([(403, "no")], BindOutcome.REFUSED, ["POST"], id="forbidden"),
        pytest.param([(500, "etcd"), ("u1", "n1")], BindOutcome.BOUND, ["POST", "GET"], id="500, took effect"),
        pytest.param([CUT, ("u1", "n1")], BindOutcome.BOUND, ["POST", "GET"], id="swallowed answer, took effect"),
        pytest.param(
            [CUT, CUT, (500, ""), ("u1", "n2")], BindOutcome.LOST, ["POST", "GET", "GET", "GET"], id="reads fail"
        ),
        pytest.param([REFUSED_CONNECTION, (201, "")], BindOutcome.BOUND, ["POST", "POST"], id="restarting server"),
        pytest.param([(429, ""), (201, "")], BindOutcome.BOUND, ["POST", "POST"], id="too many requests"),
        pytest.param([(401, ""), (201, "")], BindOutcome.BOUND, ["POST", "POST"], id="token renewed"),
    ],
)
def test_outcomes(bench_of, say, show, answers, outcome, methods):
    """The outcome table of the reliability spec, played against a server."""
    script = [a if isinstance(a, Exception) else say(*a) if isinstance(a[0], int) else show(*a) for a in answers]
    bench = bench_of(*script)
    status = bench.run()
    assert [o for o, _ in bench.outcomes] == [outcome]
    assert bench.transport.methods == methods
    if outcome is BindOutcome.BOUND:
        assert status is None
    else:
        assert status.code is Code.ERROR
        assert isinstance(status.cause, BindFailure)
        assert status.cause.outcome is outcome
        assert status.message


def test_error_says_what_the_server_said(bench_of, say):
    """Without words of the server's, it says which pod and node."""
    assert "no etcd today" in bench_of(say(422, "no etcd today")).run().message
    status = bench_of(say(409), say(404)).run()
    assert "409" in status.message


def test_unknown_outcome_is_settled_by_patience(bench_of, show, clock):
    """Unbound counts when read twice, after the server must have given up; nothing is sent again."""
    started_s = clock.now()
    bench = bench_of(CUT, *[show("u1", "")] * 20)
    status = bench.run()
    assert status.cause.outcome is BindOutcome.UNREACHABLE
    assert bench.outcomes == [(BindOutcome.UNREACHABLE, True)]
    assert bench.transport.methods.count("POST") == 1
    assert clock.now() - started_s >= WRITE_TIMEOUT_S


def test_unknown_outcome_is_counted_while_it_lasts(bench_of, show):
    """The daemon shows how many binds are open, and the count comes down when one is cancelled."""
    bench = bench_of(CUT, show("u1", ""))

    async def play():
        seen = []

        async def sleep(seconds):
            seen.append(bench.call.unknown)
            if len(seen) == 2:
                raise asyncio.CancelledError

        bench.call._sleep = sleep
        with pytest.raises(asyncio.CancelledError):
            await bench.call(POD, "n1")
        return seen

    assert asyncio.run(play()) == [1, 1]
    assert bench.call.unknown == 0
    assert bench.outcomes == []


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        pytest.param(pod("web").in_ns("shop").uid("u1").on("n1").obj(), BindOutcome.BOUND, id="bound to our node"),
        pytest.param(pod("web").in_ns("shop").uid("u1").on("n2").obj(), BindOutcome.LOST, id="bound to another"),
        pytest.param(pod("web").in_ns("shop").uid("u2").obj(), BindOutcome.GONE, id="made anew"),
    ],
)
def test_watch_may_settle_it_before_a_read_does(bench_of, known, outcome):
    """What the watch has shown needs no request."""
    bench = bench_of(CUT)
    bench.store.put(known)
    bench.run()
    assert bench.transport.methods == ["POST"]
    assert bench.outcomes == [(outcome, True)]


def test_pod_that_the_watch_does_not_show_is_read(bench_of, say):
    """Its absence may only mean that the watch is late."""
    bench = bench_of(CUT, say(404))
    bench.store.remove(POD)
    bench.run()
    assert bench.transport.methods == ["POST", "GET"]
    assert bench.outcomes == [(BindOutcome.GONE, True)]


def test_nothing_is_sent_without_the_lease(bench_of):
    """Another replica may decide by now."""
    bench = bench_of()
    bench.may_write = False
    status = bench.run()
    assert status.cause.outcome is BindOutcome.UNREACHABLE
    assert "lease" in status.message
    assert bench.transport.sent == []


def test_lease_lost_between_two_tries(bench_of, say, sleep):
    """The first request was not carried out, the second is not sent."""
    bench = bench_of(say(429), say(201))

    async def sleep_and_lose(seconds):
        bench.may_write = False

    bench.call._sleep = sleep_and_lose
    assert bench.run().cause.outcome is BindOutcome.UNREACHABLE
    assert bench.transport.methods == ["POST"]


def test_retry_after_is_obeyed(bench_of, say, sleep):
    """The server says when to come back."""
    bench = bench_of(say(503, "", {"retry-after": "2"}), say(201))
    assert bench.run() is None
    assert sleep.slept[0] >= 2.0


def test_gives_up_at_the_deadline(bench_of, sleep):
    """A server that is away for long: the pod goes back to the queue, certainly unbound."""
    bench = bench_of(*[REFUSED_CONNECTION] * 100)
    assert bench.run().cause.outcome is BindOutcome.UNREACHABLE
    assert sum(sleep.slept) < 4.0
    assert set(bench.transport.methods) == {"POST"}


def test_binds_run_beside_one_another(bench_of, say):
    """Each call has a state of its own."""
    bench = bench_of(*[say(201)] * 10)

    async def play():
        return await asyncio.gather(*(bench.call(POD, f"n{i}") for i in range(10)))

    assert asyncio.run(play()) == [None] * 10
    assert bench.transport.most_under_way == 10
    assert isinstance(bench.store.get("shop/web"), Pod)


@pytest.mark.parametrize(
    ("refusal", "closed_s"),
    [
        pytest.param({"status": 429, "headers": {"retry-after": "2"}}, 2.0, id="429"),
        pytest.param({"status": 503, "headers": {"retry-after": "3"}}, 3.0, id="503 with Retry-After"),
        pytest.param({"status": 401}, 0.25, id="401: the others would hear the same"),
    ],
)
def test_refusal_that_is_not_about_the_pod_throttles_the_binds_until_one_is_answered(bench_of, say, refusal, closed_s):
    """Others wait too. A lost connection says nothing about the load."""
    bench = bench_of(say(refusal["status"], headers=refusal.get("headers", {})), say(201))
    moments = []
    sleep = bench.call._sleep

    async def look_and_sleep(seconds):
        now_s, limit = bench.clock.now(), bench.call.throttle.limit
        moments.append((limit(100, now_s), limit(100, now_s + 0.99 * closed_s), limit(100, now_s + closed_s)))
        await sleep(seconds)

    bench.call._sleep = look_and_sleep
    assert bench.run() is None
    assert moments[0] == (0, 0, 1)
    assert bench.call.throttle.is_open


def test_lost_connection_does_not_open_the_throttle(bench_of, say):
    """Only an answer shows that the server is there again for binds."""
    bench = bench_of(say(429, headers={"retry-after": "1"}), REFUSED_CONNECTION, say(404))
    open_then = []
    sleep = bench.call._sleep

    async def look_and_sleep(seconds):
        open_then.append(bench.call.throttle.is_open)
        await sleep(seconds)

    bench.call._sleep = look_and_sleep
    bench.run()
    assert open_then == [False, False]
    assert bench.call.throttle.is_open


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        pytest.param([("u1", "n1")], BindOutcome.BOUND, id="it took effect"),
        pytest.param([("u1", "")] * 9, BindOutcome.UNREACHABLE, id="it did not"),
        pytest.param([RuntimeError("bug"), ("u1", "n1")], BindOutcome.BOUND, id="the first reading breaks too"),
    ],
)
def test_after_a_bug_of_ours_the_outcome_is_unknown(bench_of, show, answers, outcome):
    """The request may have been sent: the room stays taken until the API server has said what is true."""
    readings = [show(*answer) if isinstance(answer, tuple) else answer for answer in answers]
    bench = bench_of(RuntimeError("bug"), *readings)
    bench.run()
    assert bench.outcomes == [(outcome, True)]
    assert bench.transport.methods.count("POST") == 1


@pytest.mark.parametrize(("node_name", "outcome"), [("n1", BindOutcome.BOUND), ("", BindOutcome.UNREACHABLE)])
def test_strangers_success_is_no_success(bench_of, show, node_name, outcome):
    """A login page is 200 to a bind, too: the pod is read back."""
    bench = bench_of(Response(200, {}, b"<html>"), *[show("u1", node_name)] * 20)
    bench.run()
    assert bench.outcomes == [(outcome, True)]
