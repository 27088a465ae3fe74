"""The cluster of ``podium demo``: eight nodes and three dozen pods of different kinds, as plain manifests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.testing.builders import NodeBuilder, PodBuilder, field_in, in_, node, pod

__all__ = ["PRIORITY_CLASS", "SCHEDULER_NAME", "demo_nodes", "demo_pods"]

Json = dict[str, Any]

SCHEDULER_NAME = "podium"

PRIORITY_CLASS: Json = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}


def demo_nodes() -> Iterator[Json]:
    """Yield the nodes: two zones of ordinary ones, a GPU node, a spot node, a cordoned one, a small edge node."""
    for i in range(4):
        yield _ready(
            node(f"worker-{i}").capacity(cpu="4", memory="8Gi", pods="20").zone("ab"[i % 2]).label("disk", "ssd")
        )
    gpu = {"cpu": "8", "memory": "32Gi", "pods": "20", "vendor.example/gpu": "2"}
    yield _ready(node("gpu-0").capacity(gpu).zone("a").taint("gpu", "yes"))
    yield _ready(
        node("spot-0").capacity(cpu="4", memory="8Gi", pods="20").zone("b").taint("spot", "", "PreferNoSchedule")
    )
    yield _ready(node("worker-old").capacity(cpu="4", memory="8Gi", pods="20").zone("a").cordoned())
    yield _ready(node("edge-0").capacity(cpu="1", memory="1Gi", pods="5").label("site", "edge"))


def demo_pods() -> Iterator[PodBuilder]:
    """Yield builders of the pods, in the order in which the demo creates them."""
    yield _named("edge-agent").requests(cpu="200m").node_selector(site="edge")
    yield _named("node-agent").requests(cpu="50m").requires_node(field_in("spot-0"))
    yield from (_web(i) for i in range(14))
    yield from (
        _named(f"cache-{i}").requests(cpu="250m", memory="1Gi").prefers_node(50, in_("disk", "ssd")) for i in range(6)
    )
    yield from (_named(f"ingress-{i}").requests(cpu="100m").host_port(443) for i in range(5))
    yield from (_gpu(f"train-{i}") for i in range(3))
    yield _named("urgent").requests(cpu="500m").set("spec.priorityClassName", "urgent")
    yield _named("waits-for-quota").requests(cpu="100m").gate("example.com/quota")
    yield _named("too-big").requests(cpu="64")
    yield _named("wants-arm").requests(cpu="100m").node_selector({"kubernetes.io/arch": "arm64"})
    yield _named("batch-0").requests(cpu="3")
    yield _named("batch-1").requests(cpu="3")


def _ready(builder: NodeBuilder) -> Json:
    return builder.hostname().condition("Ready").create_manifest()


def _named(name: str) -> PodBuilder:
    return pod(name).image("registry.example/app:1").scheduler(SCHEDULER_NAME)


def _web(number: int) -> PodBuilder:
    return _named(f"web-{number}").requests(cpu="500m", memory="256Mi").label("app", "web")


def _gpu(name: str) -> PodBuilder:
    wanted = {"cpu": "1", "vendor.example/gpu": "1"}
    return _named(name).requests(wanted).limits({"vendor.example/gpu": "1"}).toleration("gpu", operator="Exists")
