"""NodeInfo: sums follow the pods."""

import pytest

from scheduler.model.ports import HostPort
from scheduler.state.cache.errors import CacheError
from scheduler.state.cache.node_info import NodeInfo
from scheduler.testing.builders import node, pod

MIB = 1024 * 1024


def info(*pods):
    made = NodeInfo("n1")
    made.set_node(node("n1").capacity(cpu="4", memory="8Gi", pods=110).label("pool", "a").obj())
    for p in pods:
        made.add_pod(p)
    return made


def test_sums_of_two_pods():
    """Requests, defaults, ports, claims and affinity of all pods are counted."""
    made = info(
        pod("a").requests({"cpu": "500m", "memory": "1Mi", "example.com/gpu": 1}).host_port(80).claim("data").obj(),
        pod("b")
        .requests({"example.com/gpu": 2})
        .claim("data")
        .claim("logs")
        .pod_anti_affinity("zone", {"a": "b"})
        .obj(),
        pod("c").pod_affinity("zone", {"a": "b"}, weight=1).obj(),
    )

    assert made.requested == {"cpu": 500, "memory": MIB, "example.com/gpu": 3}
    assert made.non_zero_requested == {"cpu": 700, "memory": 401 * MIB}
    assert {HostPort("0.0.0.0", "TCP", 80): 1} == made.used_ports
    assert made.pvc_ref_counts == {"default/data": 2, "default/logs": 1}
    assert [p.name for p in made.pods_with_affinity] == ["b", "c"]
    assert [p.name for p in made.pods_with_required_anti_affinity] == ["b"]
    assert [p.name for p in made.pods] == ["a", "b", "c"]
    assert (made.num_pods, made.num_pods_with_affinity, made.num_pods_with_required_anti_affinity) == (3, 2, 1)


def test_removing_the_last_pod_leaves_nothing():
    """Entries whose sum is zero are gone."""
    p = pod("a").requests({"cpu": 1, "example.com/gpu": 1}).host_port(80).claim("data").pod_anti_affinity("zone").obj()
    made = info(p)

    made.remove_pod(p)

    assert {} == made.requested == made.non_zero_requested
    assert made.used_ports == {}
    assert made.pvc_ref_counts == {}
    assert [] == made.pods == made.pods_with_affinity == made.pods_with_required_anti_affinity


def test_port_of_two_pods_is_free_after_both_left():
    """Ports are counted, not marked."""
    a, b = pod("a").host_port(80).obj(), pod("b").host_port(80).obj()
    made = info(a, b)

    made.remove_pod(a)

    assert {HostPort("0.0.0.0", "TCP", 80): 1} == made.used_ports


def test_pod_leaves_with_the_amounts_it_came_with():
    """A newer version of the pod does not spoil the sums."""
    made = info(pod("a").requests(cpu=1).obj())

    made.remove_pod(pod("a").requests(cpu=3).obj())

    assert made.requested == {}


def test_ephemeral_volume_is_no_claim():
    """Only explicit claims are counted."""
    made = info(pod("a").volume("scratch", ephemeral={"volumeClaimTemplate": {"spec": {}}}).obj())

    assert made.pvc_ref_counts == {}


def test_same_pod_twice_is_refused():
    """A UID is on a node once."""
    p = pod("a").obj()
    with pytest.raises(CacheError, match="already on node n1"):
        info(p, p)


def test_removing_a_stranger_is_refused():
    """A pod that is not there cannot be counted out."""
    with pytest.raises(CacheError, match="not on node n1"):
        info().remove_pod(pod("a").obj())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda made: made.add_pod(pod("b").obj()), id="a pod comes"),
        pytest.param(lambda made: made.remove_pod(pod("a").obj()), id="a pod goes"),
        pytest.param(lambda made: made.set_node(node("n1").obj()), id="the node changes"),
        pytest.param(lambda made: made.remove_node(), id="the node goes"),
    ],
)
def test_every_change_takes_a_later_generation(change):
    """The generation grows."""
    made = info(pod("a").obj())
    before = made.generation

    change(made)

    assert made.generation > before


def test_clone_is_independent():
    """Changing a clone leaves the original alone, and has the original's generation until then."""
    a = pod("a").requests(cpu=1).host_port(80).claim("data").pod_anti_affinity("zone").obj()
    made = info(a)
    copy = made.clone()
    assert made.generation == copy.generation

    copy.remove_pod(a)
    copy.add_pod(pod("b").requests(cpu=3).obj())

    assert made.requested == {"cpu": 1000}
    assert copy.requested == {"cpu": 3000}
    assert ["a"] == [p.name for p in made.pods] == [p.name for p in made.pods_with_required_anti_affinity]
    assert made.pvc_ref_counts == {"default/data": 1}
    assert len(made.used_ports) == 1
    assert made.node is copy.node


def test_node_facts():
    """Labels and allocatable are the node's; PODS is the pod limit."""
    made = info()

    assert made.allocatable == {"cpu": 4000, "memory": 8192 * MIB, "pods": 110}
    assert made.labels["pool"] == "a"
    assert made.has_node


def test_placeholder_has_no_node():
    """Asking a placeholder for its node says so."""
    made = info(pod("a").obj())

    made.remove_node()

    assert not made.has_node
    assert {} == made.images == made.allocatable
    assert "placeholder" in repr(made)
    with pytest.raises(CacheError, match="node n1 is not in the cluster"):
        _ = made.node


def test_images_of_a_node_outside_a_cache():
    """A NodeInfo by itself counts one node."""
    made = NodeInfo("n1")
    made.set_node(node("n1").image("app:v1", "app@sha256:1", size_bytes=7).obj())

    assert {name: (state.size_bytes, state.num_nodes) for name, state in made.images.items()} == {
        "app:v1": (7, 1),
        "app@sha256:1": (7, 1),
    }


def test_get_pod_by_uid():
    """Pods are found by UID."""
    p = pod("a").obj()
    made = info(p)

    assert p is made.pod(p.uid)
    assert made.pod("other") is None
