"""VolumeBinding: which pods can go anywhere at all, and where; facts of upstream's binder_test.go."""

import numpy as np
import pytest

from scheduler.api import Code, CycleState
from scheduler.plugins.shared.storage import claim_not_found, not_made_for
from scheduler.plugins.volume_binding.claims import REASON_UNBOUND_IMMEDIATE, waiting_for_ephemeral
from scheduler.plugins.volume_binding.decisions import (
    REASON_NO_STORAGE,
    REASON_NO_VOLUME,
    REASON_NODE_CONFLICT,
    REASON_VOLUME_GONE,
)
from scheduler.plugins.volume_binding.delayed import SELECTED_NODE
from scheduler.plugins.volume_binding.plugin import NAME
from scheduler.testing import node, pod

ZONE = "topology.kubernetes.io/zone"
EPHEMERAL = {"volumeClaimTemplate": {"spec": {}}}


def using(*claims):
    made = pod("p")
    for name in claims:
        made = made.claim(name)
    return made


def in_zones(*zones):
    """Return one node a zone, named after it; "-" stands for no zone."""
    return [node(f"n-{z}") if z == "-" else node(f"n-{z}").label(ZONE, z) for z in zones]


def reasons(bench, waiting):
    """Return node name -> reasons, () where the pod fits."""
    verdicts = bench.verdicts(bench.make(NAME), waiting.obj())
    assert all(s is None or s.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for s in verdicts.values())
    return {name.removeprefix("n-"): () if status is None else status.reasons for name, status in verdicts.items()}


# --- PreFilter -------------------------------------------------------------------------------------------------------


def test_pods_without_claims_cost_nothing(bench):
    """No claim, no work."""
    bench.cluster([node("n")])
    plugin = bench.make(NAME)
    assert bench.verdicts(plugin, pod("p").obj()) == "Skip"
    assert bench.verdicts(plugin, pod("p").volume("v", emptyDir={}).obj()) == "Skip"


@pytest.mark.parametrize(
    ("make", "waiting", "reason"),
    [
        pytest.param(lambda s: [], using("c"), claim_not_found("c"), id="missing claim"),
        pytest.param(
            lambda s: [],
            pod("p").volume("v", ephemeral=EPHEMERAL),
            waiting_for_ephemeral("p-v"),
            id="ephemeral claim not made yet",
        ),
        pytest.param(
            lambda s: [s.claim("c", volume="pv-1", phase="Lost")],
            using("c"),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv-1"',
            id="lost claim",
        ),
        pytest.param(
            lambda s: [s.claim("c", deleting=True)],
            using("c"),
            'persistentvolumeclaim "c" is being deleted',
            id="claim being deleted",
        ),
        pytest.param(
            lambda s: [s.claim("c", cls="now"), s.storage_class("now", mode="Immediate")],
            using("c"),
            REASON_UNBOUND_IMMEDIATE,
            id="should have been bound",
        ),
        pytest.param(lambda s: [s.claim("c", cls=None)], using("c"), REASON_UNBOUND_IMMEDIATE, id="no class"),
        pytest.param(lambda s: [s.claim("c", cls="x")], using("c"), REASON_UNBOUND_IMMEDIATE, id="class is gone"),
        pytest.param(
            lambda s: [s.claim("c", volume="pv", annotations={}), s.storage_class()],
            using("c"),
            REASON_UNBOUND_IMMEDIATE,
            id="set aside by hand, not bound yet",
        ),
    ],
)
def test_pods_that_fit_nowhere(bench, storage, make, waiting, reason):
    """The reason names the claim."""
    bench.handle.put(*make(storage))
    bench.cluster([node("n")])
    _, status = bench.pre_filter(bench.make(NAME), waiting.obj())
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_claim_of_another_pod(bench, storage):
    """A claim with the right name that was made for somebody else is not used."""
    waiting, claim = pod("p").volume("v", ephemeral=EPHEMERAL).obj(), storage.claim("p-v", owner="other")
    bench.handle.put(claim)
    bench.cluster([node("n")])
    _, status = bench.pre_filter(bench.make(NAME), waiting)
    assert status.reasons == (not_made_for(waiting, claim),)


def test_class_without_a_mode_is_an_error(bench, storage):
    """It cannot be said when such a claim is bound."""
    bench.handle.put(storage.claim("c"), storage.storage_class(mode=None))
    bench.cluster([node("n")])
    _, status = bench.pre_filter(bench.make(NAME), using("c").obj())
    assert (status.code, status.reasons) == (Code.ERROR, ('VolumeBindingMode not set for StorageClass "wait"',))


def test_filter_without_pre_filter_is_an_error(bench):
    """A profile that turns PreFilter off gets told."""
    bench.cluster([node("n")])
    status = bench.verdict(bench.make(NAME), pod("p").obj(), pre_filter=False)
    assert status.code is Code.ERROR


# --- bound claims ----------------------------------------------------------------------------------------------------


def test_bound_volume_within_reach(bench, storage):
    """Nodes must satisfy the volume's node affinity."""
    bench.handle.put(storage.claim("c", volume="pv"), storage.volume("pv", zones=["a", "b"]))
    bench.cluster(in_zones("a", "b", "c", "-"))
    conflict = (REASON_NODE_CONFLICT,)
    assert reasons(bench, using("c")) == {"a": (), "b": (), "c": conflict, "-": conflict}


def test_bound_volume_anywhere(bench, storage):
    """Without an affinity all nodes do."""
    bench.handle.put(storage.claim("c", volume="pv"), storage.volume("pv"))
    bench.cluster(in_zones("a", "-"))
    assert reasons(bench, using("c")) == {"a": (), "-": ()}


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param(
            ["gone", "in-a"], {"a": REASON_VOLUME_GONE, "b": REASON_VOLUME_GONE}, id="the first claim decides"
        ),
        pytest.param(["in-a", "gone"], {"a": REASON_VOLUME_GONE, "b": REASON_NODE_CONFLICT}, id="node by node"),
    ],
)
def test_bound_volume_gone(bench, storage, claims, expected):
    """A bound claim whose volume does not exist rules a node out, unless another one did before."""
    bench.handle.put(
        storage.claim("gone", volume="pv-x"), storage.claim("in-a", volume="pv"), storage.volume("pv", zones=["a"])
    )
    bench.cluster(in_zones("a", "b"))
    assert reasons(bench, using(*claims)) == {name: (reason,) for name, reason in expected.items()}


def test_migrated_volume(bench, storage):
    """A node that has moved to the CSI driver reaches an in-tree volume by the driver's topology label."""
    ebs = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    bench.handle.put(
        storage.claim("c", volume="pv"),
        storage.volume("pv", zones=["a"], **ebs),
        storage.csi_node("moved", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"),
        storage.csi_node("elsewhere", "kubernetes.io/aws-ebs"),
        storage.csi_node("old", "kubernetes.io/gce-pd"),
        storage.csi_node("not-here", "kubernetes.io/aws-ebs"),
    )
    key = "topology.ebs.csi.aws.com/zone"
    bench.cluster([node("moved").label(key, "a"), node("elsewhere").label(ZONE, "a"), node("old").label(ZONE, "a")])
    assert reasons(bench, using("c")) == {"moved": (), "elsewhere": (REASON_NODE_CONFLICT,), "old": ()}


def test_migrated_volume_that_cannot_be_translated(bench, storage):
    """That is an error on nodes that have moved; others are judged."""
    disk = {"gcePersistentDisk": {"pdName": "d"}}
    volume = storage.volume("pv", labels={ZONE: "a__b"}, **disk)
    bench.handle.put(storage.claim("c", volume="pv"), volume, storage.csi_node("moved", "kubernetes.io/gce-pd"))
    snapshot = bench.cluster([node("moved"), node("old")])
    plugin, state, waiting = bench.make(NAME), CycleState(), using("c").obj()
    verdicts = bench.verdicts(plugin, waiting)
    assert verdicts["old"] is None
    assert verdicts["moved"].code is Code.ERROR
    assert verdicts["moved"].message.startswith("could not translate pv: failed to get region from zones: ")
    plugin.pre_filter(state, waiting, snapshot)
    failed = plugin.filter_all(state, waiting, snapshot).errors
    assert [snapshot.names[row] for row in np.flatnonzero(failed)] == ["moved"]


# --- static matching -------------------------------------------------------------------------------------------------


def matched(bench, waiting, node_name="n"):
    """Return claim name -> volume name that the pod would take on the node; None if it does not fit."""
    plugin, state, snapshot = bench.make(NAME), CycleState(), bench.handle.snapshot
    plugin.pre_filter(state, waiting.obj(), snapshot)
    if not plugin.filter_all(state, waiting.obj(), snapshot).ok[snapshot.row(node_name)]:
        return None
    assert plugin.reserve(state, waiting.obj(), node_name) is None
    volumes = plugin._caches.volumes
    return {
        v.spec.claim_ref.name: v.name
        for v in volumes.list()
        if v.spec.claim_ref is not None and v.spec.claim_ref.uid and v.metadata.annotations
    }


@pytest.mark.parametrize(
    ("make", "taken"),
    [
        pytest.param(
            lambda s: [s.volume("big", "9Gi"), s.volume("fit", "2Gi")], "fit", id="the smallest that is enough"
        ),
        pytest.param(lambda s: [s.volume("a"), s.volume("b")], "a", id="the first of equals"),
        pytest.param(lambda s: [s.volume("a", "1023Mi")], None, id="too small"),
        pytest.param(lambda s: [s.volume("a", cls="other")], None, id="another class"),
        pytest.param(lambda s: [s.volume("a", phase="Released")], None, id="not available"),
        pytest.param(lambda s: [s.volume("a", phase="Pending")], None, id="not available yet"),
        pytest.param(lambda s: [s.volume("a", volumeMode="Block")], None, id="another mode"),
        pytest.param(lambda s: [s.volume("a", volumeMode="Filesystem")], "a", id="the default mode"),
        pytest.param(lambda s: [s.volume("a", deleting=True)], None, id="being deleted"),
        pytest.param(lambda s: [s.volume("a", volumeAttributesClassName="fast")], None, id="other attributes"),
        pytest.param(lambda s: [s.volume("a", modes=["ReadWriteMany"])], None, id="access modes"),
        pytest.param(lambda s: [s.volume("a", zones=["elsewhere"])], None, id="out of reach"),
        pytest.param(lambda s: [s.volume("a", claim=s.claim("other"))], None, id="another claim's"),
        pytest.param(
            lambda s: [
                s.volume("a"),
                s.volume("mine", "5Gi", phase="Bound", claim=s.claim("c"), annotations={"x": "y"}),
            ],
            "mine",
            id="set aside for the claim",
        ),
        pytest.param(
            lambda s: [s.volume("a"), s.volume("mine", claim=s.claim("c"), zones=["elsewhere"])],
            None,
            id="set aside for the claim, but out of reach",
        ),
    ],
)
def test_static_match(bench, storage, make, taken):
    """A claim takes the smallest volume that fits, or the one that is set aside for it."""
    bench.handle.put(storage.claim("c"), storage.storage_class(provisioner="kubernetes.io/no-provisioner"))
    bench.handle.put(*make(storage))
    bench.cluster([node("n").label(ZONE, "a")])
    assert matched(bench, using("c")) == (None if taken is None else {"c": taken})
    if taken is None:
        assert reasons(bench, using("c"))["n"] == (REASON_NO_VOLUME,)


def test_small_claims_go_first(bench, storage):
    """So a small claim does not take the only volume that is large enough for another."""
    bench.handle.put(
        storage.storage_class(provisioner="kubernetes.io/no-provisioner"),
        storage.claim("large", "5Gi"),
        storage.claim("small", "1Gi"),
        storage.volume("v5", "5Gi"),
        storage.volume("v4", "4Gi"),
    )
    bench.cluster([node("n")])
    assert matched(bench, using("large", "small")) == {"small": "v4", "large": "v5"}


def test_selector_of_the_claim(bench, storage):
    """Only volumes with the labels are taken."""
    bench.handle.put(
        storage.storage_class(provisioner="kubernetes.io/no-provisioner"),
        storage.claim("c", selector={"matchLabels": {"kind": "fast"}}),
        storage.volume("slow", labels={"kind": "slow"}),
        storage.volume("fast", "3Gi", labels={"kind": "fast"}),
    )
    bench.cluster([node("n")])
    assert matched(bench, using("c")) == {"c": "fast"}


def test_bad_selector_is_an_error(bench, storage):
    """It cannot be said which volumes the claim takes."""
    bad = {"matchExpressions": [{"key": "k", "operator": "Near", "values": ["x"]}]}
    bench.handle.put(storage.storage_class(), storage.claim("c", selector=bad))
    bench.cluster([node("n")])
    status = bench.verdict(bench.make(NAME), using("c").obj())
    assert status.code is Code.ERROR
    assert status.message.startswith("error creating internal label selector for claim: default/c: ")


def test_local_volumes_are_found_by_their_node(bench, storage):
    """Each node takes its own volume."""
    nodes = [node(f"n{i}").label("kubernetes.io/hostname", f"n{i}") for i in range(5)]
    for i in (1, 3):
        affinity = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{i}"]}]}
        bench.handle.put(storage.volume(f"pv-{i}", nodeAffinity={"required": {"nodeSelectorTerms": [affinity]}}))
    bench.handle.put(storage.storage_class(provisioner="kubernetes.io/no-provisioner"), storage.claim("c"))
    bench.cluster(nodes)
    found = reasons(bench, using("c"))
    assert [name for name, why in sorted(found.items()) if not why] == ["n1", "n3"]
    assert matched(bench, using("c"), "n3") == {"c": "pv-3"}


# --- provisioning ----------------------------------------------------------------------------------------------------


def test_provisioning_within_allowed_topologies(bench, storage):
    """A volume is made where the class allows it."""
    bench.handle.put(storage.storage_class(zones=["a", "b"]), storage.claim("c"))
    bench.cluster(in_zones("a", "b", "c", "-"))
    none = (REASON_NO_VOLUME,)
    assert reasons(bench, using("c")) == {"a": (), "b": (), "c": none, "-": none}


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_classes_without_a_provisioner(bench, storage, provisioner):
    """Only existing volumes will do."""
    bench.handle.put(storage.storage_class(provisioner=provisioner), storage.claim("c"))
    bench.cluster(in_zones("a"))
    assert reasons(bench, using("c")) == {"a": (REASON_NO_VOLUME,)}


@pytest.mark.parametrize(
    ("make", "fits"),
    [
        pytest.param(lambda s: [s.driver()], "", id="nothing published"),
        pytest.param(lambda s: [s.driver(publishes=False)], "ab", id="a driver that does not publish"),
        pytest.param(lambda s: [], "ab", id="no such driver"),
        pytest.param(lambda s: [s.driver(), s.capacity("1", "1Gi", zone="a")], "a", id="just enough"),
        pytest.param(lambda s: [s.driver(), s.capacity("1", "1023Mi", zone="a")], "", id="not enough"),
        pytest.param(lambda s: [s.driver(), s.capacity("1", "9Gi")], "", id="reachable from nowhere"),
        pytest.param(lambda s: [s.driver(), s.capacity("1", "9Gi", zone="a", cls="x")], "", id="another class"),
        pytest.param(
            lambda s: [s.driver(), s.capacity("1", "9Gi", zone="a", largest="1Mi")], "", id="too large for one"
        ),
        pytest.param(
            lambda s: [s.driver(), s.capacity("1", None, zone="b", largest="1Gi")], "b", id="largest size only"
        ),
        pytest.param(lambda s: [s.driver(), s.capacity("1", None, zone="b")], "", id="no numbers"),
        pytest.param(
            lambda s: [s.driver(), s.capacity("1", "1Mi", zone="a"), s.capacity("2", "2Gi", zone="a")],
            "a",
            id="any of two",
        ),
    ],
)
def test_storage_capacity(bench, storage, make, fits):
    """A driver that publishes capacities must have room where the node can reach it."""
    bench.handle.put(storage.storage_class(), storage.claim("c"), *make(storage))
    bench.cluster(in_zones("a", "b"))
    assert reasons(bench, using("c")) == {z: () if z in fits else (REASON_NO_STORAGE,) for z in "ab"}


def test_claim_without_a_size_needs_no_room(bench, storage):
    """There is nothing to compare."""
    bench.handle.put(storage.storage_class(), storage.claim("c", None), storage.driver())
    bench.cluster(in_zones("a"))
    assert reasons(bench, using("c")) == {"a": ()}


def test_selected_node(bench, storage):
    """A claim that is being provisioned keeps its pod on that node; no volume is matched any more."""
    bench.handle.put(
        storage.storage_class(), storage.claim("c", annotations={SELECTED_NODE: "n-b"}), storage.volume("pv")
    )
    bench.cluster(in_zones("a", "b"))
    assert reasons(bench, using("c")) == {"a": (REASON_NO_VOLUME,), "b": ()}
    assert matched(bench, using("c"), "n-b") == {}


def test_several_reasons_in_order(bench, storage):
    """Bound and delayed claims are judged on their own, and both reasons are told."""
    bench.handle.put(
        storage.claim("bound", volume="pv"),
        storage.volume("pv", zones=["z"]),
        storage.claim("new"),
        storage.storage_class(zones=["b"]),
        storage.driver(),
        storage.capacity("1", "1Mi", zone="b"),
    )
    bench.cluster(in_zones("a", "b"))
    assert reasons(bench, using("new", "bound")) == {
        "a": (REASON_NODE_CONFLICT, REASON_NO_VOLUME),
        "b": (REASON_NODE_CONFLICT, REASON_NO_STORAGE),
    }


def test_ephemeral_claim_is_provisioned(bench, storage):
    """Its claim is delayed like any other."""
    waiting = pod("p").volume("v", ephemeral=EPHEMERAL)
    bench.handle.put(storage.claim("p-v", owner=waiting.obj().uid), storage.storage_class(zones=["a"]))
    bench.cluster(in_zones("a", "b"))
    assert reasons(bench, waiting) == {"a": (), "b": (REASON_NO_VOLUME,)}


def test_class_by_annotation(bench, storage):
    """The old annotation goes before the field."""
    by_annotation = {"volume.beta.kubernetes.io/storage-class": "wait"}
    bench.handle.put(storage.claim("c", cls="gone", annotations=by_annotation), storage.storage_class(zones=["a"]))
    bench.cluster(in_zones("a", "b"))
    assert reasons(bench, using("c")) == {"a": (), "b": (REASON_NO_VOLUME,)}
