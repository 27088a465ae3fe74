"""An HTTPS extender beside the real daemon on the real API server: what it is asked, what it decides, what it can harm.

One daemon has two extenders. `gpu` minds pods that want an `example.com/gpu` and must be heard; its certificate is
self-signed and named by `tlsConfig.caFile`. `spare` minds `example.com/spare` and may be ignored; its certificate is
signed by somebody unknown. All other pods never meet an extender.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from scheduler.testing.node_builder import NodeBuilder
from scheduler.testing.pod_builder import PodBuilder
from tests.contract.extender.server import ExtenderServer, Handler
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.pki import Authority, KeyPair, self_signed, write_pair
from tests.integration.api import Client, Cluster, Json, condition, eventually, unique
from tests.integration.conftest import stop_all
from tests.integration.daemon import Daemon
from tests.integration.settled import known_nodes, notes, on_node, wait_told

GPU, SPARE = "example.com/gpu", "example.com/spare"
TIMEOUT_S = 10.0
SHORT_S = 0.6
WEIGHT = 5


class World:
    """The daemon and its extenders.

    Attributes:
        gpu: the extender that must be heard.
        spare: the extender that may be ignored.
        daemon: the scheduler.
    """

    def __init__(self, plane: ControlPlane, identity: Path, directory: Path, *, timeout_s: float = TIMEOUT_S) -> None:
        own = self_signed(["127.0.0.1"])
        stranger = Authority("stranger").server(["127.0.0.1"])
        self.gpu = ExtenderServer(_context(own, directory, "gpu"))
        self.spare = ExtenderServer(_context(stranger, directory, "spare"))
        common = {"filterVerb": "filter", "prioritizeVerb": "rank", "enableHTTPS": True, "weight": WEIGHT}
        common |= {"tlsConfig": {"caFile": str(directory / "gpu.crt")}, "httpTimeout": f"{timeout_s * 1000:.0f}ms"}
        gpu = {"urlPrefix": self.gpu.url, "bindVerb": "bind", "preemptVerb": "preempt", **common}
        spare = {"urlPrefix": self.spare.url, "ignorable": True, **common}
        extenders = [{**gpu, "managedResources": [{"name": GPU}]}, {**spare, "managedResources": [{"name": SPARE}]}]
        self.daemon = Daemon(plane, identity, profiles=[unique("extended")], configuration={"extenders": extenders})

    def close(self) -> None:
        self.gpu.close()
        self.spare.close()


def _context(pair: KeyPair, directory: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*write_pair(pair, directory, name))
    return context


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane, identity: Path, scraper: str, request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:  # fmt: skip
    """The daemon and both extenders, for all tests of the module."""
    failed_before = request.session.testsfailed
    made = World(control_plane, identity, tmp_path_factory.mktemp("extender"))
    try:
        made.daemon.wait_ready()
        yield made
    finally:
        stop_all([made.daemon], show=request.session.testsfailed > failed_before)
        made.close()
    del scraper


@pytest.fixture
def world(running: World, cluster: Cluster) -> World:
    """Both extenders well-behaved, and the test's pods for this daemon."""
    cluster.scheduler = running.daemon.schedulers[0]
    running.gpu.behaviour = agreeable(cluster)
    running.gpu.asked.clear()
    running.spare.asked.clear()
    return running


def agreeable(cluster: Cluster, **special: Handler) -> Handler:
    """Return an extender that keeps all nodes, prefers none, and binds; `special` replaces single verbs."""

    async def answer(request: web.Request, question: Any) -> web.StreamResponse:
        verb = request.path.rpartition("/")[2]
        if verb in special:
            return await special[verb](request, question)
        if verb == "filter":
            return web.json_response({"Nodes": question["Nodes"]})
        if verb == "rank":
            return web.json_response([{"Host": name, "Score": 0} for name in names(question)])
        if verb == "preempt":
            return web.json_response({"NodeNameToMetaVictims": as_meta(question["NodeNameToVictims"])})
        return web.json_response(await asyncio.to_thread(bind, cluster, question))

    return answer


def bind(cluster: Cluster, question: Json) -> Json:
    """Bind as an extender does, with its own credentials."""
    client = Client(cluster.plane)
    try:
        path = f"/api/v1/namespaces/{question['PodNamespace']}/pods/{question['PodName']}/binding"
        metadata = {
            "name": question["PodName"],
            "uid": question["PodUID"],
            "annotations": {"example.com/by": "extender"},
        }
        target = {"kind": "Node", "name": question["Node"]}
        status, answer = client.call("POST", path, {"metadata": metadata, "target": target})
        return {"Error": "" if status == 201 else str(answer)}
    finally:
        client.close()


def names(question: Json) -> list[str]:
    return [item["metadata"]["name"] for item in question["Nodes"]["items"]]


def as_meta(victims: Json) -> Json:
    return {node: {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in each["Pods"]]} for node, each in victims.items()}


def node(cluster: Cluster, name: str, gpus: int = 8) -> NodeBuilder:
    return cluster.node(name).capacity({GPU: str(gpus), SPARE: "8"})


def wants(cluster: Cluster, name: str = "p", resource: str = GPU) -> PodBuilder:
    return cluster.pod(name).requests({resource: "1"}).limits({resource: "1"})


def verbs(server: ExtenderServer) -> list[str]:
    return [path.rpartition("/")[2] for path, _ in server.asked]


# --- its verbs -------------------------------------------------------------------------------------------------------


def test_extender_is_asked_with_whole_objects_and_binds(cluster: Cluster, world: World) -> None:
    """Filter, rank, bind, over HTTPS; pod and nodes as the API server has them, not only what scheduling reads."""
    known_nodes(cluster, node(cluster, "n0").set("spec.podCIDR", "10.1.0.0/24"), node(cluster, "n1"))
    grown = world.daemon.counting()
    (created,) = cluster.create(wants(cluster).set("metadata.annotations", {"example.com/note": "kept"}))
    node_name = cluster.wait_bound()["p"]
    assert verbs(world.gpu) == ["filter", "rank", "bind"]
    question = world.gpu.asked[0][1]
    created["metadata"].pop("managedFields")
    assert question["Pod"] == created
    shown = {item["metadata"]["name"]: item for item in question["Nodes"]["items"]}
    assert shown.keys() == {f"{cluster.namespace}-n0", f"{cluster.namespace}-n1"}
    assert shown[f"{cluster.namespace}-n0"]["spec"]["podCIDR"] == "10.1.0.0/24"
    bound = cluster.get()
    assert bound["metadata"]["annotations"]["example.com/by"] == "extender"
    assert world.gpu.asked[2][1] == {
        "PodName": "p", "PodNamespace": cluster.namespace, "PodUID": bound["metadata"]["uid"], "Node": node_name
    }  # fmt: skip
    eventually(lambda: cluster.events("p", "Scheduled"), "the Scheduled event")
    assert grown("scheduler_schedule_attempts_total", result="scheduled") == 1
    eventually(lambda: not world.daemon.metrics().total("scheduler_cache_size", type="assumed_pods"), "nothing assumed")


def test_pods_without_its_resource_never_meet_it(cluster: Cluster, world: World) -> None:
    """They are bound by the scheduler itself."""
    known_nodes(cluster, node(cluster, "n"))
    cluster.create(*(cluster.pod(f"p{i}") for i in range(5)))
    cluster.wait_bound()
    assert world.gpu.asked == []
    assert world.spare.asked == []


def test_filter_decides_where_and_says_why(cluster: Cluster, world: World) -> None:
    """One node is kept: there. None is kept: the extender's reasons are the pod's."""

    async def only_n1(_request: web.Request, question: Any) -> web.StreamResponse:
        kept = [item for item in question["Nodes"]["items"] if item["metadata"]["name"].endswith("n1")]
        return web.json_response({"Nodes": {"items": kept}})

    async def nowhere(_request: web.Request, question: Any) -> web.StreamResponse:
        n0, n1 = sorted(names(question))
        answer = {"FailedNodes": {n0: "gpu is hot"}, "FailedAndUnresolvableNodes": {n1: "gpu is gone"}}
        return web.json_response({"Nodes": {"items": []}, **answer})

    known_nodes(cluster, *(node(cluster, f"n{i}") for i in range(2)))
    world.gpu.behaviour = agreeable(cluster, filter=only_n1)
    cluster.create(*(wants(cluster, f"p{i}") for i in range(3)))
    assert set(cluster.wait_bound().values()) == {f"{cluster.namespace}-n1"}
    world.gpu.behaviour = agreeable(cluster, filter=nowhere)
    cluster.create(wants(cluster, "waits"))
    reason = wait_told(cluster, "waits", "0/2 nodes are available: 1 gpu is gone, 1 gpu is hot.")
    assert reason["reason"] == "Unschedulable"


def test_scores_move_pods(cluster: Cluster, world: World) -> None:
    """Ten points by an extender of weight five outweigh the plugins' wish to spread."""

    async def likes_n2(_request: web.Request, question: Any) -> web.StreamResponse:
        scores = [{"Host": name, "Score": 10 if name.endswith("n2") else 0} for name in names(question)]
        return web.json_response(scores)

    known_nodes(cluster, *(node(cluster, f"n{i}") for i in range(4)))
    world.gpu.behaviour = agreeable(cluster, rank=likes_n2)
    cluster.create(*(wants(cluster, f"p{i}").requests(cpu="500m") for i in range(4)))
    assert set(cluster.wait_bound().values()) == {f"{cluster.namespace}-n2"}


def test_preempt_verb_strikes_a_node_off(cluster: Cluster, world: World) -> None:
    """Plugins would choose the less important victim; the extender does not agree to that node."""

    async def not_n0(_request: web.Request, question: Any) -> web.StreamResponse:
        victims = as_meta(question["NodeNameToVictims"])
        return web.json_response({"NodeNameToMetaVictims": {n: v for n, v in victims.items() if not n.endswith("n0")}})

    classes = {value: cluster.priority_class(f"p{value}", value, preempts=True) for value in (1, 2, 100)}
    known_nodes(cluster, *(node(cluster, f"n{i}", gpus=1) for i in range(2)))
    for i in range(2):
        victim = wants(cluster, f"low{i}").set("spec.priorityClassName", classes[i + 1])
        cluster.create(victim.node_selector(on_node(cluster, f"n{i}")).set("spec.terminationGracePeriodSeconds", 0))
    cluster.wait_bound()
    world.gpu.asked.clear()
    world.gpu.behaviour = agreeable(cluster, preempt=not_n0)
    cluster.create(wants(cluster, "high").set("spec.priorityClassName", classes[100]))
    assert cluster.wait_bound("high")["high"] == f"{cluster.namespace}-n1"
    assert cluster.bound().keys() == {"low0", "high"}
    path, question = world.gpu.asked[0]
    assert path.endswith("/preempt"), "there was no node to filter"
    assert question["Pod"]["metadata"]["name"] == "high"
    offered = {
        n.rpartition("-")[2]: [p["metadata"]["name"] for p in v["Pods"]]
        for n, v in question["NodeNameToVictims"].items()
    }
    assert offered == {"n0": ["low0"], "n1": ["low1"]}


# --- trouble ---------------------------------------------------------------------------------------------------------


def test_ignorable_extender_that_cannot_be_trusted_is_done_without(cluster: Cluster, world: World) -> None:
    """Its certificate is signed by somebody unknown: no request reaches it, and its pods are bound all the same."""
    known_nodes(cluster, node(cluster, "n"))
    cluster.create(wants(cluster, resource=SPARE))
    cluster.wait_bound()
    assert world.spare.asked == []
    assert "ignorable extender failed" in world.daemon.log()
    assert "UnknownIssuer" in world.daemon.log()


def test_extender_that_fails_holds_its_pods_until_it_is_well(cluster: Cluster, world: World) -> None:
    """An error, not a verdict: told as such, retried with back-off, and nothing left behind."""
    known_nodes(cluster, node(cluster, "n"))
    world.gpu.behave("status 500")
    cluster.create(wants(cluster))
    reason = wait_told(cluster, "p", f"failed filter with extender at URL {world.gpu.url}/filter, code 500")
    assert reason["reason"] == "SchedulerError"
    cluster.create(cluster.pod("plain"))
    cluster.wait_bound("plain")
    world.gpu.behaviour = agreeable(cluster)
    cluster.wait_bound("p")


FAILED = {
    "says that it bound": "says that it bound the pod, but it is not bound",
    "fails to bind": "the gpu is busy",
}


@pytest.mark.parametrize("lie", ["says that it bound", "fails after it has bound", "fails to bind"])
def test_bindings_count_only_if_the_api_server_says_so(lie: str, cluster: Cluster, world: World) -> None:
    """An extender's word about a binding is checked: the room is given back, or the pod is bound in spite of the error."""
    is_lying = True

    async def lies(_request: web.Request, question: Any) -> web.StreamResponse:
        nonlocal is_lying
        if not is_lying:
            return web.json_response(await asyncio.to_thread(bind, cluster, question))
        is_lying = False
        if lie == "says that it bound":
            return web.json_response({"Error": ""})
        if lie == "fails to bind":
            return web.json_response({"Error": "the gpu is busy"})
        await asyncio.to_thread(bind, cluster, question)
        return web.Response(status=502)

    known_nodes(cluster, node(cluster, "n", gpus=1))
    world.gpu.behaviour = agreeable(cluster, bind=lies)
    cluster.create(wants(cluster))
    cluster.wait_bound()
    eventually(lambda: cluster.events("p", "Scheduled"), "the Scheduled event")
    if lie == "fails after it has bound":
        assert cluster.events("p", "FailedScheduling") == []
    else:
        eventually(lambda: notes(cluster, "p", FAILED[lie]), "the failed attempt to be told")
    eventually(lambda: not world.daemon.metrics().total("scheduler_cache_size", type="assumed_pods"), "nothing assumed")
    cluster.delete("p")
    cluster.create(wants(cluster, "next"))
    cluster.wait_bound("next")


def test_slow_extender_holds_up_only_its_own_pods(
    control_plane: ControlPlane, identity: Path, scraper: str, cluster: Cluster, tmp_path: Path
) -> None:
    """It never answers in time; after three time-outs it is left alone, and all others go on as if it were not there."""

    async def slow(_request: web.Request, _question: Any) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response(status=500)

    world = World(control_plane, identity, tmp_path, timeout_s=SHORT_S)
    try:
        cluster.scheduler = world.daemon.schedulers[0]
        world.gpu.behaviour = slow
        world.daemon.wait_ready()
        known_nodes(cluster, node(cluster, "n"))
        cluster.create(*(wants(cluster, f"gpu{i}") for i in range(4)))
        began_s = time.monotonic()
        cluster.create(*(cluster.pod(f"plain{i}") for i in range(20)))
        cluster.wait_bound(*(f"plain{i}" for i in range(20)))
        print(f"20 others were bound after {time.monotonic() - began_s:.2f} s; time-outs are {SHORT_S} s")
        eventually(lambda: "left alone" in world.daemon.log(), "the extender to be left alone")
        asked = len(world.gpu.asked)
        cluster.create(*(cluster.pod(f"late{i}") for i in range(20)))
        began_s = time.monotonic()
        cluster.wait_bound(*(f"late{i}" for i in range(20)))
        print(f"20 more were bound after {time.monotonic() - began_s:.2f} s")
        waiting = [condition(cluster.get(f"gpu{i}")) for i in range(4)]
        assert all(found is None or found["reason"] == "SchedulerError" for found in waiting)
        alone = f"filter not asked of extender at URL {world.gpu.url}/filter"
        eventually(lambda: any(notes(cluster, f"gpu{i}", alone) for i in range(4)), "a pod to be told")
        assert asked <= 3
        assert all(not name.startswith("gpu") for name in cluster.bound())
    finally:
        stop_all([world.daemon], show=False)
        world.close()
    del scraper
