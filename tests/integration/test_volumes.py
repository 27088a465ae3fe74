"""Volumes on the real API server, with the real volume controller: who decides, who binds, and what the pod is told.

The scheduler chooses a volume (or a node to make one on), writes that down and waits; the volume controller of
kube-controller-manager binds; only then is the pod bound.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.testing.pod_builder import PodBuilder
from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon
from tests.integration.settled import HOSTNAME, known_nodes, notes, on_node, wait_told
from tests.integration.storage import (
    CONTROLLERS,
    SELECTED_NODE,
    Provisioner,
    Storage,
    claim_manifest,
    storage_of,
)

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
PROVISIONER = "podium.test/provisioner"

pytestmark = pytest.mark.usefixtures("volume_controller")


@pytest.fixture(scope="module")
def volume_controller(control_plane: ControlPlane) -> Iterator[None]:
    """The real volume controllers, for this module only."""
    manager = control_plane.start_controller_manager(CONTROLLERS)
    try:
        yield
    finally:
        manager.stop()


@pytest.fixture
def storage(cluster: Cluster) -> Iterator[Storage]:
    with storage_of(cluster) as made:
        yield made


@pytest.fixture
def provisioner(control_plane: ControlPlane, storage: Storage) -> Iterator[Provisioner]:
    """A provisioner that has not begun yet, and its class `made`, which waits for the first consumer."""
    class_name = storage.storage_class("made", provisioner=PROVISIONER)
    with Provisioner(control_plane, storage, class_name) as running:
        yield running


def made_class(cluster: Cluster) -> str:
    return f"{cluster.namespace}-made"


# --- volumes that exist ----------------------------------------------------------------------------------------------


def test_pod_goes_where_its_local_volume_is(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """Only one of three nodes has a volume: it is bound to the claim before the pod is bound to the node."""
    class_name = storage.storage_class()
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(3)))
    volume = storage.local_volume("v", class_name, "n1")
    storage.wait_available(volume)
    storage.claim("data", class_name)
    cluster.create(cluster.pod().claim("data"))
    assert cluster.wait_bound() == {"p": f"{cluster.namespace}-n1"}
    claim, bound = storage.get_claim("data"), storage.get_volume(volume)
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["volumeName"] == volume
    assert bound["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert bound["metadata"]["annotations"][BOUND_BY_CONTROLLER] == "yes"
    assert SELECTED_NODE not in claim["metadata"]["annotations"], "nothing was to be made"
    del daemon


def test_smallest_volume_that_is_large_enough_is_taken(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """Two claims of one pod: the small one does not take the large volume."""
    class_name = storage.storage_class()
    known_nodes(cluster, cluster.node())
    sizes = {"s": "1Gi", "m": "5Gi", "l": "20Gi", "xl": "100Gi"}
    volumes = {key: storage.local_volume(key, class_name, "n", size=size) for key, size in sizes.items()}
    storage.wait_available(*volumes.values())
    storage.claim("large", class_name, size="10Gi")
    storage.claim("small", class_name, size="2Gi")
    cluster.create(cluster.pod().claim("large").claim("small"))
    cluster.wait_bound()
    assert storage.get_claim("large")["spec"]["volumeName"] == volumes["l"]
    assert storage.get_claim("small")["spec"]["volumeName"] == volumes["m"]
    del daemon


def test_pods_created_at_once_take_each_a_volume_of_their_own(
    cluster: Cluster, daemon: Daemon, storage: Storage
) -> None:
    """As many local volumes as claims, all wanted at once: none is taken twice, each pod is beside its volume."""
    class_name = storage.storage_class()
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(3)))
    volumes = {
        storage.local_volume(f"v{i}", class_name, f"n{i % 3}"): f"{cluster.namespace}-n{i % 3}" for i in range(12)
    }
    storage.wait_available(*volumes)
    for i in range(12):
        storage.claim(f"data{i}", class_name)
    cluster.create(*(cluster.pod(f"p{i}").claim(f"data{i}") for i in range(12)))
    placed = cluster.wait_bound()
    taken = {f"p{claim['metadata']['name'][4:]}": claim["spec"]["volumeName"] for claim in storage.claims()}
    assert sorted(taken.values()) == sorted(volumes)
    assert {name: volumes[volume] for name, volume in taken.items()} == placed
    del daemon


def test_pod_waits_for_a_volume_and_gets_the_next_one(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """One volume, two pods: the second is told why it waits, and is woken by a new volume."""
    class_name = storage.storage_class()
    known_nodes(cluster, cluster.node())
    storage.wait_available(storage.local_volume("v0", class_name, "n"))
    for i in range(2):
        storage.claim(f"data{i}", class_name)
    cluster.create(cluster.pod("first").claim("data0"))
    cluster.wait_bound("first")
    cluster.create(cluster.pod("second").claim("data1"))
    wait_told(cluster, "second", f"0/1 nodes are available: 1 {NO_VOLUME}.")
    storage.local_volume("v1", class_name, "n")
    cluster.wait_bound("second")
    assert storage.get_claim("data1")["spec"]["volumeName"].endswith("v1")
    del daemon


# --- claims that are bound without us --------------------------------------------------------------------------------


def test_pod_waits_until_the_controller_has_bound_its_claim(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """A class that binds at once is not the scheduler's business: pending with the reason, then beside the volume."""
    class_name = storage.storage_class("immediate", waits=False)
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(3)))
    storage.claim("data", class_name)
    cluster.create(cluster.pod().claim("data"))
    told = wait_told(cluster, "p", f"0/3 nodes are available: {UNBOUND_IMMEDIATE}.")
    assert told["reason"] == "Unschedulable"
    assert cluster.bound() == {}
    volume = storage.local_volume("v", class_name, "n2")
    assert cluster.wait_bound() == {"p": f"{cluster.namespace}-n2"}
    assert storage.get_claim("data")["spec"]["volumeName"] == volume
    assert SELECTED_NODE not in storage.get_claim("data")["metadata"]["annotations"]
    del daemon


def test_missing_claim_is_named_and_waited_for(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """The pod is tried again when its claim is created."""
    class_name = storage.storage_class()
    known_nodes(cluster, cluster.node())
    storage.local_volume("v", class_name, "n")
    cluster.create(cluster.pod().claim("data"))
    wait_told(cluster, "p", 'persistentvolumeclaim "data" not found')
    storage.claim("data", class_name)
    cluster.wait_bound()
    del daemon


def test_bound_volume_out_of_reach_is_the_reason(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """The claim is bound to a volume of a node that is full: the other node is no alternative."""
    class_name = storage.storage_class("immediate", waits=False)
    known_nodes(cluster, cluster.node("n0", cpu="1"), cluster.node("n1"))
    storage.wait_available(storage.local_volume("v", class_name, "n0"))
    storage.claim("data", class_name)
    storage.wait_phase("data", "Bound")
    cluster.create(cluster.pod().claim("data").requests(cpu="2"))
    wait_told(cluster, "p", f"0/2 nodes are available: 1 Insufficient cpu, 1 {NODE_CONFLICT}.")
    del daemon


def test_volume_for_one_pod_goes_to_the_more_important_one(cluster: Cluster, daemon: Daemon, storage: Storage) -> None:
    """ReadWriteOncePod: an equal pod waits, a more important one has the first one evicted.

    The equal pod may still slip in between, as with kube-scheduler, and is then evicted as well.
    """
    class_name = storage.storage_class()
    low, high = (cluster.priority_class(f"p{value}", value, preempts=True) for value in (1, 100))
    known_nodes(cluster, cluster.node())
    storage.wait_available(storage.local_volume("v", class_name, "n", mode="ReadWriteOncePod"))
    storage.claim("data", class_name, accessModes=["ReadWriteOncePod"])

    def wants(name: str, priority_class: str) -> PodBuilder:
        brief = cluster.pod(name).claim("data").set("spec.terminationGracePeriodSeconds", 0)
        return brief.set("spec.priorityClassName", priority_class)

    cluster.create(wants("first", low))
    cluster.wait_bound("first")
    cluster.create(wants("equal", low))
    wait_told(cluster, "equal", f"0/1 nodes are available: 1 {IN_USE}.")
    cluster.create(wants("important", high))
    assert cluster.wait_bound("important").keys() == {"important"}
    del daemon


# --- volumes that are made -------------------------------------------------------------------------------------------


def test_volume_is_made_where_the_pod_goes(
    cluster: Cluster, daemon: Daemon, storage: Storage, provisioner: Provisioner
) -> None:
    """The node is selected and the pod nominated to it; bound is the pod once its volume is."""
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(3)))
    storage.claim("data", made_class(cluster))
    cluster.create(cluster.pod().claim("data"))
    node_name = storage.wait_selected("data")
    eventually(lambda: cluster.get()["status"].get("nominatedNodeName") == node_name, "the nomination to be written")
    assert cluster.bound() == {}, "there is no volume yet"
    provisioner.open()
    assert cluster.wait_bound() == {"p": node_name}
    claim = storage.get_claim("data")
    assert claim["status"]["phase"] == "Bound"
    volume = storage.get_volume(claim["spec"]["volumeName"])
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert provisioner.seen == {"data": [node_name]}
    assert "nominatedNodeName" not in cluster.get()["status"]
    assert notes(cluster, "p", "PreBind") == []
    del daemon


def test_provisioner_without_room_sends_the_pod_to_another_node(
    cluster: Cluster, daemon: Daemon, storage: Storage, provisioner: Provisioner
) -> None:
    """The annotation is taken back: the place is given back, the pod fails and is placed anew."""
    known_nodes(cluster, *(cluster.node(f"n{i}", cpu="1") for i in range(2)))
    storage.claim("data", made_class(cluster))
    cluster.create(cluster.pod().claim("data").requests(cpu="1"))
    first = storage.wait_selected("data")
    provisioner.refuse(lambda node_name: node_name == first)
    cluster.patch(f"/api/v1/nodes/{first}", {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}})
    provisioner.open()
    second = cluster.wait_bound()["p"]
    assert second != first
    assert provisioner.seen["data"] == [first, second]
    why = 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"'
    eventually(lambda: notes(cluster, "p", why), "the first failure to be told")
    cluster.create(
        cluster.pod("next").requests(cpu="1").toleration("full", operator="Exists").node_selector({HOSTNAME: first})
    )
    assert cluster.wait_bound("next")["next"] == first, "the first place was given back"
    del daemon


def test_existing_volume_is_preferred_and_others_are_made(
    cluster: Cluster, daemon: Daemon, storage: Storage, provisioner: Provisioner
) -> None:
    """One volume for two claims of a pod: one is matched, the other made on the same node."""
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(2)))
    volume = storage.local_volume("v", made_class(cluster), "n1")
    storage.wait_available(volume)
    storage.claim("data0", made_class(cluster))
    storage.claim("data1", made_class(cluster))
    provisioner.open()
    cluster.create(cluster.pod().claim("data0").claim("data1").node_selector(on_node(cluster, "n1")))
    assert cluster.wait_bound() == {"p": f"{cluster.namespace}-n1"}
    volumes = {claim["spec"]["volumeName"] for claim in storage.claims()}
    assert volume in volumes
    assert len(volumes) == 2
    assert len(provisioner.seen) == 1
    del daemon


def test_only_nodes_of_the_allowed_topology_are_used(
    cluster: Cluster, daemon: Daemon, storage: Storage, control_plane: ControlPlane
) -> None:
    """A class with allowedTopologies: no node of the zone, no volume; a new node of the zone wakes the pod."""
    topology = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]
    class_name = storage.storage_class("zonal", provisioner=PROVISIONER, allowedTopologies=topology)
    known_nodes(cluster, cluster.node("n0").zone("a"))
    storage.claim("data", class_name)
    cluster.create(cluster.pod().claim("data"))
    wait_told(cluster, "p", f"0/1 nodes are available: 1 {NO_VOLUME}.")
    with Provisioner(control_plane, storage, class_name) as running:
        running.open()
        known_nodes(cluster, cluster.node("n1").zone("b"))
        assert cluster.wait_bound() == {"p": f"{cluster.namespace}-n1"}
    del daemon


def test_published_capacity_decides_where_a_volume_is_made(
    cluster: Cluster, daemon: Daemon, storage: Storage, control_plane: ControlPlane
) -> None:
    """A driver that publishes capacities: a node without room is not chosen; more room wakes the pod."""
    driver = storage.csi_driver("driver", storageCapacity=True)
    class_name = storage.storage_class("published", provisioner=driver)
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(2)))
    storage.capacity("c0", class_name, "n0", "1Gi")
    path = storage.capacity("c1", class_name, "n1", "2Gi")
    probe = cluster.pod("probe").claim("probe")
    storage.claim("probe", class_name, size="1Ti")
    cluster.create(probe)
    wait_told(cluster, "probe", "2 node(s) did not have enough free storage")
    storage.claim("data", class_name, size="5Gi")
    cluster.create(cluster.pod().claim("data"))
    wait_told(cluster, "p", "2 node(s) did not have enough free storage")
    with Provisioner(control_plane, storage, class_name) as running:
        running.open()
        cluster.client.ok("PATCH", path, {"capacity": "10Gi"}, content_type="application/merge-patch+json")
        assert cluster.wait_bound("p")["p"] == f"{cluster.namespace}-n1"
    assert "probe" not in cluster.bound()
    del daemon


def test_claim_of_an_ephemeral_volume_is_made_by_its_controller(
    cluster: Cluster, daemon: Daemon, storage: Storage, provisioner: Provisioner
) -> None:
    """The pod may come before its claim: it waits for the controller without being lost."""
    provisioner.open()
    known_nodes(cluster, cluster.node())
    template = {"spec": claim_manifest("unused", made_class(cluster))["spec"]}
    cluster.create(cluster.pod().volume("scratch", ephemeral={"volumeClaimTemplate": template}))
    cluster.wait_bound()
    claim = storage.get_claim("p-scratch")
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["ownerReferences"][0]["uid"] == cluster.get()["metadata"]["uid"]
    del daemon


# --- trouble ---------------------------------------------------------------------------------------------------------


def test_claim_deleted_while_its_volume_is_made_fails_the_pod_at_once(
    cluster: Cluster, daemon: Daemon, storage: Storage, provisioner: Provisioner
) -> None:
    """Not after ten minutes: the place is free again and the reason is told."""
    known_nodes(cluster, cluster.node(cpu="1"))
    storage.claim("data", made_class(cluster))
    cluster.create(cluster.pod().claim("data").requests(cpu="1"))
    storage.wait_selected("data")
    storage.delete_claim("data")
    wait_told(cluster, "p", 'persistentvolumeclaim "data" not found')
    cluster.create(cluster.pod("next").requests(cpu="1"))
    cluster.wait_bound("next")
    del daemon, provisioner


def test_pod_deleted_while_its_volume_is_made_gives_its_place_back(
    cluster: Cluster, daemon: Daemon, storage: Storage, provisioner: Provisioner
) -> None:
    """The selected node stays with the claim: the next pod that uses it goes there, and nowhere else."""
    known_nodes(cluster, *(cluster.node(f"n{i}", cpu="1") for i in range(2)))
    storage.claim("data", made_class(cluster))
    cluster.create(cluster.pod().claim("data").requests(cpu="1"))
    node_name = storage.wait_selected("data")
    cluster.delete("p")
    cluster.create(cluster.pod("q").claim("data").requests(cpu="1"))
    eventually(lambda: cluster.get("q")["status"].get("nominatedNodeName") == node_name, "q to follow the claim")
    provisioner.open()
    assert cluster.wait_bound("q") == {"q": node_name}
    assert provisioner.seen == {"data": [node_name]}
    del daemon


def test_binding_that_takes_too_long_is_given_up_and_tried_again(
    cluster: Cluster, start_daemon: StartDaemon, storage: Storage, provisioner: Provisioner
) -> None:
    """With bindTimeoutSeconds 2: told why, then bound on the node that was selected, once the volume is there."""
    settings = {"kind": "VolumeBindingArgs", "bindTimeoutSeconds": 2}
    profile = {"schedulerName": cluster.scheduler, "pluginConfig": [{"name": "VolumeBinding", "args": settings}]}
    daemon = start_daemon(profile)
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(2)))
    storage.claim("data", made_class(cluster))
    cluster.create(cluster.pod().claim("data"))
    node_name = storage.wait_selected("data")
    why = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert wait_told(cluster, "p", why)["reason"] == "SchedulerError"
    provisioner.open()
    assert cluster.wait_bound() == {"p": node_name}
    assert "Traceback" not in daemon.log()


def test_new_daemon_goes_on_where_the_old_one_was_killed(
    cluster: Cluster, start_daemon: StartDaemon, storage: Storage, provisioner: Provisioner
) -> None:
    """Killed between the selection of the node and the volume: the pod goes to the selected node."""
    first = start_daemon(cluster.scheduler)
    known_nodes(cluster, *(cluster.node(f"n{i}") for i in range(4)))
    storage.claim("data", made_class(cluster))
    cluster.create(cluster.pod().claim("data"))
    node_name = storage.wait_selected("data")
    first.process.kill()
    provisioner.open()
    second = start_daemon(cluster.scheduler)
    assert cluster.wait_bound() == {"p": node_name}
    assert "Traceback" not in second.log()
