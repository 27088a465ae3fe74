"""VolumeRestrictions: facts of upstream's volume_restrictions_test.go."""

import pytest

from scheduler.api import Code, CycleState, QueueingHint
from scheduler.plugins.shared.storage import claim_not_found
from scheduler.plugins.volume_restrictions import NAME, REASON_CLAIM_IN_USE, REASON_DISK_CONFLICT
from scheduler.state.changes import ASSIGNED_POD_DELETE, NODE_ADD
from scheduler.testing import node, obj, pod

READ_ONLY = {"readOnly": True}


def gce(name, **more):
    return pod("p").volume("v", gcePersistentDisk={"pdName": name, **more})


def ebs(name):
    return pod("p").volume("v", awsElasticBlockStore={"volumeID": name})


def iscsi(iqn, **more):
    return pod("p").volume("v", iscsi={"iqn": iqn, "targetPortal": "127.0.0.1:3260", "lun": 0, **more})


def rbd(image, *monitors, pool="rbd", **more):
    return pod("p").volume("v", rbd={"monitors": list(monitors), "pool": pool, "image": image, **more})


def claim(name, *modes, namespace="default"):
    spec = {"accessModes": list(modes)}
    return obj("PersistentVolumeClaim", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


@pytest.mark.parametrize(
    ("wanted", "present", "fits"),
    [
        pytest.param(gce("a"), gce("a"), False, id="gce"),
        pytest.param(gce("a"), gce("b"), True, id="another gce disk"),
        pytest.param(gce("a", **READ_ONLY), gce("a"), False, id="gce, one reads"),
        pytest.param(gce("a", **READ_ONLY), gce("a", **READ_ONLY), True, id="gce, both read"),
        pytest.param(ebs("a"), ebs("a"), False, id="ebs"),
        pytest.param(ebs("a"), ebs("b"), True, id="another ebs volume"),
        pytest.param(iscsi("a"), iscsi("a"), False, id="iscsi"),
        pytest.param(iscsi("a"), iscsi("b"), True, id="another iscsi target"),
        pytest.param(iscsi("a", **READ_ONLY), iscsi("a", **READ_ONLY), True, id="iscsi, both read"),
        pytest.param(rbd("i", "a", "b"), rbd("i", "b", "c"), False, id="rbd, a monitor in common"),
        pytest.param(rbd("i", "a"), rbd("i", "c"), True, id="rbd, no monitor in common"),
        pytest.param(rbd("i", "a"), rbd("j", "a"), True, id="another rbd image"),
        pytest.param(rbd("i", "a"), rbd("i", "a", pool="q"), True, id="another rbd pool"),
        pytest.param(rbd("i", "a", **READ_ONLY), rbd("i", "a", **READ_ONLY), True, id="rbd, both read"),
        pytest.param(rbd("a", "a"), gce("a"), True, id="disks of different kinds"),
    ],
)
def test_disks(bench, wanted, present, fits):
    """A disk is for one pod of a node, or for readers; evicting helps."""
    bench.cluster([node("free"), node("taken")], [present.on("taken")])
    verdicts = bench.verdicts(bench.make(NAME), wanted.obj())
    assert verdicts["free"] is None
    if fits:
        assert verdicts["taken"] is None
    else:
        assert verdicts["taken"].code is Code.UNSCHEDULABLE
        assert verdicts["taken"].reasons == (REASON_DISK_CONFLICT,)


def test_a_claim_for_one_pod(bench):
    """A claim that some pod uses keeps other pods off all nodes."""
    bench.handle.put(claim("one", "ReadWriteOncePod"), claim("many", "ReadWriteMany"))
    bench.cluster([node("a"), node("b")], [pod("q").claim("one").on("a")])
    plugin = bench.make(NAME)
    verdicts = bench.verdicts(plugin, pod("p").claim("one").obj())
    assert {status.reasons for status in verdicts.values()} == {(REASON_CLAIM_IN_USE,)}
    assert {status.code for status in verdicts.values()} == {Code.UNSCHEDULABLE}
    assert bench.verdicts(plugin, pod("p").claim("many").obj()) == "Skip"


def test_disk_conflict_goes_before_the_claim(bench):
    """Where both rules reject, the disk is the reason."""
    bench.handle.put(claim("one", "ReadWriteOncePod"))
    bench.cluster([node("a"), node("b")], [pod("q").claim("one").on("a"), ebs("d").on("b")])
    verdicts = bench.verdicts(bench.make(NAME), ebs("d").claim("one").obj())
    assert verdicts["a"].reasons == (REASON_CLAIM_IN_USE,)
    assert verdicts["b"].reasons == (REASON_DISK_CONFLICT,)


def test_missing_claim(bench):
    """No node can help a pod whose claim does not exist."""
    bench.cluster([node("n")])
    names, status = bench.pre_filter(bench.make(NAME), pod("p").claim("gone").obj())
    assert names is None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (claim_not_found("gone"),)


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(pod("p"), id="no volumes"),
        pytest.param(pod("p").volume("v", emptyDir={}), id="a volume of no interest"),
        pytest.param(pod("p").claim("one"), id="a claim that nobody uses"),
    ],
)
def test_pods_of_no_concern(bench, waiting):
    """Pods without disks and without a used claim cost nothing."""
    bench.handle.put(claim("one", "ReadWriteOncePod"))
    bench.cluster([node("n")])
    assert bench.verdicts(bench.make(NAME), waiting.obj()) == "Skip"


def test_what_if(bench):
    """Taking the using pod away in a dry run frees the claim there, and only there."""
    bench.handle.put(claim("one", "ReadWriteOncePod"))
    user = pod("q").claim("one").on("n")
    snapshot = bench.cluster([node("n")], [user])
    plugin, state, waiting, info = bench.make(NAME), CycleState(), pod("p").claim("one").obj(), snapshot.infos[0]
    plugin.pre_filter(state, waiting, snapshot)
    trial = state.clone()
    assert plugin.remove_pod(trial, waiting, user.obj(), info) is None
    assert plugin.filter(trial, waiting, info) is None
    assert plugin.filter(state, waiting, info) is not None
    plugin.add_pod(trial, waiting, user.obj(), info)
    assert plugin.filter(trial, waiting, info) is not None


@pytest.mark.parametrize(
    ("waiting", "deleted", "answer"),
    [
        pytest.param(ebs("a"), ebs("a"), QueueingHint.QUEUE, id="the disk is free"),
        pytest.param(ebs("a"), ebs("b"), QueueingHint.SKIP, id="another disk"),
        pytest.param(ebs("a"), ebs("a").in_ns("other"), QueueingHint.SKIP, id="another namespace"),
        pytest.param(pod("p").claim("c"), pod("q").claim("c"), QueueingHint.QUEUE, id="the claim is free"),
        pytest.param(pod("p").claim("c"), pod("q").claim("d"), QueueingHint.SKIP, id="another claim"),
    ],
)
def test_hint_after_a_pod_left(bench, waiting, deleted, answer):
    """A pod that had the same disk or claim in the same namespace may have made room."""
    plugin = bench.make(NAME)
    assert bench.hint(plugin, ASSIGNED_POD_DELETE, waiting.obj(), deleted.obj(), None) is answer


def test_other_hints(bench):
    """A new node always helps; a new claim if it is the pod's own."""
    plugin, waiting = bench.make(NAME), pod("p").claim("c").obj()
    assert bench.hint(plugin, NODE_ADD, waiting, None, node("n").obj()) is QueueingHint.QUEUE
    added = next(r for r in plugin.events() if r.event.resource.value == "PersistentVolumeClaim")
    assert added.hint(waiting, None, claim("c")) is QueueingHint.QUEUE
    assert added.hint(waiting, None, claim("d")) is QueueingHint.SKIP
    assert added.hint(waiting, None, claim("c", namespace="other")) is QueueingHint.SKIP
    assert added.hint(waiting, None, "nonsense") is QueueingHint.QUEUE
