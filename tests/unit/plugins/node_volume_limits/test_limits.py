"""NodeVolumeLimits: facts of upstream's csi_test.go."""

import pytest

from scheduler.api import Code, CycleState
from scheduler.plugins.node_volume_limits.attachable import CLAIM_UNNAMED, random_prefix
from scheduler.plugins.node_volume_limits.plugin import NAME, REASON_TOO_MANY
from scheduler.plugins.shared.storage import claim_not_found, not_made_for
from scheduler.testing import node, obj, pod

EBS = "ebs.csi.aws.com"


def csi_node(name="n", **counts):
    drivers = [
        {"name": driver.replace("_", "."), **({} if count is None else {"allocatable": {"count": count}})}
        for driver, count in counts.items()
    ]
    return obj("CSINode", {"metadata": {"name": name}, "spec": {"drivers": drivers}})


def volume(name, **source):
    spec = source or {"csi": {"driver": "d", "volumeHandle": f"handle-{name}"}}
    return obj("PersistentVolume", {"metadata": {"name": name}, "spec": spec})


def claim(name, *, volume_name="", storage_class=None, owner=None):
    meta = {"name": name, "namespace": "default"}
    if owner is not None:
        made_by = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
        meta["ownerReferences"] = [made_by]
    spec = {"volumeName": volume_name, "storageClassName": storage_class}
    return obj("PersistentVolumeClaim", {"metadata": meta, "spec": spec})


def storage_class(name, provisioner):
    return obj("StorageClass", {"metadata": {"name": name}, "provisioner": provisioner})


def attachment(name, volume_name, *, node_name="n", attacher="d"):
    spec = {"attacher": attacher, "nodeName": node_name, "source": {"persistentVolumeName": volume_name}}
    return obj("VolumeAttachment", {"metadata": {"name": name}, "spec": spec})


def bound(*names):
    """Return claims with volumes of driver d: claim x has the volume pv-x."""
    return [o for name in names for o in (claim(name, volume_name=f"pv-{name}"), volume(f"pv-{name}"))]


def using(*claims, name="p"):
    made = pod(name)
    for each in claims:
        made = made.claim(each)
    return made


@pytest.mark.parametrize(
    ("limit", "running", "wanted", "fits"),
    [
        pytest.param(2, [], ["a", "b"], True, id="just as many as allowed"),
        pytest.param(1, [], ["a", "b"], False, id="more than allowed"),
        pytest.param(2, ["a"], ["b"], True, id="one more"),
        pytest.param(1, ["a"], ["b"], False, id="full"),
        pytest.param(1, ["a"], ["a"], True, id="the volume is there already"),
        pytest.param(2, ["a", "b"], ["a", "c"], False, id="one of two is there"),
        pytest.param(0, [], ["a"], False, id="no volume at all"),
        pytest.param(None, ["a"], ["b", "c"], True, id="a driver without a limit"),
        pytest.param(2, [], ["a", "a", "a"], True, id="a volume counts once"),
    ],
)
def test_claims(bench, limit, running, wanted, fits):
    """Distinct volumes count; evicting helps."""
    bench.handle.put(*bound("a", "b", "c"), csi_node(d=limit))
    bench.cluster([node("n")], [using(name, name=f"r-{name}").on("n") for name in running])
    status = bench.verdict(bench.make(NAME), using(*wanted).obj())
    if fits:
        assert status is None
    else:
        assert status.code is Code.UNSCHEDULABLE
        assert status.reasons == (REASON_TOO_MANY,)


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        pytest.param([], True, id="no CSINode"),
        pytest.param([csi_node()], True, id="no driver on the node"),
        pytest.param([csi_node(other=0)], True, id="a limit of another driver"),
        pytest.param([csi_node(d=1), attachment("x", "pv-b")], False, id="a volume is attached without a pod"),
        pytest.param([csi_node(d=1), attachment("x", "pv-b", node_name="m")], True, id="attached to another node"),
        pytest.param([csi_node(d=1), attachment("x", "gone")], True, id="attached volume is unknown"),
        pytest.param([csi_node(d=1), attachment("x", "pv-b", attacher="")], True, id="attachment without a driver"),
        pytest.param([csi_node(d=1), attachment("x", "pv-a")], False, id="own volume attached, but by no pod here"),
        pytest.param([csi_node(d=2), attachment("x", "pv-b"), attachment("y", "pv-b")], True, id="attached twice"),
    ],
)
def test_nodes(bench, objects, fits):
    """Limits are the node's own; attachments fill them up, too."""
    bench.handle.put(*bound("a", "b"), *objects)
    bench.cluster([node("n")])
    assert (bench.verdict(bench.make(NAME), using("a").obj()) is None) is fits


def test_attached_volume_of_a_pod_counts_once(bench):
    """A volume that a pod on the node uses is not counted again for its attachment."""
    bench.handle.put(*bound("a", "b"), csi_node(d=2), attachment("x", "pv-b"))
    bench.cluster([node("n")], [using("b", name="q").on("n")])
    assert bench.verdict(bench.make(NAME), using("a").obj()) is None


@pytest.mark.parametrize(
    ("objects", "limit", "fits"),
    [
        pytest.param([claim("u", storage_class="k"), storage_class("k", "d")], 1, False, id="volume yet to be made"),
        pytest.param([claim("u", storage_class="k"), storage_class("k", "d")], 2, True, id="room for it"),
        pytest.param([claim("u", volume_name="gone", storage_class="k"), storage_class("k", "d")], 1, False, id="lost"),
        pytest.param([claim("u")], 1, True, id="no class"),
        pytest.param([claim("u", storage_class="gone")], 1, True, id="class is gone"),
        pytest.param([claim("u", volume_name="pv-nfs"), volume("pv-nfs", nfs={"path": "/"})], 1, True, id="no driver"),
    ],
)
def test_unbound_claims(bench, objects, limit, fits):
    """A claim counts for the driver that will make its volume; each pending claim has a volume of its own."""
    bench.handle.put(*bound("a"), *objects, csi_node(d=limit))
    bench.cluster([node("n")], [using("a", name="q").on("n")])
    assert (bench.verdict(bench.make(NAME), using("u").obj()) is None) is fits


@pytest.mark.parametrize(
    ("waiting", "objects", "has_csi_node", "fits"),
    [
        pytest.param(
            pod("p").volume("v", awsElasticBlockStore={"volumeID": "vol-1"}), [], True, False, id="inline disk"
        ),
        pytest.param(
            pod("p").volume("v", awsElasticBlockStore={"volumeID": "vol-1"}), [], False, True, id="not migrated here"
        ),
        pytest.param(
            using("c"),
            [claim("c", volume_name="pv"), volume("pv", awsElasticBlockStore={"volumeID": "vol-1"})],
            True,
            False,
            id="claim with an in-tree volume",
        ),
        pytest.param(
            using("c"),
            [claim("c", volume_name="pv"), volume("pv", awsElasticBlockStore={"volumeID": "aws://z/bad"})],
            True,
            True,
            id="in-tree volume that cannot be translated",
        ),
        pytest.param(
            using("c"),
            [claim("c", storage_class="k"), storage_class("k", "kubernetes.io/aws-ebs")],
            True,
            False,
            id="in-tree provisioner",
        ),
        pytest.param(
            using("c"),
            [claim("c", storage_class="k"), storage_class("k", "kubernetes.io/vsphere-volume")],
            True,
            True,
            id="a plugin that is not counted",
        ),
    ],
)
def test_migrated_volumes(bench, waiting, objects, has_csi_node, fits):
    """In-tree volumes count for the driver that replaced their plugin, where there is a CSINode."""
    limits = obj(
        "CSINode", {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": EBS, "allocatable": {"count": 0}}]}}
    )
    bench.handle.put(*objects, *([limits] if has_csi_node else []))
    bench.cluster([node("n")])
    assert (bench.verdict(bench.make(NAME), waiting.obj()) is None) is fits


def ephemeral(name="p"):
    return pod(name).volume("v", ephemeral={"volumeClaimTemplate": {"spec": {}}})


def test_ephemeral_volumes(bench):
    """The claim of a generic ephemeral volume counts like any other."""
    waiting = ephemeral().obj()
    bench.handle.put(claim("p-v", volume_name="pv", owner=waiting.uid), volume("pv"), csi_node(d=0))
    bench.cluster([node("n")])
    assert bench.verdict(bench.make(NAME), waiting).reasons == (REASON_TOO_MANY,)


def test_a_claim_of_somebody_else(bench):
    """A claim that only happens to have the name is an error, on every node."""
    waiting, made = ephemeral().obj(), claim("p-v", volume_name="pv", owner="other")
    bench.handle.put(made, volume("pv"))
    bench.cluster([node("n"), node("m")])
    verdicts = bench.verdicts(bench.make(NAME), waiting)
    assert {(status.code, status.reasons) for status in verdicts.values()} == {
        (Code.ERROR, (not_made_for(waiting, made),))
    }


def test_missing_claim(bench):
    """A pending pod needs its claims; running pods may have lost theirs."""
    bench.handle.put(*bound("a"), csi_node(d=1))
    bench.cluster([node("n")], [using("gone", name="q").on("n")])
    plugin = bench.make(NAME)
    status = bench.verdict(plugin, using("gone").obj())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (f"looking up PVC default/gone: {claim_not_found('gone')}",)
    assert bench.verdict(plugin, using("a").obj()) is None


def test_claim_without_a_name(bench):
    """That is an error, not a rejection."""
    bench.cluster([node("n")])
    status = bench.verdict(bench.make(NAME), using("").obj())
    assert (status.code, status.reasons) == (Code.ERROR, (CLAIM_UNNAMED,))


def test_unreadable_volume_of_a_running_pod(bench):
    """Where the count is not known, the attempt fails, as upstream's does; other nodes can still be judged."""
    bad = pod("q").volume("x", azureDisk={"diskName": "d", "diskURI": "u", "kind": "Dedicated"})
    bench.handle.put(*bound("a"), csi_node("n", d=1), csi_node("m", d=1))
    snapshot = bench.cluster([node("n"), node("m")], [bad.on("n")])
    plugin, state, waiting = bench.make(NAME), CycleState(), using("a").obj()
    verdicts = bench.verdicts(plugin, waiting)
    assert verdicts["m"] is None
    assert verdicts["n"].code is Code.ERROR
    text = "converting volume(x) from inline to csi: kind(Dedicated) is not supported in csi migration"
    assert verdicts["n"].reasons == (text,)
    plugin.pre_filter(state, waiting, snapshot)
    errors = plugin.filter_all(state, waiting, snapshot).errors
    assert errors.tolist() == [name == "n" for name in snapshot.names]


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(pod("p"), id="no volumes"),
        pytest.param(pod("p").volume("v", emptyDir={}), id="a volume of no interest"),
        pytest.param(pod("p").volume("v", csi={"driver": "d"}), id="an inline CSI volume is not attached"),
    ],
)
def test_pods_of_no_concern(bench, waiting):
    """Pods without attachable volumes cost nothing."""
    bench.handle.put(csi_node(d=0))
    bench.cluster([node("n")])
    assert bench.verdicts(bench.make(NAME), waiting.obj()) == "Skip"


def test_random_prefix(bench):
    """Made-up handles cannot be guessed or equal a driver's."""
    prefixes = {random_prefix(bench.handle.random) for _ in range(8)}
    assert {len(prefix) for prefix in prefixes} == {32}
    assert len(prefixes) == 8
