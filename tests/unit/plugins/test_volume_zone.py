"""VolumeZone: facts of upstream's volume_zone_test.go."""

import pytest

from scheduler.api import ActionType, Code, QueueingHint
from scheduler.plugins.shared.storage import claim_not_found, class_not_found, volume_not_found
from scheduler.plugins.volume_zone import (
    NAME,
    REASON_CLAIM_UNNAMED,
    REASON_CONFLICT,
    REASON_NEITHER_VOLUME_NOR_CLASS,
    REASON_VOLUME_UNNAMED,
    reason_no_mode,
)
from scheduler.testing import node, obj, pod

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def volume(name="pv", **labels):
    return obj("PersistentVolume", {"metadata": {"name": name, "labels": labels.pop("labels", {})}})


def claim(name="c", *, volume_name="pv", storage_class=None, namespace="default"):
    spec = {"volumeName": volume_name, "storageClassName": storage_class}
    return obj("PersistentVolumeClaim", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def storage_class(name, mode):
    return obj("StorageClass", {"metadata": {"name": name}, "provisioner": "p", "volumeBindingMode": mode})


@pytest.mark.parametrize(
    ("of_volume", "of_node", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a"}, {}, True, id="a node without any zone"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, False, id="a node with a region but no zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: " a __ b "}, {ZONE: "b"}, True, id="blanks do not matter"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, False, id="zone fits, region does not"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="an old label meets the new one"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the old label goes first"),
        pytest.param({BETA_REGION: "r"}, {REGION: "s"}, False, id="an old region label"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="a new label does not meet the old one"),
    ],
)
def test_filter(bench, of_volume, of_node, fits):
    """A node must be in the zone and region of the volume; evicting does not help."""
    bench.handle.put(volume(labels=of_volume), claim())
    bench.cluster([node("n").labels(of_node)])
    status = bench.verdict(bench.make(NAME), pod("p").claim("c").obj())
    if fits:
        assert status is None
    else:
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == (REASON_CONFLICT,)


def test_all_nodes_at_once(bench):
    """Both forms agree over a mixed cluster, also when PreFilter has not run."""
    bench.handle.put(volume(labels={BETA_ZONE: "a__b", REGION: "r"}), claim())
    places = [(z, r) for z in (None, "a", "b", "c") for r in (None, "r", "s")]
    nodes = []
    for i, (zone, region) in enumerate(places):
        made = node(f"n{i}")
        made = made if zone is None else made.label(BETA_ZONE if i % 2 else ZONE, zone)
        nodes.append(made if region is None else made.label(REGION, region))
    bench.cluster(nodes)
    plugin, waiting = bench.make(NAME), pod("p").claim("c").obj()
    verdicts = bench.verdicts(plugin, waiting)
    assert verdicts == bench.verdicts(plugin, waiting, pre_filter=False)
    assert sorted(name for name, status in verdicts.items() if status is None) == ["n0", "n4", "n7"]


@pytest.mark.parametrize(
    ("objects", "claim_name", "reason"),
    [
        pytest.param([], "", REASON_CLAIM_UNNAMED, id="claim without a name"),
        pytest.param([], "gone", claim_not_found("gone"), id="missing claim"),
        pytest.param([claim(volume_name="lost")], "c", volume_not_found("lost"), id="missing volume"),
        pytest.param([claim(volume_name="")], "c", REASON_NEITHER_VOLUME_NOR_CLASS, id="neither volume nor class"),
        pytest.param([claim(volume_name="", storage_class="k")], "c", class_not_found("k"), id="missing class"),
        pytest.param(
            [claim(volume_name="", storage_class="k"), storage_class("k", None)], "c", reason_no_mode("k"), id="no mode"
        ),
        pytest.param(
            [claim(volume_name="", storage_class="k"), storage_class("k", "Immediate")],
            "c",
            REASON_VOLUME_UNNAMED,
            id="should have been bound",
        ),
    ],
)
def test_claims_that_lead_nowhere(bench, objects, claim_name, reason):
    """Such a pod fits nowhere, and the reason names what is missing."""
    bench.handle.put(*objects)
    bench.cluster([node("n")])
    _, status = bench.pre_filter(bench.make(NAME), pod("p").claim(claim_name).obj())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (reason,)


@pytest.mark.parametrize(
    ("objects", "waiting"),
    [
        pytest.param([], pod("p"), id="no volumes"),
        pytest.param([], pod("p").volume("v", emptyDir={}), id="no claims"),
        pytest.param([volume(), claim()], pod("p").claim("c"), id="a volume without a place"),
        pytest.param([volume(labels={ZONE: "a__"}), claim()], pod("p").claim("c"), id="a label that cannot be read"),
        pytest.param(
            [claim(volume_name="", storage_class="k"), storage_class("k", "WaitForFirstConsumer")],
            pod("p").claim("c"),
            id="a claim that waits for its pod",
        ),
    ],
)
def test_pods_of_no_concern(bench, objects, waiting):
    """Without a place to keep to, nothing is filtered."""
    bench.handle.put(*objects)
    bench.cluster([node("n").label(ZONE, "z")])
    assert bench.verdicts(bench.make(NAME), waiting.obj()) == "Skip"


@pytest.mark.parametrize(
    ("resource", "old", "new", "answer"),
    [
        pytest.param(
            "storage.k8s.io/StorageClass", None, storage_class("k", "WaitForFirstConsumer"), "Queue", id="class waits"
        ),
        pytest.param("storage.k8s.io/StorageClass", None, storage_class("k", "Immediate"), "QueueSkip", id="class now"),
        pytest.param("PersistentVolumeClaim", None, claim(), "Queue", id="own claim"),
        pytest.param("PersistentVolumeClaim", claim(), claim("d"), "QueueSkip", id="another claim"),
        pytest.param("PersistentVolumeClaim", None, claim(namespace="x"), "QueueSkip", id="another namespace"),
        pytest.param("PersistentVolume", None, volume(), "Queue", id="new volume"),
        pytest.param(
            "PersistentVolume", volume(labels={ZONE: "a"}), volume(labels={ZONE: "b"}), "Queue", id="volume moved"
        ),
        pytest.param(
            "PersistentVolume",
            volume(labels={ZONE: "a"}),
            volume(labels={ZONE: "a", "x": "y"}),
            "QueueSkip",
            id="stayed",
        ),
    ],
)
def test_hints(bench, resource, old, new, answer):
    """What may help a pod that a zone kept off."""
    registration = next(r for r in bench.make(NAME).events() if r.event.resource.value == resource)
    assert registration.hint(pod("p").claim("c").obj(), old, new) is QueueingHint(answer)
    assert registration.hint(pod("p").claim("c").obj(), None, "nonsense") is QueueingHint.QUEUE


def test_node_changes_always_help(bench):
    """New and relabelled nodes need no hint."""
    registration = next(r for r in bench.make(NAME).events() if r.event.resource.value == "Node")
    assert registration.event.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL
    assert registration.hint is None
