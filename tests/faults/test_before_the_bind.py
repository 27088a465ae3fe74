"""What can happen to a pod or its node between the decision and the bind, met at exactly that moment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.faults.bench import FaultBench, fault
from tests.faults.neighbours import wait_done, waits_s
from tests.faults.results import at_least, at_most, exactly
from tests.faults.supervisor import SupervisedScheduler
from tests.integration.api import Client, Json, eventually, unique
from tests.integration.settled import on_node, wait_told
from tests.integration.third_party.install import install

BEFORE_SEND = "bind.before_send"
CASE = "case"


def total(scheduler: SupervisedScheduler, name: str, **labels: str) -> float:
    return scheduler.daemon.metrics().total(name, **labels)


def outcomes(scheduler: SupervisedScheduler, outcome: str) -> float:
    return total(scheduler, "podium_bind_outcomes_total", outcome=outcome)


def gatekeepers(signals: Path) -> Json:
    """Return a profile's fields: pods labelled `hold` wait in PreBind for a file, gangs in Permit for each other."""
    return {
        "plugins": {"multiPoint": {"enabled": [{"name": "HoldPreBind"}, {"name": "GangPermit"}]}},
        "pluginConfig": [
            {"name": "HoldPreBind", "args": {"directory": str(signals)}},
            {"name": "GangPermit", "args": {"waitSeconds": 60}},
        ],
    }


def uids(pods: list[Json]) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


@fault(19, "pods deleted, or created anew under their names, just before their binds are sent")
def test_pod_replaced_before_its_bind(bench: FaultBench) -> None:
    """404 and the wrong UID: the old pod is gone, the new one is scheduled by itself."""
    scheduler = bench.scheduler(elect=False, failpoints=True)
    cluster = bench.cluster
    cluster.create(cluster.node("n", cpu="20", pods="200"))
    deleted, replaced = [f"d{i}" for i in range(10)], [f"r{i}" for i in range(10)]
    with bench.failpoints.paused(BEFORE_SEND) as moment:
        old = uids(cluster.create(*map(cluster.pod, deleted + replaced)))
        moment.wait(times=20)
        cluster.delete(*deleted, *replaced)
        new = uids(cluster.create(*map(cluster.pod, replaced)))
    bench.settle()
    done = [r for r in bench.history().binds() if r.is_done]
    bench.figure("binds to a wrong UID", exactly(0), sum(r.binding_uid in old.values() for r in done))
    bench.figure("binds of new pods", exactly(10), sum(r.binding_uid in new.values() for r in done))
    eventually(lambda: outcomes(scheduler, "gone") == 20, "every old bind to have its outcome")
    assert {name: uid for name, uid in uids(cluster.pods()).items() if name in cluster.bound()} == new
    bench.verdict()


@fault(24, "node deleted, cordoned, shrunk or tainted between decision and bind")
def test_node_changed_before_the_bind(bench: FaultBench) -> None:
    """Nothing is sent to a node that is known to be no place for the pod any more; the pod goes elsewhere."""
    bench.scheduler(elect=False, failpoints=True)
    cluster = bench.cluster
    worse = ("cordoned", "shrunk", "tainted", "deleted")
    cluster.create(*(cluster.node(case, cpu="4").label(CASE, case) for case in (*worse, "renamed")))
    with bench.failpoints.paused(BEFORE_SEND) as moment:
        for case in (*worse, "renamed"):
            cluster.create(cluster.pod(case).requests(cpu="3").node_selector({CASE: case}))
        moment.wait(times=5)
        path = f"/api/v1/nodes/{cluster.namespace}-"
        cluster.patch(f"{path}renamed", {"metadata": {"labels": {"more": "yes"}}})
        cluster.patch(f"{path}cordoned", {"spec": {"unschedulable": True}})
        cluster.patch(f"{path}shrunk/status", {"status": {"allocatable": {"cpu": "2"}}})
        cluster.patch(f"{path}tainted", {"spec": {"taints": [{"key": "out", "effect": "NoSchedule"}]}})
        cluster.delete_node("deleted")  # last: whoever knows of this knows all
        cluster.create(cluster.pod("probe").node_selector(on_node(cluster, "deleted")))
        wait_told(cluster, "probe", "0/4 nodes are available")
        cluster.delete("probe")
        time.sleep(2.5)  # longer than the checkers excuse not knowing
        cluster.create(*(cluster.node(f"{case}-spare", cpu="4").label(CASE, case) for case in worse))
    bench.settle()
    bound = {name: node_name.removeprefix(f"{cluster.namespace}-") for name, node_name in cluster.bound().items()}
    bench.figure("pods that went elsewhere", exactly(4), sum(bound.get(case) == f"{case}-spare" for case in worse))
    bench.figure(
        "pods that stayed, since their node was only labelled", exactly(1), list(bound.values()).count("renamed")
    )
    late = [r.key for r in bench.history().binds() if r.target in {f"{cluster.namespace}-{case}" for case in worse}]
    bench.figure("binds sent to a node known to be unfit", exactly(0), len(late))
    bench.verdict()


@fault(25, "pods deleted while they wait in Permit, in PreBind, and to be bound")
def test_pod_deleted_in_flight(bench: FaultBench, tmp_path: Path) -> None:
    """Its place is free at once, although its binding still hangs; whoever waits for the place gets it."""
    signals = tmp_path / "signals"
    signals.mkdir()
    scheduler = bench.scheduler(
        elect=False, failpoints=True, profile=gatekeepers(signals), environment=install(tmp_path / "site")
    )
    cluster = bench.cluster
    where = ("permit", "prebind", "bind")
    cluster.create(*(cluster.node(place, cpu="1").label(CASE, place) for place in where))
    with bench.failpoints.paused(BEFORE_SEND, match="/bind$") as moment:
        cluster.create(
            _in(bench, "permit").label("gang", "g").label("gang-size", "2"),
            _in(bench, "prebind").label("hold", "yes"),
            _in(bench, "bind"),
        )
        moment.wait()
        eventually((signals / "prebind.held").exists, "the pod in PreBind")
        eventually(lambda: total(scheduler, "scheduler_cache_size", type="assumed_pods") == 3, "all to be in flight")
        cluster.create(*(_in(bench, place, f"next-{place}") for place in where))
        for place in where:
            cluster.wait_unschedulable(f"next-{place}")
        for place in where:
            cluster.delete(place)
            freed_s = time.monotonic()
            eventually(lambda n=f"next-{place}": cluster.get(n)["spec"].get("nodeName"), f"the place in {place}")
            bench.figure(f"free after deletion in {place}", at_most(1), time.monotonic() - freed_s, "s")
    (signals / "prebind.go").touch()
    bench.settle()
    eventually(lambda: total(scheduler, "scheduler_cache_size", type="assumed_pods") == 0, "no pod to be assumed")
    assert (signals / "prebind.undone").exists(), "what PreBind's plugin reserved was given back"
    bench.figure("outcomes bound", exactly(3), outcomes(scheduler, "bound"))
    bench.verdict()


def _in(bench: FaultBench, place: str, name: str = "") -> Any:
    return bench.cluster.pod(name or place).requests(cpu="1").node_selector({CASE: place})


@fault(20, "bind answered with 403 in one namespace (an admission policy)")
def test_binds_forbidden_in_a_namespace(bench: FaultBench) -> None:
    """Its pods back off and are told why; all others are bound as if nothing was."""
    scheduler = bench.scheduler(elect=False)
    cluster = bench.cluster
    with _forbidden(bench) as (namespace, allow):
        load = bench.load_l1(pods=500)
        path = f"/api/v1/namespaces/{namespace}/pods"
        for i in range(5):
            cluster.client.ok("POST", path, cluster.pod(f"no{i}").in_ns(namespace).create_manifest())
        waits = waits_s(bench, wait_done(bench, load))
        bench.figure("other pods: wait of the slowest of 95 %", at_most(1.0), waits[int(len(waits) * 0.95)], "s")
        refused = eventually(lambda: _refused(bench, namespace, 3), "three tries of each", timeout_s=90.0)
        gaps = [later - earlier for times in refused.values() for earlier, later in pairwise(times)]
        bench.figure("shortest back-off in s", at_least(10.0), min(gaps))
        events = cluster.client.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        told = {e["regarding"]["name"] for e in events if "no binds in here" in e.get("note", "")}
        bench.figure("pods whose event names the cause", exactly(5), len(told))
        allow()
        eventually(lambda: _bound(bench, namespace) == 5, "the pods to be bound once they may be", timeout_s=60.0)
    bench.settle()
    assert outcomes(scheduler, "refused") >= 15
    bench.verdict()


def _bound(bench: FaultBench, namespace: str) -> int:
    pods = bench.cluster.client.ok("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods)


def _refused(bench: FaultBench, namespace: str, tries: int) -> dict[str, list[float]] | None:
    """Return when the binds of each pod were refused, once each was so often."""
    found: dict[str, list[float]] = {}
    for request in bench.history().binds():
        if request.namespace == namespace and request.code == 403:
            found.setdefault(request.name, []).append(request.received_s)
    return found if len(found) == 5 and min(map(len, found.values())) >= tries else None


@contextmanager
def _forbidden(bench: FaultBench) -> Iterator[tuple[str, Any]]:
    """Make a namespace in which nobody may bind; yields its name and what allows it again."""
    client, name = bench.cluster.client, unique("no-binds")
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    policy = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "no binds in here", "reason": "Forbidden"}],
        },
    }
    scope = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    binding = {
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": scope},
    }
    client.ok("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    client.ok("POST", f"{group}/validatingadmissionpolicies", policy)
    client.ok("POST", f"{group}/validatingadmissionpolicybindings", binding)

    def allow() -> None:
        client.call("DELETE", f"{group}/validatingadmissionpolicybindings/{name}")
        client.call("DELETE", f"{group}/validatingadmissionpolicies/{name}")

    try:
        eventually(lambda: _is_denied(client, bench, name), "the policy to be in force", timeout_s=60.0)
        yield name, allow
    finally:
        allow()
        client.call("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
        client.call("DELETE", f"/api/v1/namespaces/{name}")


def _is_denied(client: Client, bench: FaultBench, namespace: str) -> bool:
    """Try to bind a pod of nobody, without doing it."""
    probe = bench.cluster.pod("probe").in_ns(namespace).scheduler("nobody").create_manifest()
    path = f"/api/v1/namespaces/{namespace}/pods"
    client.call("POST", path, probe)
    body = {"metadata": {"name": "probe"}, "target": {"kind": "Node", "name": "nowhere"}}
    status, _ = client.call("POST", f"{path}/probe/binding?dryRun=All", body)
    if status == 403:
        client.call("DELETE", f"{path}/probe?gracePeriodSeconds=0")
    return status == 403


@fault(23, "somebody else binds a fifth of our pods first")
def test_rival_binds_first(bench: FaultBench) -> None:
    """Theirs are lost without a word, ours are bound; no place is taken twice and none is kept for nothing."""
    scheduler = bench.scheduler(elect=False, failpoints=True)
    cluster = bench.cluster
    cluster.create(*(cluster.node(f"n{i}", cpu="40") for i in range(10)))
    cluster.create(cluster.node("theirs", cpu="200", pods="200").taint("reserved"))
    theirs = f"{cluster.namespace}-theirs"
    bench.sampler.wait_asked(scheduler)  # a rate is the difference to what was so before
    for batch in range(5):
        with bench.failpoints.paused(BEFORE_SEND, match=f"/sure-{batch}-") as moment:
            sure = [f"sure-{batch}-{i}" for i in range(20)]
            cluster.create(*(cluster.pod(name).requests(cpu="1") for name in sure))
            moment.wait(times=20)
            assert [cluster.bind(name, theirs)[0] for name in sure] == [201] * 20
    load = bench.load(400, 50.0, cpu="1")
    wanted = [f"load-{number:04}" for number in range(400) if number % 5 == 0]
    won = 0
    for number, name in enumerate(wanted):
        load.wait_created(number * 5 + 1)
        won += cluster.bind(name, theirs)[0] == 201
    bench.settle()
    bench.note(f"100 pods of 500 were taken in the moment before their bind; of 80 others the rival got {won} by luck")
    bound = cluster.bound()
    bench.figure("pods of the rival", exactly(100 + won), sum(node_name == theirs for node_name in bound.values()))
    eventually(lambda: outcomes(scheduler, "bound") == 400 - won, "every outcome to be known")
    bench.figure("lost binds counted", at_least(100), outcomes(scheduler, "lost"))
    bad = [p["metadata"]["name"] for p in cluster.pods() if _has_condition(p, "PodScheduled", "False")]
    bench.figure("pods that still say they were not scheduled", exactly(0), len(bad))
    warned = cluster.client.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")["items"]
    bench.figure("warnings about lost pods", exactly(0), sum(e["type"] == "Warning" for e in warned))
    bench.verdict()


def _has_condition(pod: Json, kind: str, status: str) -> bool:
    return any((c["type"], c["status"]) == (kind, status) for c in pod["status"].get("conditions", ()))
