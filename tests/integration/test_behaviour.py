"""Scheduling as users see it, on the real API server: who is ours, who waits for what, who goes first."""

from __future__ import annotations

import time

import pytest

from tests.integration.api import Cluster, condition, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon

LONGEST_FIRST_BACKOFF_S = 2.0  # podInitialBackoffSeconds, and a window of the back-off queue


def test_pods_of_other_schedulers_are_left_alone(cluster: Cluster, daemon: Daemon) -> None:
    """Neither bound nor told anything; ours, created later, is bound."""
    grown = daemon.counting()
    cluster.create(cluster.node())
    cluster.create(cluster.pod("foreign").scheduler("nobody-has-this-name"))
    cluster.create(cluster.pod("ours"))
    assert cluster.wait_bound("ours").keys() == {"ours"}
    foreign = cluster.get("foreign")
    assert "nodeName" not in foreign["spec"]
    assert condition(foreign) is None
    assert cluster.events("foreign") == []
    eventually(lambda: grown("scheduler_schedule_attempts_total") == 1, "one attempt")


def test_two_profiles_schedule_side_by_side(cluster: Cluster, start_daemon: StartDaemon) -> None:
    """Each pod goes by its own profile: one packs, the other ignores taints."""
    names = (f"{cluster.scheduler}-a", f"{cluster.scheduler}-b")
    lenient = {"schedulerName": names[1], "plugins": {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}}
    start_daemon(names[0], lenient)
    cluster.create(cluster.node().taint("closed"))
    cluster.create(cluster.pod("strict").scheduler(names[0]), cluster.pod("lenient").scheduler(names[1]))
    assert cluster.wait_bound("lenient")
    told = cluster.wait_unschedulable("strict")
    assert told["message"].startswith("0/1 nodes are available: 1 node(s) had untolerated taint")


def test_gated_pod_wakes_with_its_last_gate(cluster: Cluster, daemon: Daemon) -> None:
    """Untouched while a gate is left, whatever happens in the cluster; bound at once when the last one goes."""
    cluster.create(cluster.pod().gate("example.com/one", "example.com/two"))
    cluster.create(cluster.node())
    cluster.create(cluster.pod("free"))
    cluster.wait_bound("free")
    metrics = daemon.metrics()
    assert metrics.total("scheduler_pending_pods", queue="gated") == 1
    path = cluster.pod_path("p")
    cluster.patch(path, {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/one"}]}})
    cluster.create(cluster.pod("later"))
    cluster.wait_bound("later")
    assert "p" not in cluster.bound()
    gate_s = time.monotonic()
    cluster.patch(path, {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/two"}]}})
    cluster.wait_bound("p")
    print(f"bound {time.monotonic() - gate_s:.2f} s after the last gate went")
    assert daemon.metrics().total("scheduler_pending_pods", queue="gated") == 0


@pytest.mark.parametrize("what", ["node added", "pod deleted", "node label", "taint removed", "uncordoned"])
def test_waiting_pod_is_tried_again_when_it_may_help(what: str, cluster: Cluster, daemon: Daemon) -> None:
    """Queueing hints on the live path: the right change wakes the pod, an unrelated one does not."""
    cluster.create(cluster.node("elsewhere").taint("elsewhere"))
    node = cluster.node("n", cpu="1").label("kind", "small")
    pod = cluster.pod("waits").requests(cpu="1")
    if what in ("node added", "pod deleted"):
        cluster.create(node, cluster.pod("holds").requests(cpu="1"))
        cluster.wait_bound("holds")
    elif what == "node label":
        cluster.create(node)
        pod = pod.node_selector(kind="large")
    elif what == "taint removed":
        cluster.create(node.taint("closed"))
    else:
        cluster.create(node.cordoned())
    cluster.create(pod)
    cluster.wait_unschedulable("waits")
    grown = daemon.counting()
    path = f"/api/v1/nodes/{cluster.namespace}-n"
    cluster.patch(path, {"metadata": {"annotations": {"example.com/unrelated": "change"}}})
    cluster.create(
        cluster.pod("probe")
        .toleration("elsewhere", operator="Exists")
        .node_selector({"kubernetes.io/hostname": f"{cluster.namespace}-elsewhere"})
    )
    cluster.wait_bound("probe")
    assert grown("scheduler_schedule_attempts_total", result="unschedulable") == 0, "an unrelated change woke the pod"
    if what == "node added":
        cluster.create(cluster.node("n2", cpu="1"))
    elif what == "pod deleted":
        cluster.delete("holds")
    elif what == "node label":
        cluster.patch(path, {"metadata": {"labels": {"kind": "large"}}})
    elif what == "taint removed":
        cluster.patch(path, {"spec": {"taints": None}})
    else:
        cluster.patch(path, {"spec": {"unschedulable": None, "taints": None}})
    changed_s = time.monotonic()
    cluster.wait_bound("waits")
    print(f"bound {time.monotonic() - changed_s:.2f} s after: {what}")
    bound = cluster.get("waits")
    assert condition(bound, status="True") is not None
    assert condition(bound) is None


def test_higher_priority_goes_first(cluster: Cluster, daemon: Daemon) -> None:
    """Ten places for twenty waiting pods: exactly the ten of high priority get them."""
    low, high = cluster.priority_class("low", 1), cluster.priority_class("high", 1000)
    cluster.create(cluster.node("small", cpu="500m"))
    cluster.create(cluster.pod("probe").requests(cpu="100m"))
    cluster.wait_bound("probe")
    for index in range(10):
        cluster.create(cluster.pod(f"low{index}").set("spec.priorityClassName", low).requests(cpu="1"))
        cluster.create(cluster.pod(f"high{index}").set("spec.priorityClassName", high).requests(cpu="1"))
    waiting = {f"{kind}{index}" for kind in ("low", "high") for index in range(10)}
    for name in waiting:
        assert cluster.wait_unschedulable(name)["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")
    # Who is through its back-off goes before who is not, whatever their priorities.
    time.sleep(LONGEST_FIRST_BACKOFF_S)
    cluster.create(cluster.node("large", cpu="10"))
    highs = {name for name in waiting if name.startswith("high")}
    cluster.wait_bound(*highs)
    assert cluster.bound().keys() == {"probe", *highs}
    eventually(
        lambda: cluster.wait_unschedulable("low0")["message"].startswith("0/2 nodes are available: 2 Insufficient cpu"),
        "the others to be told what is missing",
    )
    del daemon


def test_pods_created_at_once_fill_the_cluster_exactly(cluster: Cluster, daemon: Daemon) -> None:
    """The sum of requests equals what there is: one booking too many would leave a pod without a node."""
    grown = daemon.counting()
    cluster.create(*(cluster.node(f"n{i}", cpu="10", memory="10Gi", pods="10") for i in range(10)))
    cluster.create(*(cluster.pod(f"p{i}").requests(cpu="1", memory="1Gi") for i in range(100)))
    bound = cluster.wait_bound()
    assert sorted(list(bound.values()).count(node) for node in set(bound.values())) == [10] * 10
    cluster.create(cluster.pod("one-more"))
    assert cluster.wait_unschedulable("one-more")["message"].startswith("0/10 nodes are available: 10 Too many pods")
    assert grown("podium_bind_outcomes_total", outcome="bound") == 100


def test_pod_is_told_once_and_again_only_when_the_reason_changes(cluster: Cluster, daemon: Daemon) -> None:
    """Condition and event say the same; a new reason replaces the condition."""
    cluster.create(cluster.node("n", cpu="1"))
    cluster.create(cluster.pod().requests(cpu="2"))
    first = cluster.wait_unschedulable()
    assert first["reason"] == "Unschedulable"
    assert "1 Insufficient cpu" in first["message"]
    event = eventually(lambda: cluster.events("p", "FailedScheduling"), "the FailedScheduling event")[0]
    assert event["note"] == first["message"]
    assert event["type"] == "Warning"
    assert event["reportingController"] == cluster.scheduler
    cluster.create(cluster.node("m", cpu="4").taint("closed"))
    cluster.create(cluster.node("o", cpu="1"))
    second = eventually(
        lambda: told if (told := cluster.wait_unschedulable())["message"] != first["message"] else None,
        "the new reason",
    )
    assert second["message"].startswith("0/")
    assert second["lastTransitionTime"] == first["lastTransitionTime"], "the status stayed False"
    del daemon


def test_objects_that_cannot_be_understood_do_not_matter_to_others(cluster: Cluster, daemon: Daemon) -> None:
    """The API server takes quantities no scheduler can count exactly; the pod waits or runs, its neighbours do not care."""
    cluster.create(cluster.node())
    hostile = ["1e19", "9" * 18 + "E", "0.0000001n", "1E"]
    for index, text in enumerate(hostile):
        manifest = cluster.pod(f"hostile{index}").requests({"example.com/x": 1}).create_manifest()
        manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": text}}
        status, _ = cluster.client.call("POST", f"/api/v1/namespaces/{cluster.namespace}/pods", manifest)
        assert status in (201, 400, 422)
    started_s = time.monotonic()
    cluster.create(*(cluster.pod(f"p{i}") for i in range(20)))
    cluster.wait_bound(*(f"p{i}" for i in range(20)))
    print(f"20 neighbours bound after {time.monotonic() - started_s:.2f} s")
    assert daemon.health("/livez")[0] == 200
    assert "Traceback" not in daemon.log()


def test_own_rate_limit_slows_and_fails_nothing(cluster: Cluster, start_daemon: StartDaemon) -> None:
    """With a low `clientConnection.qps` pods are bound at that pace, without one failed attempt."""
    cluster.create(cluster.node())
    daemon = start_daemon(cluster.scheduler, configuration={"clientConnection": {"qps": 25, "burst": 50}})
    daemon.wait_ready()
    started_s = time.monotonic()
    cluster.create(*(cluster.pod(f"p{i}") for i in range(60)))
    cluster.wait_bound()
    print(f"60 pods bound in {time.monotonic() - started_s:.1f} s at 25 requests a second")
    assert daemon.metrics().total("scheduler_schedule_attempts_total", result="error") == 0
    assert "bind outcome unknown" not in daemon.log()


def test_preemption_makes_room(cluster: Cluster, daemon: Daemon) -> None:
    """The pod of low priority is asked to go, the one of high priority is nominated, and bound once it has gone."""
    low, high = cluster.priority_class("low", 1), cluster.priority_class("high", 1000, preempts=True)
    cluster.create(cluster.node(cpu="1"))
    cluster.create(cluster.pod("victim").set("spec.priorityClassName", low).requests(cpu="1"))
    node_name = cluster.wait_bound("victim")["victim"]
    cluster.create(cluster.pod("urgent").set("spec.priorityClassName", high).requests(cpu="1"))
    eventually(lambda: "deletionTimestamp" in cluster.get("victim")["metadata"], "the victim to be asked to go")
    eventually(lambda: cluster.get("urgent")["status"].get("nominatedNodeName") == node_name, "the nomination")
    disrupted = condition(cluster.get("victim"), "DisruptionTarget", "True")
    assert disrupted is not None
    assert disrupted["reason"] == "PreemptionByScheduler"
    assert cluster.bound().keys() == {"victim"}, "the place is not given away before it is free"
    cluster.delete("victim")  # what its kubelet would do
    cluster.wait_bound("urgent")
    eventually(lambda: cluster.events("victim", "Preempted"), "the Preempted event")
    del daemon
