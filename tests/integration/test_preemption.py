"""Preemption on the real API server: who must go, what they and the others are told, and who gets the room.

There is no kubelet, so a victim with a grace period stays, terminating, until the test ends it: at this point in time
the preemptor is nominated but not bound. Victims of pods built by `brief` go at once.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from scheduler.testing.pod_builder import PodBuilder
from tests.contract.extender.server import ExtenderServer
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.pki import self_signed, write_pair
from tests.integration.api import Cluster, Json, condition, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import SCHEDULER_USER, Daemon
from tests.integration.settled import known_nodes, on_node, wait_told
from tests.integration.third_party.install import install, profile_with

LOW, MIDDLE, HIGH, TOP = 10, 20, 1000, 2000
NO_CLAIMS = "no new claims to deallocate"
NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def classes(cluster: Cluster) -> dict[int, str]:
    """Priority classes of this test by value."""
    return {value: cluster.priority_class(f"p{value}", value, preempts=True) for value in (LOW, MIDDLE, HIGH, TOP)}


class People:
    """Makes pods of a priority."""

    def __init__(self, cluster: Cluster, classes: dict[int, str]) -> None:
        self._cluster = cluster
        self._classes = classes

    def pod(self, name: str, priority: int, cpu: str = "1") -> PodBuilder:
        return self._cluster.pod(name).requests(cpu=cpu).set("spec.priorityClassName", self._classes[priority])

    def brief(self, name: str, priority: int, cpu: str = "1") -> PodBuilder:
        """Return a pod that is gone as soon as it is deleted."""
        return self.pod(name, priority, cpu).set("spec.terminationGracePeriodSeconds", 0)


@pytest.fixture
def people(cluster: Cluster, classes: dict[int, str]) -> People:
    return People(cluster, classes)


def terminating(cluster: Cluster) -> set[str]:
    """Return the pods that are being deleted."""
    return {p["metadata"]["name"] for p in cluster.pods() if "deletionTimestamp" in p["metadata"]}


def wait_terminating(cluster: Cluster, *names: str) -> None:
    eventually(lambda: set(names) <= terminating(cluster), f"the deletion of {', '.join(names)}")


def nominations(cluster: Cluster) -> dict[str, str]:
    """Return the node by pod, for nominated pods."""
    return {p["metadata"]["name"]: n for p in cluster.pods() if (n := p["status"].get("nominatedNodeName"))}


def wait_nominated(cluster: Cluster, *names: str) -> dict[str, str]:
    return eventually(
        lambda: found if set(names) <= (found := nominations(cluster)).keys() else None,
        f"nominations of {', '.join(names)}",
    )


def untouched(cluster: Cluster, names: Iterable[str]) -> bool:
    """Say whether these pods have been neither deleted nor told to go."""
    pods = {p["metadata"]["name"]: p for p in cluster.pods()}
    return all(
        name in pods
        and "deletionTimestamp" not in pods[name]["metadata"]
        and condition(pods[name], "DisruptionTarget", "True") is None
        for name in names
    )


# --- one preemption --------------------------------------------------------------------------------------------------


def test_victim_is_told_and_goes_and_the_preemptor_takes_its_place(
    cluster: Cluster, daemon: Daemon, people: People
) -> None:
    """Condition, event, grace; the nomination is visible while the victim ends; bound once it has ended."""
    grown = daemon.counting()
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.pod("victim", LOW))
    node_name = cluster.wait_bound()["victim"]
    (preemptor,) = cluster.create(people.pod("preemptor", HIGH))
    wait_terminating(cluster, "victim")
    assert wait_nominated(cluster, "preemptor") == {"preemptor": node_name}
    victim = cluster.get("victim")
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 30, "it keeps its usual time to end"
    told = condition(victim, "DisruptionTarget", "True")
    assert told is not None
    assert told["reason"] == "PreemptionByScheduler"
    assert told["message"] == f"{cluster.scheduler}: preempting to accommodate a higher priority pod"
    event = eventually(lambda: cluster.events("victim", "Preempted"), "the Preempted event")[0]
    assert event["type"] == "Normal"
    assert event["action"] == "Preempting"
    assert event["note"] == f"Preempted by pod {preemptor['metadata']['uid']} on node {node_name}"
    assert event["related"]["name"] == "preemptor"
    assert cluster.wait_unschedulable("preemptor")["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert cluster.bound() == {"victim": node_name}
    cluster.delete("victim")
    assert cluster.wait_bound("preemptor") == {"preemptor": node_name}
    assert "nominatedNodeName" not in cluster.get("preemptor")["status"]
    assert grown("scheduler_preemption_victims_count") == 1
    assert grown("scheduler_preemption_victims_sum") == 1
    assert len(cluster.events("victim", "Preempted")) == 1


def test_pods_of_equal_or_higher_priority_are_never_touched(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """The pod waits, and is told that nobody would make room."""
    known_nodes(cluster, cluster.node("n", cpu="2"))
    cluster.create(people.pod("equal", HIGH), people.pod("higher", TOP))
    cluster.wait_bound()
    cluster.create(people.pod("waits", HIGH))
    wait_told(cluster, "waits", f"0/1 nodes are available: 1 Insufficient cpu. {NO_CLAIMS}, {NO_VICTIMS}")
    assert untouched(cluster, ["equal", "higher"])
    cluster.create(people.pod("above", TOP))
    wait_terminating(cluster, "equal")
    assert untouched(cluster, ["higher"])
    cluster.delete("equal")
    cluster.wait_bound("above")
    assert "waits" not in cluster.bound()
    del daemon


def test_pod_that_must_not_preempt_waits(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """preemptionPolicy Never: high priority in the queue, but nobody goes."""
    polite = cluster.priority_class("polite", TOP, preempts=False)
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.pod("low", LOW))
    cluster.wait_bound()
    cluster.create(cluster.pod("polite").requests(cpu="1").set("spec.priorityClassName", polite))
    wait_told(
        cluster,
        "polite",
        f"0/1 nodes are available: 1 Insufficient cpu. {NO_CLAIMS}, "
        "preemption: not eligible due to preemptionPolicy=Never.",
    )
    assert untouched(cluster, ["low"])
    del daemon


def test_preemption_that_cannot_help_touches_nobody(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """Too large even for an empty node, or kept off by a taint: no victim."""
    known_nodes(cluster, cluster.node("small", cpu="1"), cluster.node("closed", cpu="8").taint("closed"))
    cluster.create(people.pod("low", LOW))
    cluster.wait_bound()
    cluster.create(people.pod("huge", HIGH, cpu="4"))
    wait_told(
        cluster,
        "huge",
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
        f"{NO_CLAIMS}, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    )
    assert untouched(cluster, ["low"])
    del daemon


# --- who must go -----------------------------------------------------------------------------------------------------


def test_as_few_and_as_unimportant_victims_as_possible(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """On the node only the least important pods that are needed go; the node with the least important ones is taken."""
    known_nodes(cluster, cluster.node("n0", cpu="4"), cluster.node("n1", cpu="4"))
    for node in ("n0", "n1"):
        cluster.create(people.pod(f"{node}-middle", MIDDLE, "2").node_selector(on_node(cluster, node)))
    cluster.create(*(people.pod(f"n0-low{i}", LOW).node_selector(on_node(cluster, "n0")) for i in range(2)))
    cluster.create(*(people.pod(f"n1-middle{i}", MIDDLE).node_selector(on_node(cluster, "n1")) for i in range(2)))
    cluster.wait_bound()
    cluster.create(people.pod("preemptor", HIGH, "2"))
    wait_terminating(cluster, "n0-low0", "n0-low1")
    assert wait_nominated(cluster, "preemptor")["preemptor"].endswith("n0")
    assert untouched(cluster, ["n0-middle", "n1-middle", "n1-middle0", "n1-middle1"])
    cluster.delete("n0-low0", "n0-low1")
    assert cluster.wait_bound("preemptor")["preemptor"].endswith("n0")
    assert terminating(cluster) == set()
    del daemon


def test_pod_that_keeps_others_away_by_affinity_goes(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """There is room enough; what the preemptor cannot stand is the neighbour's label."""
    known_nodes(cluster, cluster.node("n", cpu="8"))
    cluster.create(people.brief("noisy", LOW).label("noise", "loud"), people.brief("quiet", LOW))
    cluster.wait_bound()
    cluster.create(people.pod("preemptor", HIGH).pod_anti_affinity("kubernetes.io/hostname", {"noise": "loud"}))
    cluster.wait_bound("preemptor")
    assert cluster.bound().keys() == {"quiet", "preemptor"}
    del daemon


def test_disruption_budget_is_respected_where_another_pod_can_go(
    cluster: Cluster, daemon: Daemon, people: People, control_plane: ControlPlane
) -> None:
    """With the real disruption controller: one disruption is allowed and used; then somebody else goes; then, for want
    of others, the budget is violated, as kube-scheduler does.
    """
    manager = control_plane.start_controller_manager(["disruption-controller"])
    try:
        known_nodes(cluster, *(cluster.node(f"n{i}", cpu="1") for i in range(3)))
        for i in range(2):
            cluster.create(people.brief(f"guarded{i}", LOW).label("app", "db").node_selector(on_node(cluster, f"n{i}")))
        cluster.create(people.brief("other", MIDDLE).node_selector(on_node(cluster, "n2")))
        cluster.wait_bound()
        budgets = f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets"
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}
        cluster.client.ok("POST", budgets, {"metadata": {"name": "db"}, "spec": spec})
        for i in range(2):
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            cluster.patch(cluster.pod_path(f"guarded{i}", "/status"), {"status": ready})

        def allowed(count: int) -> None:
            def probe() -> bool:
                status = cluster.client.ok("GET", f"{budgets}/db")["status"]
                return status.get("observedGeneration") == 1 and status["disruptionsAllowed"] == count

            eventually(probe, f"{count} disruptions to be allowed")

        allowed(1)
        cluster.create(people.pod("first", HIGH))
        cluster.wait_bound("first")
        assert len([name for name in cluster.bound() if name.startswith("guarded")]) == 1
        allowed(0)
        cluster.create(people.pod("second", HIGH))
        cluster.wait_bound("second")
        assert "other" not in cluster.bound(), "more important, but not guarded"
        cluster.create(people.pod("third", HIGH))
        cluster.wait_bound("third")
        assert cluster.bound().keys() == {"first", "second", "third"}
    finally:
        manager.stop()
    del daemon


def test_pods_of_other_schedulers_can_be_victims(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """It is the priority that counts, not who placed the pod."""
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.brief("foreign", LOW).scheduler("somebody-else"))
    assert cluster.bind("foreign", f"{cluster.namespace}-n")[0] == 201
    cluster.create(people.pod("preemptor", HIGH))
    assert cluster.wait_bound("preemptor").keys() == {"preemptor"}
    event = eventually(lambda: cluster.events("foreign", "Preempted"), "the Preempted event")[0]
    assert event["reportingController"] == cluster.scheduler
    del daemon


# --- several preemptors ----------------------------------------------------------------------------------------------


def test_two_preemptors_do_not_take_the_same_room(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """Two nodes, two victims that take their time, three preemptors: two are nominated, to different nodes."""
    known_nodes(cluster, *(cluster.node(f"n{i}", cpu="1") for i in range(2)))
    cluster.create(*(people.pod(f"victim{i}", LOW) for i in range(2)))
    cluster.wait_bound()
    cluster.create(*(people.pod(f"high{i}", HIGH) for i in range(2)))
    nominated = wait_nominated(cluster, "high0", "high1")
    assert len(set(nominated.values())) == 2
    wait_terminating(cluster, "victim0", "victim1")
    cluster.create(people.pod("late", HIGH))
    wait_told(
        cluster,
        "late",
        f"0/2 nodes are available: 2 Insufficient cpu. {NO_CLAIMS}, "
        "preemption: 0/2 nodes are available: 2 Insufficient cpu.",
    )
    cluster.delete("victim0", "victim1")
    assert cluster.wait_bound("high0", "high1") == nominated
    assert "late" not in cluster.bound()
    del daemon


def test_nominated_room_is_kept_from_less_important_pods(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """While the victim ends, a smaller and less important pod that would fit into the gap has to wait."""
    known_nodes(cluster, cluster.node("n", cpu="2"))
    cluster.create(people.pod("victim", LOW, "1500m"))
    cluster.wait_bound()
    cluster.create(people.pod("preemptor", HIGH, "2"))
    wait_nominated(cluster, "preemptor")
    cluster.create(people.pod("small", MIDDLE, "500m"))
    assert cluster.wait_unschedulable("small")["reason"] == "Unschedulable"
    cluster.delete("victim")
    assert cluster.wait_bound("preemptor").keys() == {"preemptor"}
    assert "small" not in cluster.bound()
    del daemon


def test_more_important_preemptor_takes_the_room_over(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """The room that was being made for one pod goes to a more important one that has come meanwhile."""
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.pod("victim", LOW))
    cluster.wait_bound()
    cluster.create(people.pod("middle", MIDDLE))
    wait_nominated(cluster, "middle")
    cluster.create(people.pod("top", TOP))
    wait_nominated(cluster, "top")
    cluster.delete("victim")
    assert cluster.wait_bound("top").keys() == {"top"}
    wait_told(cluster, "middle", NO_VICTIMS)
    assert nominations(cluster) == {}
    del daemon


def test_preemptor_goes_elsewhere_if_room_comes_sooner(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """A new node is there before the victim has ended."""
    known_nodes(cluster, cluster.node("n0", cpu="1"))
    cluster.create(people.pod("victim", LOW))
    cluster.wait_bound()
    cluster.create(people.pod("preemptor", HIGH))
    assert wait_nominated(cluster, "preemptor")["preemptor"].endswith("n0")
    known_nodes(cluster, cluster.node("n1", cpu="1"))
    assert cluster.wait_bound("preemptor")["preemptor"].endswith("n1")
    assert terminating(cluster) == {"victim"}, "what was begun is not taken back"
    del daemon


def test_room_of_a_deleted_preemptor_is_for_others(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """Nobody holds the place for a pod that is gone."""
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.pod("victim", LOW))
    cluster.wait_bound()
    cluster.create(people.pod("preemptor", HIGH))
    wait_nominated(cluster, "preemptor")
    wait_terminating(cluster, "victim")
    cluster.delete("preemptor")
    cluster.create(people.pod("low", LOW))
    wait_told(cluster, "low", "1 Insufficient cpu")
    cluster.delete("victim")
    cluster.wait_bound("low")
    del daemon


def test_many_preemptors_evict_exactly_whom_they_need(cluster: Cluster, daemon: Daemon, people: People) -> None:
    """Eight full nodes, sixteen preemptors at once: all get their room, sixteen of thirty-two pods stay."""
    known_nodes(cluster, *(cluster.node(f"n{i}", cpu="4") for i in range(8)))
    lows = [f"low{i}" for i in range(32)]
    cluster.create(*(people.brief(name, LOW) for name in lows))
    cluster.wait_bound(*lows)
    highs = [f"high{i}" for i in range(16)]
    cluster.create(*(people.pod(name, HIGH) for name in highs))
    bound = cluster.wait_bound(*highs)
    assert len(bound) == 32
    assert sorted(list(bound.values()).count(node) for node in set(bound.values())) == [4] * 8
    assert terminating(cluster) == set()
    del daemon


# --- beside and across -----------------------------------------------------------------------------------------------


def test_new_daemon_keeps_the_nomination(cluster: Cluster, start_daemon: StartDaemon, people: People) -> None:
    """Killed while the victim ends: its successor reads the nomination and keeps the room free."""
    first = start_daemon(cluster.scheduler)
    known_nodes(cluster, cluster.node("n0", cpu="1"), cluster.node("n1", cpu="1").taint("closed"))
    cluster.create(people.pod("victim", LOW))
    cluster.wait_bound()
    cluster.create(people.pod("preemptor", HIGH).toleration("closed", operator="Exists"))
    cluster.wait_bound("preemptor")
    cluster.create(people.pod("next", HIGH))
    nominated = wait_nominated(cluster, "next")
    wait_terminating(cluster, "victim")
    first.process.kill()
    cluster.delete("victim")
    cluster.create(people.pod("middle", MIDDLE))
    second = start_daemon(cluster.scheduler)
    assert cluster.wait_bound("next")["next"] == nominated["next"]
    cluster.wait_unschedulable("middle")
    assert "Traceback" not in second.log()


def test_victim_on_its_way_to_the_node_is_called_back(
    cluster: Cluster, start_daemon: StartDaemon, people: People, tmp_path: Path
) -> None:
    """A pod whose binding is not done yet is not deleted: it goes back to the queue."""
    signals = tmp_path / "signals"
    signals.mkdir()
    profile = profile_with(cluster.scheduler, "HoldPreBind", {"directory": str(signals)})
    daemon = start_daemon(profile, environment=install(tmp_path / "site"))
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.pod("held", LOW).label("hold", "yes"))
    eventually((signals / "held.held").exists, "the pod to be held in PreBind")
    cluster.create(people.pod("preemptor", HIGH))
    cluster.wait_bound("preemptor")
    assert untouched(cluster, ["held"])
    assert cluster.bound().keys() == {"preemptor"}
    event = eventually(lambda: cluster.events("held", "Preempted"), "the Preempted event")[0]
    assert event["note"].endswith("(in kube-scheduler memory).")
    assert condition(cluster.get("held")) is not None, "it waits like any other pod"
    assert (signals / "held.undone").exists()
    (signals / "held.go").touch()
    assert "Traceback" not in daemon.log()


# --- victims that are slow or impossible to evict --------------------------------------------------------------------


class Doorkeeper:
    """An admission webhook through which the scheduler's deletions in one namespace must pass."""

    def __init__(self, cluster: Cluster, identity: Path, directory: Path) -> None:
        pair = self_signed(["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*write_pair(pair, directory, "doorkeeper"))
        self._server = ExtenderServer(context)
        self._server.behaviour = self._answer
        self._is_open = threading.Event()
        self._is_open.set()
        self._refusals = 0
        self._cluster = cluster
        self._identity = identity
        self._install(base64.b64encode(pair.certificate).decode())

    def close_door(self) -> None:
        """Let nobody pass until `open_door`."""
        self._is_open.clear()
        self._server.asked.clear()

    def open_door(self) -> None:
        self._is_open.set()

    def refuse(self, times: int) -> None:
        """Say no to the next ones."""
        self._server.asked.clear()
        self._refusals = times

    @property
    def visitors(self) -> list[str]:
        """Return the pods whose deletion was asked for."""
        return [question["request"]["name"] for _, question in self._server.asked]

    def wait_in_force(self, name: str) -> None:
        """Wait until the API server asks before the scheduler's deletions; `name` is any pod."""
        path = self._cluster.pod_path(name, "?dryRun=All")

        def probe() -> bool:
            assert self._cluster.plane.request("DELETE", path, kubeconfig=self._identity)[0] == 200
            return bool(self.visitors)

        eventually(probe, "the webhook to be in force")

    def close(self) -> None:
        self.open_door()
        self._cluster.client.ok("DELETE", f"{WEBHOOKS}/{self._cluster.namespace}")
        self._server.close()

    def _install(self, ca: str) -> None:
        namespace = self._cluster.namespace
        webhook = {
            "name": "doorkeeper.podium.test",
            "clientConfig": {"url": f"{self._server.url}/door", "caBundle": ca},
            "rules": [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "matchConditions": [
                {"name": "scheduler", "expression": f"request.userInfo.username == '{SCHEDULER_USER}'"}
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
        }
        self._cluster.client.ok("POST", WEBHOOKS, {"metadata": {"name": namespace}, "webhooks": [webhook]})

    async def _answer(self, _request: web.Request, question: Json) -> web.StreamResponse:
        while not self._is_open.is_set():  # noqa: ASYNC110  set by another thread
            await asyncio.sleep(0.02)
        allowed = self._refusals == 0
        self._refusals -= not allowed
        response = {"uid": question["request"]["uid"], "allowed": allowed, "status": {"message": "not now"}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


@pytest.fixture
def doorkeeper(cluster: Cluster, identity: Path, tmp_path: Path) -> Iterator[Doorkeeper]:
    made = Doorkeeper(cluster, identity, tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_others_are_scheduled_while_a_victim_is_evicted(
    cluster: Cluster, daemon: Daemon, people: People, doorkeeper: Doorkeeper
) -> None:
    """The API server takes its time with a deletion; neither the scheduler nor other pods wait for it."""
    grown = daemon.counting()
    known_nodes(cluster, cluster.node("n0", cpu="1"), cluster.node("n1"))
    cluster.create(people.brief("victim", LOW).node_selector(on_node(cluster, "n0")))
    cluster.wait_bound()
    doorkeeper.wait_in_force("victim")
    doorkeeper.close_door()
    cluster.create(people.pod("preemptor", HIGH).node_selector(on_node(cluster, "n0")))
    eventually(lambda: doorkeeper.visitors == ["victim"], "the deletion to be asked for")
    assert wait_nominated(cluster, "preemptor")
    others = [f"other{i}" for i in range(10)]
    cluster.create(*(people.pod(name, LOW, "100m").node_selector(on_node(cluster, "n1")) for name in others))
    cluster.wait_bound(*others)
    assert untouched_but_told(cluster.get("victim")), "its deletion is still on its way"
    assert doorkeeper.visitors == ["victim"], "it is asked for once"
    assert "preemptor" not in cluster.bound()
    assert grown("scheduler_preemption_goroutines_execution_total") == 0
    doorkeeper.open_door()
    cluster.wait_bound("preemptor")
    assert grown("scheduler_preemption_goroutines_execution_total", result="success") == 1


def test_refused_eviction_is_tried_again(
    cluster: Cluster, daemon: Daemon, people: People, doorkeeper: Doorkeeper
) -> None:
    """An admission webhook says no: the preemptor is not forgotten, and does not storm the API server."""
    grown = daemon.counting()
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.brief("victim", LOW))
    cluster.wait_bound()
    doorkeeper.wait_in_force("victim")
    doorkeeper.refuse(2)
    cluster.create(people.pod("preemptor", HIGH))
    assert cluster.wait_bound("preemptor").keys() == {"preemptor"}
    assert set(doorkeeper.visitors) == {"victim"}
    assert grown("scheduler_preemption_goroutines_execution_total", result="error") == 2
    assert "not now" in daemon.log()
    eventually(lambda: cluster.events("victim", "Preempted"), "the Preempted event")


def test_sigterm_ends_the_daemon_while_an_eviction_hangs(
    cluster: Cluster, start_daemon: StartDaemon, people: People, doorkeeper: Doorkeeper
) -> None:
    """What cannot be brought to an end in time is left to the next one."""
    first = start_daemon(cluster.scheduler)
    known_nodes(cluster, cluster.node("n", cpu="1"))
    cluster.create(people.brief("victim", LOW))
    cluster.wait_bound()
    doorkeeper.wait_in_force("victim")
    doorkeeper.close_door()
    cluster.create(people.pod("preemptor", HIGH))
    eventually(lambda: doorkeeper.visitors, "the deletion to be asked for")
    code, seconds = first.terminate()
    print(f"ended {seconds:.2f} s after SIGTERM")
    assert code == 0
    assert seconds < 20
    assert "Traceback" not in first.log()
    doorkeeper.open_door()
    start_daemon(cluster.scheduler)
    assert cluster.wait_bound("preemptor").keys() == {"preemptor"}


def untouched_but_told(manifest: Json) -> bool:
    return (
        "deletionTimestamp" not in manifest["metadata"] and condition(manifest, "DisruptionTarget", "True") is not None
    )
