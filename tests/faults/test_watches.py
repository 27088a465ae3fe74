"""Watches are cut, go silent, lose, double, swap or delay their lines: what the scheduler believes becomes true again."""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from scheduler.testing.pod_builder import PodBuilder
from tests.faults.bench import FaultBench, fault
from tests.faults.faketime import FakeClock
from tests.faults.history.audit import lists
from tests.faults.loads import L2_PODS, l2_nodes
from tests.faults.proxy import (
    Blackhole,
    CutMidLine,
    DelayRequest,
    DuplicateLines,
    FaultProxy,
    HoldLines,
    Lines,
    Match,
    MergeRecreated,
    ResetPeer,
    Rule,
    SwapLines,
    suppress_bookmarks,
)
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import condition, eventually

HOUR_S = 3600.0
WATCHES = Match(verb="watch")
POD_WATCH = Match(verb="watch", resource="pods")
CHANGES = Lines(types=("ADDED", "MODIFIED", "DELETED"))


def proxy_of(scheduler: SupervisedScheduler) -> FaultProxy:
    """Return the proxy between a scheduler and the API server."""
    assert isinstance(scheduler.proxy, FaultProxy)
    return scheduler.proxy


def opened(proxy: FaultProxy, resource: str = "pods") -> int:
    """Return how many watches of a resource have been asked for."""
    return sum((seen.request.verb, seen.request.resource) == ("watch", resource) for seen in list(proxy.requests))


def by_node(bench: FaultBench) -> Counter[str]:
    """Return how many pods are on each node."""
    return Counter(bench.cluster.bound().values())


@fault(8, "every watch cut mid-line each second for 30 s (L1)", starred=True)
def test_watches_cut_mid_line(bench: FaultBench) -> None:
    """Each goes on from the last whole line; nothing is listed again, nothing is lost or doubled."""
    scheduler = bench.scheduler("a", proxied=True)
    proxy = proxy_of(scheduler)
    begun_s = time.time()
    cutting = proxy.add(Rule(Match(verb="watch", window_s=(0.0, 30.0)), CutMidLine(after_s=1.0)))
    load = bench.load_l1(pods=1_700)
    bench.settle()
    bench.figure("N", at_most(2), bench.recovery_s(load, begun_s + 30.0), "s")
    bench.figure("watches cut", at_least(100), cutting.hits)
    relisted = lists(bench.audit.read(), scheduler.user, after_s=begun_s)
    bench.figure("lists", exactly(0), sum(relisted.values()))
    assert proxy.record.errors == []
    bench.verdict()


@fault(
    9,
    "410 in the pods' watch after a compaction, 200 deletions missed before it (L2)",
    starred=True,
    flags=("--watch-cache=false",),
)
def test_gone_after_compaction(bench: FaultBench) -> None:
    """The list shows what is missing; those pods are taken off their nodes, and the next 200 fill these exactly."""
    scheduler = bench.scheduler("a", proxied=True)
    proxy = proxy_of(scheduler)
    bench.load_l2().wait_created()
    bench.cluster.wait_bound(timeout_s=120.0)
    holding = proxy.add(Rule(POD_WATCH, HoldLines(None, CHANGES)))
    bench.cluster.delete(*(f"load-{number:04}" for number in range(200)))
    load = bench.load(200, 100.0, cpu="1", prefix="next").wait_created()
    compact(bench)
    watches = opened(proxy)
    proxy.add(Rule(Match(verb="watch", resource="pods", nth=1), ResetPeer()))
    eventually(lambda: opened(proxy) > watches, "the pods' watch to be opened anew", timeout_s=60.0)
    end_s = time.time()
    holding.remove()
    bench.settle()
    bench.figure("N", at_most(3), bench.recovery_s(load, end_s), "s")
    total = scheduler.daemon.metrics().total
    bench.figure("lists because of 410", at_least(1), total("podium_watch_relists_total", kind="Pod", cause="expired"))
    bench.figure("pods on each node", exactly(20), max(by_node(bench).values()))
    bench.figure("pods bound", exactly(L2_PODS), by_node(bench).total())
    assert proxy.record.errors == []
    bench.verdict()


def compact(bench: FaultBench) -> None:
    """Have etcd forget everything but the present, through its JSON gateway."""
    revision = bench.cluster.client.ok("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
    connection = http.client.HTTPConnection(bench.plane.etcd_url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", "/v3/kv/compaction", body=json.dumps({"revision": revision, "physical": True}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
    finally:
        connection.close()


@fault(10, "bookmarks suppressed in a quiet cluster for 3 minutes")
def test_no_bookmarks(bench: FaultBench) -> None:
    """Silence is answered by a new watch, and by nothing else: the scheduler stays ready and lists nothing."""
    scheduler = bench.scheduler("a", proxied=True)
    proxy = proxy_of(scheduler)
    proxy.add(Rule(WATCHES, suppress_bookmarks()))
    bench.cluster.create(bench.cluster.node())
    bench.cluster.create(bench.cluster.pod("first"))
    bench.cluster.wait_bound("first")
    begun_s, watches = time.time(), opened(proxy)
    unready = 0
    while time.time() < begun_s + 180.0:
        unready += scheduler.daemon.health("/readyz")[0] != 200
        time.sleep(2.0)
    bench.figure("probes not ready", exactly(0), unready)
    # After silence the server is asked for its newest version (`limit=1`): it may have been restored from a backup.
    requests = [request for request in bench.audit.read() if "limit=1" not in request.uri.partition("?")[2].split("&")]
    bench.figure("lists", exactly(0), sum(lists(requests, scheduler.user, after_s=begun_s).values()))
    bench.figure("new watches of pods", at_most(2), opened(proxy) - watches)
    asked_s = time.monotonic()
    bench.cluster.create(bench.cluster.pod("last"))
    bench.cluster.wait_bound("last")
    bench.figure("pod bound after", at_most(2), time.monotonic() - asked_s, "s")
    bench.settle()
    assert proxy.record.errors == []
    bench.verdict()


@fault(11, "pods' watch in a black hole, its connection alive, while others bind to our nodes (L2)", starred=True)
def test_silent_pod_watch(bench: FaultBench) -> None:
    """The server says that our pods are bound and the watch does not: nothing more is decided until pods are listed.

    Half of the pods may go to the first ten nodes; that is done in the black hole. Then somebody else fills the other
    ten, and they are opened: who still believed in the watch would bind 200 pods to nodes that are full.
    """
    scheduler = bench.scheduler("a", proxied=True)
    proxy = proxy_of(scheduler)
    cluster = bench.cluster
    pods = [cluster.pod(f"p{i:03}").requests(cpu="1").node_selector({"open": "yes"}) for i in range(200)]
    nodes = cluster.create(*l2_nodes(cluster))
    cluster.create(*pods)
    cluster.wait_unschedulable("p199")
    watches = opened(proxy)
    begun_s = time.time()
    hole = proxy.add(Rule(POD_WATCH, Blackhole()))
    for node in nodes[:5]:
        open_node(bench, node["metadata"]["name"])
    eventually(lambda: len(cluster.bound()) == 100, "100 pods on the first five nodes", timeout_s=60.0)
    cluster.create(*(foreign(bench, f"foreign-{i:03}", n["metadata"]["name"]) for i, n in enumerate(nodes[5:10] * 20)))
    detected_s = wait_distrust(scheduler)
    for node in nodes[5:15]:
        open_node(bench, node["metadata"]["name"])
    eventually(lambda: opened(proxy) > watches, "the pods' watch to be opened anew", timeout_s=100.0)
    hole.remove()
    end_s = time.time()
    bench.settle()
    bench.figure("detected after", at_most(90), detected_s - begun_s, "s")
    bench.figure("N", at_most(3), max(bench.bound_at().values()) - end_s, "s")
    bench.figure("fullest node", exactly(20), max(by_node(bench).values()))
    bench.figure("pods bound", exactly(300), by_node(bench).total())
    assert proxy.record.errors == []
    bench.verdict()


@fault(11, "every watch in a black hole for an hour that passes at once, without election")
def test_watches_silent_for_an_hour(bench: FaultBench, tmp_path: Path) -> None:
    """They are opened anew in vain; it says since when it has heard nothing, and goes on once it hears again."""
    clock = FakeClock(tmp_path, is_steady_too=True)
    scheduler = bench.scheduler("a", elect=False, proxied=True, environment=clock.environment)
    proxy = proxy_of(scheduler)
    bench.cluster.create(bench.cluster.node(), bench.cluster.pod("first"))
    bench.cluster.wait_bound("first")
    watches = opened(proxy)
    hole = proxy.add(Rule(WATCHES, Blackhole()))
    clock.set(HOUR_S)
    eventually(lambda: opened(proxy) > watches, "the pods' watch to be opened anew", timeout_s=60.0)
    eventually(lambda: stalest_s(scheduler) >= HOUR_S, "the silence to be told")
    bench.sampler.wait_asked(scheduler)
    load = bench.load(50, 50.0, cpu="1m")
    load.wait_created()
    hole.remove()
    end_s = time.time()
    bench.settle(120)
    bench.figure("N", at_most(10), max(bench.bound_at().values()) - end_s, "s")
    bench.figure("restarts", exactly(0), scheduler.restarts)
    bench.verdict()


def stalest_s(scheduler: SupervisedScheduler) -> float:
    return max(age_s for _, age_s in scheduler.daemon.metrics().series("podium_watch_staleness_seconds"))


def foreign(bench: FaultBench, name: str, node_name: str) -> PodBuilder:
    """Return a pod that somebody else has put on a node."""
    return bench.cluster.pod(name).requests(cpu="1").scheduler("somebody-else").set("spec.nodeName", node_name)


def open_node(bench: FaultBench, name: str) -> None:
    """Let pods go to a node that ask for an open one."""
    bench.cluster.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"open": "yes"}}})


def wait_distrust(scheduler: SupervisedScheduler, timeout_s: float = 40.0) -> float:
    """Wait until the scheduler says that it does not believe the watch; returns when that was, or infinity."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        if "does not show our binds" in scheduler.log():
            return time.time()
        time.sleep(0.2)
    return float("inf")


@fault(13, "each line of every watch twice; each pair of lines swapped (L2 with 100 pods deleted and created again)")
@pytest.mark.parametrize("action", [DuplicateLines(), SwapLines()], ids=["twice", "swapped"])
def test_lines_doubled_or_swapped(action: DuplicateLines | SwapLines, bench: FaultBench) -> None:
    """The end is the only one that a clean run could have: 20 nodes with 20 pods each, each bound once."""
    scheduler = bench.scheduler("a", proxied=True)
    proxy = proxy_of(scheduler)
    spoiling = proxy.add(Rule(WATCHES, action))
    bench.load_l2().wait_created()
    bench.cluster.wait_bound(timeout_s=120.0)
    bench.cluster.delete(*(f"load-{number:04}" for number in range(0, 400, 4)))
    bench.load(100, 200.0, cpu="1", prefix="again")
    bench.settle()
    bench.figure("lines spoilt", at_least(800), spoiling.hits)
    bench.figure("nodes with 20 pods", exactly(20), sum(count == 20 for count in by_node(bench).values()))
    total = scheduler.daemon.metrics().total
    bench.figure("binds", exactly(500), total("podium_bind_outcomes_total", outcome="bound"))
    assert proxy.record.errors == []
    bench.verdict()


@fault(14, "pods deleted and created again under their names, seen as one change with another UID (L2)")
def test_recreated_pods_seen_as_changed(bench: FaultBench) -> None:
    """The old pods leave their nodes, the new ones are scheduled, once each, and fit exactly."""
    scheduler = bench.scheduler("a", proxied=True)
    proxy = proxy_of(scheduler)
    bench.load_l2().wait_created()
    bench.cluster.wait_bound(timeout_s=120.0)
    merging = proxy.add(Rule(POD_WATCH, MergeRecreated()))
    names = [f"load-{number:04}" for number in range(0, 400, 4)]
    old = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bench.cluster.pods()}
    for name in names:
        bench.cluster.delete(name)
        bench.cluster.create(bench.cluster.pod(name).requests(cpu="1"))
    eventually(lambda: merging.hits == 2 * len(names), "the watch to deliver all of it", timeout_s=60.0)
    bench.settle()
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in bench.cluster.pods()}
    bench.figure("pods with a new UID", exactly(100), sum(uids[name] != old[name] for name in names))
    bench.figure("nodes with 20 pods", exactly(20), sum(count == 20 for count in by_node(bench).values()))
    total = scheduler.daemon.metrics().total
    bench.figure("binds", exactly(500), total("podium_bind_outcomes_total", outcome="bound"))
    assert proxy.record.errors == []
    bench.verdict()


def told_of_no_nodes(bench: FaultBench, since_s: float) -> int:
    """Return how many pods have been told since then that there are no nodes at all."""
    pods = [version.object for version in bench.history().versions if version.kind == "Pod" and version.at_s > since_s]
    told = [pod for pod in pods if "no nodes available" in (condition(dict(pod)) or {}).get("message", "")]
    return len({pod["metadata"]["uid"] for pod in told})


@fault(15, "nodes 10 s behind pods at the start, and their watch 10 s late (L2)")
def test_nodes_behind_pods(bench: FaultBench) -> None:
    """Nothing is decided before all nodes are known; pods on a node that is not known yet count once it is."""
    scheduler = bench.scheduler("a", proxied=True, elect=False)
    proxy = proxy_of(scheduler)
    proxy.add(Rule(Match(verb="list", resource="nodes"), DelayRequest(10.0)))
    proxy.add(Rule(Match(verb="watch", resource="nodes"), HoldLines(10.0, CHANGES)))
    *nodes, last = l2_nodes(bench.cluster)
    bench.cluster.create(*nodes)
    restarted_s = time.time()
    scheduler.kill()
    eventually(lambda: scheduler.restarts == 1, "the restart", timeout_s=60.0)
    load = bench.load(L2_PODS - 5, 200.0, cpu="1").wait_created()
    bench.cluster.wait_bound(*load.created[:100], timeout_s=60.0)
    first_s = min(at_s for at_s in bench.bound_at().values() if at_s > restarted_s)
    listed = [r for r in bench.audit.read() if (r.user, r.verb, r.resource) == (scheduler.user, "list", "nodes")]
    bench.figure("binds before nodes were listed", exactly(0), float(first_s < max(r.finished_s for r in listed)))
    bench.figure("pods told that there are no nodes", exactly(0), told_of_no_nodes(bench, restarted_s))
    bench.cluster.create(last)
    bench.cluster.create(*(foreign(bench, f"foreign-{i}", f"{bench.cluster.namespace}-n19") for i in range(5)))
    bench.settle()
    bench.figure("nodes with 20 pods", exactly(20), sum(count == 20 for count in by_node(bench).values()))
    assert proxy.record.errors == []
    bench.verdict()
