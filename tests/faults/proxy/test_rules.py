"""Which requests a rule is for, and that chance is the same in each run."""

from __future__ import annotations

import asyncio
import json
import queue

import pytest

from tests.faults.proxy import FaultProxy, Match, Reply, Rule
from tests.faults.proxy.conftest import WAIT_S, Connect, Server
from tests.faults.proxy.record import Record
from tests.faults.proxy.request import Request, read_request
from tests.faults.proxy.rules import RuleBook

PODS = "/api/v1/pods"


@pytest.mark.parametrize(
    ("method", "target", "verb", "resource", "namespace", "name"),
    [
        ("GET", "/api/v1/pods?limit=500", "list", "pods", "", ""),
        ("GET", "/api/v1/pods?watch=1&resourceVersion=7", "watch", "pods", "", ""),
        ("GET", "/api/v1/namespaces/a/pods/p", "get", "pods", "a", "p"),
        ("GET", "/api/v1/namespaces/a", "get", "namespaces", "", "a"),
        ("GET", "/api/v1/nodes?watch=false", "list", "nodes", "", ""),
        ("POST", "/api/v1/namespaces/a/pods/p/binding?timeout=4s", "create", "pods/binding", "a", "p"),
        ("PATCH", "/api/v1/namespaces/a/pods/p/status", "patch", "pods/status", "a", "p"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/k/leases/l", "update", "leases", "k", "l"),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "pods", "a", ""),
        ("GET", "/readyz", "get", "", "", ""),
        ("GET", "/apis/apps/v1", "get", "", "", ""),
    ],
)
def test_requests_are_read_as_the_audit_log_names_them(
    method: str, target: str, verb: str, resource: str, namespace: str, name: str
) -> None:
    """Verb, resource with subresource, namespace and name."""
    found = read_request("ann", method, target, "agent/1")
    assert (found.verb, found.resource, found.namespace, found.name) == (verb, resource, namespace, name)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (Match(), True),
        (Match(verb="create", resource="pods/binding"), True),
        (Match(resource="pods"), False),
        (Match(path=r"/namespaces/a/"), True),
        (Match(path=r"/namespaces/b/"), False),
        (Match(client="ann"), True),
        (Match(client="bob"), False),
        (Match(user_agent=r"^podium/"), True),
        (Match(user_agent=r"^kube-scheduler/"), False),
    ],
)
def test_match(match: Match, expected: bool) -> None:
    """What is given must fit; what is not given does not matter."""
    assert match.fits(read_request("ann", "POST", "/api/v1/namespaces/a/pods/p/binding", "podium/1")) is expected


def chosen(seed: int, match: Match, count: int = 40, *, before: int = 0) -> list[int]:
    """Return which of `count` requests a rule picks, after others were added."""

    async def run() -> list[int]:
        book = RuleBook(seed, Record(), asyncio.get_running_loop())
        for _ in range(before):
            book.add(Rule(Match(), Reply(500)))
        handle = book.add(Rule(match, Reply(500)))
        return [number for number in range(1, count + 1) if handle.picks()]

    return asyncio.run(run())


def test_number_and_chance() -> None:
    """`nth` counts from 1; chance depends on the seed and the rule's number only."""
    assert chosen(1, Match(nth=3)) == [3]
    assert chosen(1, Match(nth=range(2, 5))) == [2, 3, 4]
    some = chosen(1, Match(probability=0.3))
    assert 0 < len(some) < 40
    assert some == chosen(1, Match(probability=0.3))
    assert some != chosen(2, Match(probability=0.3))
    assert some != chosen(1, Match(probability=0.3), before=1)


def test_window_opens_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time window counts from when the rule was added."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    async def run() -> None:
        nonlocal now
        book = RuleBook(1, Record(), asyncio.get_running_loop())
        handle = book.add(Rule(Match(window_s=(1.0, 3.0)), Reply(500)))
        assert list(book.active()) == []
        now = 101.0
        assert list(book.active()) == [handle]
        now = 103.0
        assert list(book.active()) == []

    asyncio.run(run())


def test_identity_passes_and_rules_tell_clients_apart(server: Server, proxy: FaultProxy, connect: Connect) -> None:
    """The server sees each client's own user; a rule for one does not touch the other."""
    handle = proxy.add(Rule(Match(client="bob"), Reply(429, retry_after_s=2)))
    assert connect("ann").get().status == 200
    answer = connect("bob").get()
    assert (answer.status, answer.headers["Retry-After"]) == (429, "2")
    assert json.loads(answer.read())["details"] == {"retryAfterSeconds": 2}
    assert server.asked.get(timeout=WAIT_S)[3] == "ann"
    with pytest.raises(queue.Empty):
        server.asked.get_nowait()
    assert handle.hits == 1


def test_removed_rules_do_nothing(proxy: FaultProxy, connect: Connect) -> None:
    """One by one, or all at once."""
    first, second = proxy.add(Rule(Match(), Reply(500))), proxy.add(Rule(Match(), Reply(503)))
    client = connect()
    first.remove()
    answer = client.get()
    assert answer.status == 503
    answer.read()
    proxy.clear()
    assert client.get().status == 200
    assert (first.hits, second.hits) == (0, 1)


def test_everything_is_recorded(proxy: FaultProxy, connect: Connect) -> None:
    """Requests and decisions are there for the test, and as JSON lines for who reads a failed run."""
    proxy.add(Rule(Match(nth=2), Reply(500)))
    client = connect()
    for status in (200, 500):
        answer = client.get(PODS, **{"User-Agent": "agent/1"})
        assert answer.status == status
        answer.read()
    assert [(seen.request.verb, seen.is_forwarded, seen.status) for seen in proxy.requests] == [
        ("list", True, 200),
        ("list", False, 500),
    ]
    (decision,) = proxy.decisions
    assert decision.rule == 1
    assert decision.action.startswith("Reply(status=500")
    assert decision.request == Request("ann", "list", "GET", PODS, "agent/1", "pods")
    assert proxy.record.file is not None
    lines = [json.loads(line) for line in proxy.record.file.read_text().splitlines()]
    assert [line["what"] for line in lines][:2] == ["request", "end"]
    assert [line["action"][:5] for line in lines if line["what"] == "decision"] == ["Reply"]
    assert all(line["client"] == "ann" for line in lines)
