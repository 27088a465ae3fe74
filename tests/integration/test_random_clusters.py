"""100 random clusters through the real API server; every placement is checked again by somebody who shares no code."""

from __future__ import annotations

import re

import pytest

from tests.integration.api import Cluster, condition, eventually
from tests.integration.checker import nodes_that_fit, violations
from tests.integration.conftest import StartDaemon
from tests.integration.random_clusters import RandomCluster, random_cluster

BATCH = 25


@pytest.mark.parametrize("batch", range(4))
def test_placements_keep_every_rule(batch: int, cluster: Cluster, start_daemon: StartDaemon) -> None:
    """One daemon, one cluster after the other: what is bound keeps the rules, what is not fits nowhere and knows why."""
    classes = [cluster.priority_class("low", 10), cluster.priority_class("high", 1000)]
    configuration = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    daemon = start_daemon(cluster.scheduler, configuration=configuration)
    daemon.wait_ready()
    bound = unbound = 0
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        made = random_cluster(cluster, seed, classes)
        cluster.create(*made.nodes, *made.residents, *made.pods)
        pods = _settled(cluster, made, seed)
        found = violations(cluster.nodes(), pods, [cluster.scheduler])
        assert found == [], f"seed {seed}: {found}"
        ours = [p for p in pods if p["spec"]["schedulerName"] == cluster.scheduler]
        bound += sum(1 for p in ours if p["spec"].get("nodeName"))
        unbound += sum(1 for p in ours if not p["spec"].get("nodeName"))
        cluster.clear()
    assert bound > 2 * BATCH
    assert unbound > BATCH / 2, "clusters in which everything fits prove little"


def _settled(cluster: Cluster, made: RandomCluster, seed: int) -> list[dict]:
    """Wait until every pod is bound, or fits nowhere and says so truthfully."""
    last: list[str] = []

    def probe() -> list[dict] | None:
        nodes, pods = cluster.nodes(), cluster.pods()
        assert len(pods) == len(made.pods) + len(made.residents), f"seed {seed}: a pod disappeared"
        last[:] = [why for pod in pods if (why := _unfinished(pod, nodes, pods))]
        return None if last else pods

    try:
        return eventually(probe, "all pods bound or told why not", poll_s=0.05)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {last}") from error


def _unfinished(pod: dict, nodes: list[dict], pods: list[dict]) -> str:
    """Return what is still missing for the pod to be done; "" if nothing is."""
    name = pod["metadata"]["name"]
    if pod["spec"].get("nodeName"):
        return ""
    told = condition(pod)
    if fitting := nodes_that_fit(pod, nodes, pods):
        return f"{name} is unbound and fits on {fitting}; it was told {told}"
    if told is None:
        return f"{name} has not been told why it is pending"
    # A node that came later and could not help is no reason for another attempt, so fewer may have been counted.
    counted = re.match(r"0/(\d+) nodes are available: ", told["message"])
    if told["reason"] != "Unschedulable" or counted is None or not 0 < int(counted[1]) <= len(nodes):
        return f"{name} was told {told}, but there are {len(nodes)} nodes"
    return ""
