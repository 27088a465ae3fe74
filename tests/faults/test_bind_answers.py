"""Answers to binds are lost, late, wrong, or say "not now": every pod is bound once, and no place is given away twice."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise

from tests.faults.bench import FaultBench, fault
from tests.faults.history.record import Request, is_bind
from tests.faults.loads import L2_PODS, l2_nodes
from tests.faults.proxy import (
    DropAnswer,
    DropRequest,
    FaultProxy,
    HoldLines,
    Line,
    Lines,
    Match,
    Reply,
    Rule,
    Seen,
)
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import Json, eventually

CONFLICT = "made up by the test: operation cannot be fulfilled"


def spoil(scheduler: SupervisedScheduler, *rules: Rule) -> FaultProxy:
    """Put rules in use on the way of a scheduler."""
    proxy = scheduler.proxy
    assert isinstance(proxy, FaultProxy)
    for rule in rules:
        proxy.add(rule)
    return proxy


def binds(proxy: FaultProxy, is_meant: Callable[[Seen], bool] = lambda _: True) -> dict[str, list[Seen]]:
    """Return the bind requests that came, by pod, in their order."""
    found: dict[str, list[Seen]] = defaultdict(list)
    for seen in list(proxy.requests):
        if seen.request.resource == "pods/binding" and is_meant(seen):
            found[seen.request.name].append(seen)
    return found


def wait_nothing_unknown(scheduler: SupervisedScheduler) -> float:
    """Wait until no bind of unknown outcome is left; returns the seconds that took."""
    begun_s = time.monotonic()

    def is_so() -> bool:
        metrics = scheduler.daemon.metrics()
        assumed = metrics.total("scheduler_cache_size", type="assumed_pods")
        return assumed == 0 and metrics.total("scheduler_goroutines", operation="binding") == 0

    eventually(is_so, "every bind to have an outcome", timeout_s=60.0)
    return time.monotonic() - begun_s


def shows_a_bind(line: Line) -> bool:
    """Tell whether a line of the watch says that a pod is on a node."""
    return bool(line.event["object"].get("spec", {}).get("nodeName"))


@fault(16, "half of the binds carried out, their answers lost; the pods' watch 20 s late (L2)", starred=True)
def test_answers_lost_and_watch_late(bench: FaultBench) -> None:
    """Until it is known what became of a bind its place stays taken, so 20 exactly full nodes come out exactly full."""
    scheduler = bench.scheduler("a", proxied=True)
    bench.load(L2_PODS, 200.0, cpu="1").wait_created()
    bench.cluster.wait_unschedulable(f"load-{L2_PODS - 1:04}")
    late = HoldLines(20.0, Lines(types=("MODIFIED",), where=shows_a_bind))
    spoil(scheduler, Rule(Match(verb="watch", resource="pods", window_s=(0.0, 30.0)), late))
    proxy = spoil(scheduler, Rule(Match(verb="create", resource="pods/binding", probability=0.5), DropAnswer()))
    begun_s = time.monotonic()
    bench.cluster.create(*l2_nodes(bench.cluster))
    bench.settle(120.0)
    bench.figure("all bound after", at_most(60), time.monotonic() - begun_s, "s")
    wait_nothing_unknown(scheduler)
    lost = sum(decision.action.startswith("DropAnswer") for decision in proxy.decisions)
    bench.figure("answers lost", at_least(50), lost)
    succeeded = Counter(r.binding_uid for r in bench.history().binds() if r.is_done)
    bench.figure("pods with a second successful bind", exactly(0), sum(count > 1 for count in succeeded.values()))
    bench.figure("pods on the fullest node", exactly(20), max(Counter(bench.cluster.bound().values()).values()))
    assert proxy.record.errors == []
    bench.verdict()


@fault(17, "20 % of the binds dropped before the API server has them, for 12 s (L1)")
def test_requests_dropped(bench: FaultBench) -> None:
    """Nobody can tell from outside whether they were carried out: they are read back, then decided anew."""
    scheduler = bench.scheduler("a", proxied=True)
    match = Match(verb="create", resource="pods/binding", probability=0.2, window_s=(0.0, 12.0))
    proxy = spoil(scheduler, Rule(match, DropRequest()))
    end_s = time.time() + 12.0
    load = bench.load_l1()
    bench.settle()
    bench.figure("N", at_most(2), bench.recovery_s(load, end_s), "s")
    dropped = binds(proxy, lambda seen: not seen.is_forwarded)
    bench.figure("pods whose bind was dropped", at_least(50), len(dropped))
    bound = {pod["metadata"]["name"] for pod in bench.cluster.pods() if pod["spec"].get("nodeName")}
    bench.figure("of them bound at last", exactly(len(dropped)), len(dropped.keys() & bound))
    wait_nothing_unknown(scheduler)
    assert proxy.record.errors == []
    bench.verdict()


@fault(18, "30 % of the binds carried out and answered with 409 (L2)")
def test_conflict_that_is_none(bench: FaultBench) -> None:
    """The pod is read back and is where we wanted it: bound, and nobody is told anything else."""
    scheduler = bench.scheduler("a", proxied=True)
    match = Match(verb="create", resource="pods/binding", probability=0.3)
    conflict = Reply(409, reason="Conflict", message=CONFLICT, is_forwarded=True)
    proxy = spoil(scheduler, Rule(match, conflict))
    bench.load_l2()
    bench.settle()
    wait_nothing_unknown(scheduler)
    refused = binds(proxy, lambda seen: seen.status == 409)
    bench.figure("binds answered with 409", at_least(50), len(refused))
    bench.figure("requests for one pod", at_most(1), max(len(requests) for requests in binds(proxy).values()))
    total = scheduler.daemon.metrics().total
    bench.figure("outcomes bound", exactly(400), total("podium_bind_outcomes_total", outcome="bound"))
    eventually(lambda: len(scheduled_events(bench)) == 400, "a Scheduled event for each pod")
    counts = scheduled_events(bench)
    bench.figure("pods with two Scheduled events", exactly(0), sum(count > 1 for count in counts.values()))
    claims = [event for event in events(bench) if CONFLICT in event.get("note", "")]
    bench.figure("events that claim a failure", exactly(0), len(claims))
    assert proxy.record.errors == []
    bench.verdict()


def scheduled_events(bench: FaultBench) -> Counter[str]:
    """Return how many Scheduled events each pod has."""
    return Counter(event["regarding"]["name"] for event in events(bench) if event["reason"] == "Scheduled")


def events(bench: FaultBench) -> list[Json]:
    """Return the events about the test's pods."""
    path = f"/apis/events.k8s.io/v1/namespaces/{bench.cluster.namespace}/events"
    found: list[Json] = bench.cluster.client.ok("GET", path)["items"]
    return found


@fault(21, "429 with Retry-After 2 on all writes but leases for 20 s (L1)")
def test_too_many_requests(bench: FaultBench) -> None:
    """The server says when to come again, and that is when we come, with one bind first."""
    scheduler = bench.scheduler("a", proxied=True)
    load = bench.load_l1()
    load.wait_created(200)
    busy = Reply(429, reason="TooManyRequests", message="please try again later", retry_after_s=2)
    begun_s = time.time()
    but_leases = r"^(?!.*/leases)"  # API servers serve them at a level of priority of their own
    rules = [
        Rule(Match(verb=verb, path=but_leases, window_s=(0.0, 20.0)), busy) for verb in ("create", "update", "patch")
    ]
    proxy = spoil(scheduler, *rules)
    end_s = begun_s + 20.0
    bench.settle(90.0)
    bench.figure("N", at_most(3), bench.recovery_s(load, end_s), "s")
    refused = binds(proxy, lambda seen: seen.status == 429)
    assert refused, "no bind was refused: nothing was tested"
    attempts = [attempt for requests in refused.values() for attempt in _attempts(requests)]
    bench.figure("extra requests of one bind", at_most(1), max(len(attempt) for attempt in attempts) - 1)
    bench.figure("binds refused", at_most(150), sum(map(len, refused.values())))
    gaps = [_smallest_gap_s(requests) for requests in refused.values()]
    bench.figure("requests earlier than Retry-After", exactly(0), sum(gap_s < 1.9 for gap_s in gaps))
    bench.figure("restarts", exactly(0), scheduler.restarts)
    assert proxy.record.errors == []
    bench.verdict()


@fault(
    21,
    "an API server that carries out two writes at a time, and answers others with 429 (400 pods at once)",
    flags=("--max-mutating-requests-inflight=2",),
)
def test_two_writes_at_a_time(bench: FaultBench) -> None:
    """Binds that come all at once are refused by the API server itself; nothing is lost, and the lease is kept."""
    scheduler = bench.scheduler("a")
    load = bench.load_l1(pods=400, rate=200.0, closed=True).wait_created()
    bench.open_nodes(load)
    opened_s = time.time()
    bench.settle(120.0)
    refused = [request for request in bench.audit.read() if request.user == scheduler.user and request.code == 429]
    sent: dict[str, list[Request]] = defaultdict(list)
    for request in bench.history().binds():
        sent[request.key].append(request)
    bench.figure("binds refused by the API server", at_least(1), sum(map(is_bind, refused)))
    bench.figure("binds sent for each pod on average", at_most(2), sum(map(len, sent.values())) / len(sent))
    bench.note(f"{len(refused)} writes of all kinds were refused by it")
    bench.figure("all bound after", at_most(60), max(bench.bound_at().values()) - opened_s, "s")
    gaps = [
        later.received_s - earlier.finished_s
        for requests in sent.values()
        for earlier, later in pairwise(sorted(requests, key=lambda request: request.received_s))
        if earlier.code == 429
    ]
    bench.figure("binds earlier than Retry-After (1 s)", exactly(0), sum(gap_s < 0.9 for gap_s in gaps))
    bench.figure("pods bound", exactly(400), len(bench.cluster.bound()))
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.verdict()


def _attempts(requests: list[Seen]) -> list[list[Seen]]:
    """Split the requests for one pod into those of each decision: a decision sends for 4 s at most."""
    attempts: list[list[Seen]] = []
    for seen in requests:
        if not attempts or seen.at_s - attempts[-1][0].at_s > 4.0:
            attempts.append([])
        attempts[-1].append(seen)
    return attempts


def _smallest_gap_s(requests: list[Seen]) -> float:
    return min((later.at_s - seen.ended_s for seen, later in pairwise(requests) if seen.status == 429), default=9.0)


@fault(22, "500 for 30 % of the binds, 504 after the write for 10 % (L1)")
def test_server_errors(bench: FaultBench) -> None:
    """Of a 5xx nobody can tell whether the write happened; each is read back until it is known."""
    scheduler = bench.scheduler("a", proxied=True)
    failed = Match(verb="create", resource="pods/binding", probability=0.3, window_s=(0.0, 30.0))
    after_all = Match(verb="create", resource="pods/binding", probability=0.1, window_s=(0.0, 30.0))
    proxy = spoil(scheduler, Rule(failed, Reply(500)), Rule(after_all, Reply(504, reason="Timeout", is_forwarded=True)))
    load = bench.load_l1()
    unknown = 0.0
    while len(load.created) < load.pods:
        unknown = max(unknown, scheduler.daemon.metrics().total("podium_binds_unknown"))
        time.sleep(0.2)
    bench.settle()
    wait_nothing_unknown(scheduler)
    bench.figure("binds answered with 500", at_least(100), len(binds(proxy, lambda seen: seen.status == 500)))
    late = binds(proxy, lambda seen: seen.status == 504 and seen.server_status == 201)
    bench.figure("binds answered with 504 after the write", at_least(30), len(late))
    bench.figure("unknown at a time", at_least(1), unknown)
    bench.figure("unknown at the end", exactly(0), scheduler.daemon.metrics().total("podium_binds_unknown"))
    assert proxy.record.errors == []
    bench.verdict()
