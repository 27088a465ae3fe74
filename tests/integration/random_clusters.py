"""Random small clusters: what the first plugins look at, in proportions that leave some pods without a node."""

from __future__ import annotations

import random
from dataclasses import dataclass

from scheduler.testing.node_builder import NodeBuilder
from scheduler.testing.pod_builder import PodBuilder
from tests.integration.api import Cluster

_KEYS = ("disk", "team", "gen")
_VALUES = ("a", "b", "c", "7", "12")
_TAINTS = ("dedicated", "gpu", "maintenance")
_EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")
_GPU = "example.com/gpu"


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """Manifests of one cluster; `residents` are bound to nodes by somebody else from the start."""

    nodes: list[NodeBuilder]
    residents: list[PodBuilder]
    pods: list[PodBuilder]


def random_cluster(cluster: Cluster, seed: int, classes: list[str]) -> RandomCluster:
    """Return the cluster of this seed; `classes` are the priority classes to choose from."""
    chance = random.Random(seed)
    nodes = [_node(cluster, chance, f"s{seed}-n{i}") for i in range(chance.randint(1, 6))]
    residents = [
        cluster.pod(f"s{seed}-r{i}")
        .scheduler("somebody-else")
        .requests(cpu="200m", memory="64Mi")
        .on(on.manifest()["metadata"]["name"])
        for i, on in enumerate(chance.choices(nodes, k=chance.randint(0, 2)))
    ]
    pods = [_pod(cluster, chance, f"s{seed}-p{i}", nodes, classes) for i in range(chance.randint(3, 10))]
    return RandomCluster(nodes, residents, pods)


def _node(cluster: Cluster, chance: random.Random, name: str) -> NodeBuilder:
    # Residents take at most 400m of cpu, 128Mi of memory and two places, so they never overfill a node themselves.
    node = cluster.node(
        name,
        cpu=chance.choice(["1", "2", "3500m", "4"]),
        memory=chance.choice(["512Mi", "1Gi", "2G"]),
        pods=str(chance.choice([3, 4, 110])),
    )
    for key in _KEYS:
        if chance.random() < 0.6:
            node = node.label(key, chance.choice(_VALUES))
    if chance.random() < 0.3:
        node = node.zone(chance.choice(["z1", "z2"]))
    for key in _TAINTS:
        if chance.random() < 0.15:
            node = node.taint(key, chance.choice(["", "x"]), chance.choice(_EFFECTS))
    if chance.random() < 0.1:
        node = node.cordoned()
    if chance.random() < 0.3:
        node = node.capacity({_GPU: chance.randint(1, 2)})
    return node


def _pod(
    cluster: Cluster, chance: random.Random, name: str, nodes: list[NodeBuilder], classes: list[str]
) -> PodBuilder:
    pod = cluster.pod(name).set("spec.priorityClassName", chance.choice(classes))
    if chance.random() < 0.8:
        pod = pod.requests(
            cpu=chance.choice(["100m", "0.5", "1", "1500m"]), memory=chance.choice(["64Mi", "200M", "512Mi"])
        )
    if chance.random() < 0.15:
        pod = pod.requests({_GPU: 1}).limits({_GPU: 1})
    if chance.random() < 0.2:
        pod = pod.init_container({"cpu": chance.choice(["1", "2"])})
    if chance.random() < 0.1:
        pod = pod.sidecar({"cpu": "250m"})
    pod = _placed(pod, chance, nodes)
    for key in _TAINTS:
        if chance.random() < 0.3:
            value, effect = chance.choice(["", "x"]), chance.choice(["", "NoSchedule", "NoExecute"])
            pod = (
                pod.toleration(key, value, effect=effect)
                if chance.random() < 0.5
                else pod.toleration(key, operator="Exists", effect=effect)
            )
    if chance.random() < 0.1:
        pod = pod.toleration(operator="Exists")
    if chance.random() < 0.25:
        ip = chance.choice(["", "", "127.0.0.1", "127.0.0.2"])
        pod = pod.host_port(chance.choice([8080, 9090]), ip=ip, protocol=chance.choice(["TCP", "TCP", "UDP"]))
    return pod


def _placed(pod: PodBuilder, chance: random.Random, nodes: list[NodeBuilder]) -> PodBuilder:
    if chance.random() < 0.2:
        pod = pod.node_selector({chance.choice(_KEYS): chance.choice(_VALUES)})
    if chance.random() < 0.3:
        pod = pod.requires_node(*(_expression(chance) for _ in range(chance.randint(1, 2))))
    if chance.random() < 0.1:
        named = chance.choice(nodes).manifest()["metadata"]["name"]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [named]}]}
        pod = pod.requires_node(term)
    if chance.random() < 0.2:
        pod = pod.prefers_node(chance.randint(1, 100), _expression(chance))
    return pod


def _expression(chance: random.Random) -> dict[str, object]:
    operator = chance.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    values: list[str] = []
    if operator in ("In", "NotIn"):
        values = chance.sample(_VALUES, k=2)
    elif operator in ("Gt", "Lt"):
        values = [chance.choice(["5", "7", "10"])]
    expression: dict[str, object] = {"key": chance.choice(_KEYS), "operator": operator}
    return {**expression, "values": values} if values else expression
