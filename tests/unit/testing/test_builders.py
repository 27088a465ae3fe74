"""Builders: immutable, in the manifest's words, decoded as from the API server."""

from __future__ import annotations

import pytest

from scheduler.model.pod import Pod
from scheduler.model.storage import StorageClass
from scheduler.testing import all_of, exists, field_in, gt, in_, node, obj, pod


def test_builders_do_not_change() -> None:
    """One builder can be the start of many objects."""
    base = pod("web").requests(cpu="1").label("a", "b")
    base.requests(cpu="2").label("a", "c").container({"cpu": "1"})
    assert base.obj().requests == {"cpu": 1000}
    assert base.obj().labels == {"a": "b"}
    manifest = base.manifest()
    manifest["spec"]["containers"].clear()
    assert len(base.obj().spec.containers) == 1


def test_identity_is_stable() -> None:
    """Same kind, namespace and name: same UID; anything else: another."""
    assert pod("a").obj().uid == pod("a").label("x", "y").obj().uid == pod("a").manifest()["metadata"]["uid"]
    assert len({pod("a").obj().uid, pod("b").obj().uid, pod("a").in_ns("x").obj().uid, node("a").obj().uid}) == 4
    assert pod("a").uid("u").resource_version(5).obj().metadata.uid == "u"


def test_a_pod_with_everything() -> None:
    """Each method ends up where the manifest has it."""
    built = (
        pod("web")
        .in_ns("shop")
        .labels(app="web")
        .annotation("note", "x")
        .priority(5)
        .preemption_policy("Never")
        .scheduler("podium")
        .on("n1")
        .nominated("n2")
        .gate("wait", "more")
        .toleration("k", "v", effect="NoSchedule")
        .toleration(operator="Exists", seconds=5)
        .requires_node(all_of(in_("zone", "a"), gt("cores", 4)), field_in("n1"))
        .prefers_node(7, exists("ssd"))
        .pod_affinity("zone", {"app": "db"}, namespaces=["other"])
        .pod_affinity("zone", [exists("app")], weight=3)
        .pod_anti_affinity("host", {"app": "web"})
        .spread("zone", {"app": "web"}, max_skew=2, minDomains=3)
        .volume("data", hostPath={"path": "/x"})
        .claim("pvc")
        .resource_claim("gpu", claim="gpu-claim")
        .terminating()
        .started("2025-01-01T00:00:00Z")
        .owned_by("ReplicaSet", "web-1")
        .condition("PodScheduled", "False", reason="Unschedulable")
        .obj()
    )
    spec, affinity = built.spec, built.spec.affinity
    assert built.key == "shop/web"
    assert (built.priority, spec.preemption_policy, spec.scheduler_name, built.node_name) == (
        5,
        "Never",
        "podium",
        "n1",
    )
    assert built.status.nominated_node_name == "n2"
    assert [gate.name for gate in spec.scheduling_gates] == ["wait", "more"]
    assert [(t.key, t.operator, t.toleration_seconds) for t in spec.tolerations] == [("k", "", None), ("", "Exists", 5)]
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    first, second = affinity.node_affinity.required.node_selector_terms
    assert [r.operator for r in first.match_expressions] == ["In", "Gt"]
    assert second.match_fields[0].values == ("n1",)
    assert affinity.node_affinity.preferred[0].weight == 7
    assert affinity.pod_affinity is not None
    assert affinity.pod_affinity.required[0].namespaces == ("other",)
    assert affinity.pod_affinity.preferred[0].weight == 3
    assert built.has_required_anti_affinity
    assert (spec.topology_spread_constraints[0].max_skew, spec.topology_spread_constraints[0].min_domains) == (2, 3)
    assert [volume.name for volume in spec.volumes] == ["data", "pvc"]
    assert spec.resource_claims[0].resource_claim_name == "gpu-claim"
    assert built.is_terminating
    assert built.metadata.owner_references[0].controller
    assert built.status.conditions[0].reason == "Unschedulable"


def test_a_node_with_everything() -> None:
    """Capacity is allocatable unless stated otherwise."""
    built = (
        node("n1")
        .capacity(cpu="4", memory="8Gi", ephemeral_storage="1Gi", pods="110")
        .allocatable(cpu="3900m")
        .zone("a")
        .region("r")
        .hostname()
        .taint("k", "v", "NoExecute")
        .cordoned()
        .image("app:1", "app@sha256:1", size_bytes=5)
        .condition("Ready")
        .declares("X")
        .obj()
    )
    assert built.status.capacity["cpu"] == "4"
    assert (built.allocatable["cpu"], built.allocatable["ephemeral-storage"]) == (3900, 2**30)
    assert built.zone_key == "r:\x00:a"
    assert built.labels["kubernetes.io/hostname"] == "n1"
    assert (built.spec.taints[0].effect, built.spec.unschedulable) == ("NoExecute", True)
    assert built.status.images[0].size_bytes == 5
    assert built.status.declared_features == ("X",)


def test_any_kind_from_a_manifest() -> None:
    """By type or by name; a UID is derived."""
    manifest = {"metadata": {"name": "fast"}, "provisioner": "p"}
    built = obj(StorageClass, manifest)
    assert built == obj("StorageClass", manifest)
    assert (built.provisioner, bool(built.uid)) == ("p", True)


def test_what_the_decoder_would_reject_cannot_be_built() -> None:
    """A test must not work with objects that the scheduler would never see."""
    with pytest.raises(ValueError, match=r"Pod 'web' would be rejected: .*negative"):
        pod("web").requests(cpu="-1").obj()
    with pytest.raises(ValueError, match=r"metadata\.name is missing"):
        obj(Pod, {})
