"""NodeVolumeLimits: what may make room."""

import pytest

from scheduler.api import ActionType, QueueingHint
from scheduler.plugins.node_volume_limits.plugin import NAME
from scheduler.testing import obj, pod

EBS = "ebs.csi.aws.com"
ON_NODE = pod("q").on("n")
EPHEMERAL = {"volumeClaimTemplate": {"spec": {}}}


def csi_node(*drivers):
    made = [{"name": name, **({} if count is None else {"allocatable": {"count": count}})} for name, count in drivers]
    return obj("CSINode", {"metadata": {"name": "n"}, "spec": {"drivers": made}})


def claim(name, namespace="default"):
    return obj("PersistentVolumeClaim", {"metadata": {"name": name, "namespace": namespace}})


def attachment(attacher):
    return obj("VolumeAttachment", {"metadata": {"name": "a"}, "spec": {"attacher": attacher, "nodeName": "n"}})


def ebs(volume_id="vol-1"):
    return pod("p").volume("v", awsElasticBlockStore={"volumeID": volume_id})


def hint(bench, resource, action, waiting, old, new):
    found = [r for r in bench.make(NAME).events() if r.event.resource.value == resource and r.event.action == action]
    assert len(found) == 1
    return found[0].hint(waiting.obj(), old, new)


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        pytest.param(csi_node(("d", 1)), csi_node(("d", 2)), "Queue", id="rose"),
        pytest.param(csi_node(("d", 2)), csi_node(("d", 1)), "QueueSkip", id="fell"),
        pytest.param(csi_node(), csi_node(("d", 1)), "Queue", id="driver came"),
        pytest.param(csi_node(("d", 1)), csi_node(("d", None)), "QueueSkip", id="limit taken away"),
        pytest.param(csi_node(("d", 1), ("e", 1)), csi_node(("d", 0), ("e", 2)), "Queue", id="one of two rose"),
        pytest.param("nonsense", csi_node(), "Queue", id="no CSINode"),
    ],
)
def test_csi_node_changed(bench, old, new, answer):
    """Only a higher limit helps."""
    said = hint(bench, "storage.k8s.io/CSINode", ActionType.UPDATE, pod("p").claim("c"), old, new)
    assert said is QueueingHint(answer)


@pytest.mark.parametrize(
    ("left", "answer"),
    [
        pytest.param(ON_NODE, "QueueSkip", id="had no volumes"),
        pytest.param(ON_NODE.claim("c"), "Queue", id="had a claim"),
        pytest.param(ON_NODE.volume("v", ephemeral=EPHEMERAL), "Queue", id="had an ephemeral volume"),
        pytest.param(ON_NODE.volume("v", awsElasticBlockStore={"volumeID": "x"}), "Queue", id="had an in-tree disk"),
        pytest.param(ON_NODE.volume("v", emptyDir={}), "QueueSkip", id="had a volume of no interest"),
        pytest.param(pod("q").claim("c"), "QueueSkip", id="was on no node"),
        pytest.param(pod("q").claim("c").nominated("n"), "Queue", id="was nominated"),
    ],
)
def test_pod_left(bench, left, answer):
    """A pod that had a place and a volume has made room."""
    said = hint(bench, "Pod", ActionType.DELETE, pod("p").claim("c"), left.obj(), None)
    assert said is QueueingHint(answer)


@pytest.mark.parametrize(
    ("waiting", "added", "answer"),
    [
        pytest.param(pod("p").claim("c"), claim("c"), "Queue", id="own claim"),
        pytest.param(pod("p").claim("c"), claim("d"), "QueueSkip", id="another claim"),
        pytest.param(pod("p").claim("c"), claim("c", "other"), "QueueSkip", id="another namespace"),
        pytest.param(pod("p").volume("v", ephemeral=EPHEMERAL), claim("p-v"), "Queue", id="ephemeral"),
        pytest.param(pod("p").volume("v", emptyDir={}), claim("p-v"), "QueueSkip", id="no claim at all"),
    ],
)
def test_claim_added(bench, waiting, added, answer):
    """The pod's own claims help."""
    said = hint(bench, "PersistentVolumeClaim", ActionType.ADD, waiting, None, added)
    assert said is QueueingHint(answer)


@pytest.mark.parametrize(
    ("waiting", "gone", "answer"),
    [
        pytest.param(pod("p").claim("c"), attachment("d"), "Queue", id="any claim"),
        pytest.param(ebs(), attachment(EBS), "Queue", id="inline disk of the driver"),
        pytest.param(ebs(), attachment("d"), "QueueSkip", id="inline disk of another driver"),
        pytest.param(ebs("aws://z/bad"), attachment("d"), "Queue", id="inline disk that cannot be read"),
        pytest.param(
            pod("p").volume("v", vsphereVolume={"volumePath": "x"}),
            attachment("csi.vsphere.vmware.com"),
            "Queue",
            id="a disk that is not counted, of the driver",
        ),
        pytest.param(pod("p").volume("v", emptyDir={}), attachment("d"), "QueueSkip", id="nothing attachable"),
    ],
)
def test_attachment_gone(bench, waiting, gone, answer):
    """A detached volume makes room for volumes of its driver."""
    said = hint(bench, "storage.k8s.io/VolumeAttachment", ActionType.DELETE, waiting, gone, None)
    assert said is QueueingHint(answer)


def test_new_csi_node_always_helps(bench):
    """Without a hint."""
    added = [r for r in bench.make(NAME).events() if r.event.action == ActionType.ADD and r.hint is None]
    assert [r.event.resource.value for r in added] == ["storage.k8s.io/CSINode"]
