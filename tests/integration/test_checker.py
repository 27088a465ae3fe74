"""The judge is judged: each kind of wrong placement is seen, and right ones pass."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from scheduler.testing import builders as b
from tests.integration.checker import nodes_that_fit, quantity, requests, violations

NODE = b.node("n").label("disk", "ssd").label("cores", "8").capacity(cpu="2", memory="1Gi", pods="3")
BARE = b.pod("p").requests(cpu="1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1500m", Fraction(3, 2), id="milli"),
        pytest.param("1Gi", Fraction(2**30), id="binary"),
        pytest.param("2G", Fraction(2 * 10**9), id="decimal"),
        pytest.param("1e3", Fraction(1000), id="exponent"),
        pytest.param("1E", Fraction(10**18), id="exa is not an exponent"),
        pytest.param(".5", Fraction(1, 2), id="leading point"),
        pytest.param(3, Fraction(3), id="plain number"),
    ],
)
def test_quantities_are_exact(text: Any, value: Fraction) -> None:
    """Values are those of the Kubernetes grammar, without rounding."""
    assert quantity(text) == value


@pytest.mark.parametrize(
    ("node", "pod"),
    [
        pytest.param(NODE, BARE.requests(cpu="2001m"), id="too little cpu"),
        pytest.param(NODE, BARE.requests({"example.com/gpu": 1}), id="a resource the node has not"),
        pytest.param(NODE.cordoned(), BARE, id="cordoned"),
        pytest.param(NODE.taint("k", "v", "NoExecute"), BARE.toleration("k", "w"), id="taint with another value"),
        pytest.param(NODE, BARE.node_selector(disk="hdd"), id="selector"),
        pytest.param(NODE, BARE.requires_node(_ := {"key": "cores", "operator": "Gt", "values": ["8"]}), id="affinity"),
        pytest.param(NODE.allocatable(pods="0"), BARE, id="no pod slot"),
    ],
)
def test_wrong_placements_are_seen(node: b.NodeBuilder, pod: b.PodBuilder) -> None:
    """The pod fits nowhere while unbound, and breaks a rule once it is bound."""
    assert nodes_that_fit(pod.manifest(), [node.manifest()], []) == []
    assert violations([node.manifest()], [pod.on("n").manifest()], ["default-scheduler"])


@pytest.mark.parametrize(
    ("node", "pod"),
    [
        pytest.param(NODE, BARE.requests(cpu="2"), id="exactly full"),
        pytest.param(NODE.cordoned(), BARE.toleration(operator="Exists"), id="cordoned and tolerated"),
        pytest.param(NODE.taint("k", effect="PreferNoSchedule"), BARE, id="soft taint"),
        pytest.param(NODE, BARE.requires_node({"key": "cores", "operator": "Gt", "values": ["7"]}), id="affinity"),
        pytest.param(NODE, BARE.requires_node({"key": "x", "operator": "NotIn", "values": ["7"]}), id="label absent"),
    ],
)
def test_right_placements_pass(node: b.NodeBuilder, pod: b.PodBuilder) -> None:
    """The node is offered while the pod is unbound, and nothing is wrong once it is bound."""
    assert nodes_that_fit(pod.manifest(), [node.manifest()], []) == ["n"]
    assert violations([node.manifest()], [pod.on("n").manifest()], ["default-scheduler"]) == []


def test_neighbours_share_ports_and_room() -> None:
    """Two pods that clash are seen; on other addresses they may share a port."""
    web = b.pod("a").host_port(80, ip="127.0.0.1").on("n")
    other = b.pod("b").host_port(80)
    assert nodes_that_fit(other.manifest(), [NODE.manifest()], [web.manifest()]) == []
    assert violations([NODE.manifest()], [web.manifest(), other.on("n").manifest()], ["default-scheduler"])
    elsewhere = b.pod("c").host_port(80, ip="127.0.0.2")
    assert nodes_that_fit(elsewhere.manifest(), [NODE.manifest()], [web.manifest()]) == ["n"]


def test_requests_count_sidecars_init_containers_and_overhead() -> None:
    """KEP-753: an init container runs beside the sidecars that were started before it."""
    pod = b.pod().requests(cpu="1").sidecar({"cpu": "500m"}).init_container({"cpu": "2"}).overhead(cpu="250m")
    assert requests(pod.manifest()) == {"cpu": Fraction(11, 4)}


def test_pods_of_others_take_room_but_are_not_judged() -> None:
    """A foreign pod on a tainted node is nobody's fault; ours beside it must still fit."""
    node = NODE.taint("k")
    foreign = b.pod("x").requests(cpu="1").scheduler("other").on("n").manifest()
    assert violations([node.manifest()], [foreign], ["default-scheduler"]) == []
    ours = BARE.requests(cpu="1500m").toleration("k", operator="Exists")
    assert nodes_that_fit(ours.manifest(), [node.manifest()], [foreign]) == []
    assert violations([node.manifest()], [foreign, ours.on("n").manifest()], ["default-scheduler"])
