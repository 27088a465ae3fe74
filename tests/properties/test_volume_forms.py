"""Volume plugins on random claims, volumes and nodes: both forms agree, and the quick searches find what a plain one does."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import Code, CycleState
from scheduler.config.args import UtilizationShapePoint, VolumeBindingArgs
from scheduler.model.quantity import parse_quantity_nano
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins import IN_TREE
from scheduler.plugins.shared.volume_affinity import is_reachable
from scheduler.plugins.volume_binding.static_matching import Candidates, is_bound_to
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.store import Stores
from scheduler.testing import FakeClock
from scheduler.testing import builders as b

ZONE, HOST, BETA = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
ZONES = ("a", "b", "c")
CLASSES = ("wait", "zonal", "local", "cap", "now", "ebs")
SIZES = ("1Gi", "1Gi", "2Gi", "5Gi")
VOLUME_PLUGINS = ("VolumeRestrictions", "VolumeZone", "NodeVolumeLimits", "VolumeBinding")


class _World:
    """A cluster with storage; also the Handle of the plugins under test."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.random, self.clock, self.stores = rng, rng, FakeClock(), Stores()
        self.num_nodes = rng.randint(1, 10)
        self.volumes: list[str] = []
        self._classes()
        for i in range(rng.randint(0, 8)):
            self._volume(f"free-{i}", rng.choice(CLASSES))
        self.claims = [self._claim(f"c{i}") for i in range(rng.randint(1, 8))]
        self.snapshot = self._cluster()

    def nodes(self) -> Snapshot:
        return self.snapshot

    def lister(self, kind):
        return self.stores.of(kind)

    def is_enabled(self, feature: str) -> bool:
        return False

    async def patch(self, obj, changes):
        raise NotImplementedError("there is no API server")

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def put(self, kind: str, name: str, *, namespace: str = "", meta=None, **fields) -> None:
        metadata = {"name": name, "resourceVersion": "1", **(meta or {})}
        if namespace:
            metadata["namespace"] = namespace
        made = b.obj(kind, {"metadata": metadata, **fields})
        self.stores.of(type(made)).put(made)

    def _classes(self) -> None:
        rng, waits = self.rng, "WaitForFirstConsumer"
        topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": rng.sample(ZONES, 2)}]}]
        self.put("StorageClass", "wait", provisioner="csi", volumeBindingMode=waits)
        self.put("StorageClass", "zonal", provisioner="csi", volumeBindingMode=waits, allowedTopologies=topologies)
        self.put("StorageClass", "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode=waits)
        self.put("StorageClass", "cap", provisioner="cap", volumeBindingMode=waits)
        self.put("StorageClass", "ebs", provisioner="kubernetes.io/aws-ebs", volumeBindingMode=waits)
        self.put("StorageClass", "now", provisioner="csi", volumeBindingMode="Immediate")
        self.put("CSIDriver", "cap", spec={"storageCapacity": rng.random() < 0.8})
        for i in range(rng.randint(0, 4)):
            place = rng.choice((None, {}, {"matchLabels": {ZONE: rng.choice(ZONES)}}, {"matchLabels": {HOST: "n1"}}))
            fields = {"capacity": rng.choice(SIZES), **({} if place is None else {"nodeTopology": place})}
            self.put("CSIStorageCapacity", f"cap-{i}", namespace="default", storageClassName="cap", **fields)

    def _volume(self, name: str, cls: str, claim=None) -> str:
        rng = self.rng
        spec = {
            "capacity": {"storage": rng.choice(SIZES)},
            "accessModes": rng.sample(("ReadWriteOnce", "ReadWriteMany"), rng.randint(1, 2)),
            "storageClassName": cls,
        }
        labels = {rng.choice((ZONE, BETA)): rng.choice((*ZONES, "a__b"))} if rng.random() < 0.3 else {}
        kind = rng.random()
        if kind < 0.5:
            spec["csi"] = {"driver": rng.choice(("csi", "cap")), "volumeHandle": name}
        elif kind < 0.75:
            spec["awsElasticBlockStore"] = {"volumeID": rng.choice((f"vol-{name}", "aws://z/bad"))}
        elif kind < 0.85:
            spec["gcePersistentDisk"] = {"pdName": name}
        if rng.random() < 0.6:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._terms()}}
        if rng.random() < 0.1:
            spec["volumeMode"] = "Block"
        if claim is not None:
            spec["claimRef"] = claim
        phase = rng.choice(("Available", "Available", "Available", "Released"))
        meta = {"labels": {**labels, **({"kind": "fast"} if rng.random() < 0.3 else {})}}
        self.put("PersistentVolume", name, meta=meta, spec=spec, status={"phase": phase})
        self.volumes.append(name)
        return name

    def _terms(self):
        rng = self.rng
        expressions = (
            {"key": ZONE, "operator": "In", "values": rng.sample(ZONES, rng.randint(1, 2))},
            {"key": HOST, "operator": "In", "values": [f"n{rng.randrange(10)}"]},
            {"key": ZONE, "operator": "NotIn", "values": ["a"]},
            {"key": HOST, "operator": "Exists"},
        )
        field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        return [
            {"matchExpressions": [rng.choice(expressions)], **(field if rng.random() < 0.1 else {})}
            for _ in range(rng.choice((1, 1, 2)))
        ]

    def _claim(self, name: str) -> str:
        rng = self.rng
        cls = rng.choice(CLASSES)
        spec = {
            "accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))],
            "storageClassName": cls,
            "resources": {"requests": {"storage": rng.choice(SIZES)}},
        }
        annotations = {}
        ref = {"namespace": "default", "name": name, "uid": b.stable_uid("PersistentVolumeClaim", "default", name)}
        if rng.random() < 0.5:
            gone = rng.random() < 0.1
            spec["volumeName"] = "gone" if gone else self._volume(f"pv-{name}", cls, ref)
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
        elif rng.random() < 0.15:
            annotations["volume.kubernetes.io/selected-node"] = f"n{rng.randrange(5)}"
        elif rng.random() < 0.15:
            self._volume(f"mine-{name}", cls, {**ref, "uid": rng.choice((ref["uid"], ""))})
        if rng.random() < 0.2:
            spec["selector"] = {"matchLabels": {"kind": "fast"}}
        self.put("PersistentVolumeClaim", name, namespace="default", meta={"annotations": annotations}, spec=spec)
        return name

    def _cluster(self) -> Snapshot:
        rng, cache, snapshot = self.rng, Cache(), Snapshot()
        for i in range(self.num_nodes):
            node = b.node(f"n{i}")
            node = node.label(HOST, f"n{i}") if rng.random() < 0.9 else node
            node = node.label(rng.choice((ZONE, ZONE, BETA)), rng.choice(ZONES)) if rng.random() < 0.8 else node
            cache.add_node((node.label(EBS_ZONE, rng.choice(ZONES)) if rng.random() < 0.4 else node).obj())
            if rng.random() < 0.8:
                self._csi_node(f"n{i}")
        for i in range(rng.randint(0, 12)):
            cache.add_pod(self.pod(f"run-{i}").on(f"n{rng.randrange(self.num_nodes)}").obj())
        for i in range(rng.choice((0, 0, 2))):
            source = {"persistentVolumeName": rng.choice((*self.volumes, "gone"))}
            spec = {"attacher": "csi", "nodeName": f"n{rng.randrange(self.num_nodes)}", "source": source}
            self.put("VolumeAttachment", f"va-{i}", spec=spec)
        cache.update_snapshot(snapshot)
        return snapshot

    def _csi_node(self, name: str) -> None:
        rng = self.rng
        drivers = [
            {"name": driver, "allocatable": {"count": rng.randint(0, 3)}} if rng.random() < 0.7 else {"name": driver}
            for driver in ("csi", "cap", "ebs.csi.aws.com")
        ]
        moved = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"} if rng.random() < 0.5 else {}
        self.put("CSINode", name, meta={"annotations": moved}, spec={"drivers": drivers})

    def pod(self, name: str):
        rng, pod = self.rng, b.pod(name)
        for claim in rng.choices(self.claims, k=rng.randint(0, 3)):
            pod = pod.claim(claim, volume=f"v{rng.randrange(10**6)}")
        if rng.random() < 0.3:
            disk = rng.choice(
                (
                    {"awsElasticBlockStore": {"volumeID": rng.choice(("vol-1", "vol-2"))}},
                    {"gcePersistentDisk": {"pdName": rng.choice("de"), "readOnly": rng.random() < 0.5}},
                    {"azureDisk": {"diskName": "d", "diskURI": "u", "kind": rng.choice(("Managed", "Shared"))}},
                )
            )
            pod = pod.volume("disk", disk)
        return pod


def _check_forms(plugin, state, pod, view) -> None:
    single = [plugin.filter(state, pod, info) for info in view.infos]
    verdicts = plugin.filter_all(state, pod, view)
    assert [status is None for status in single] == verdicts.ok.tolist()
    explained = {
        row: status for status, rows in verdicts.explain(np.flatnonzero(~verdicts.ok)) for row in rows.tolist()
    }
    assert explained == {row: status for row, status in enumerate(single) if status is not None}
    failed = [status is not None and status.code is Code.ERROR for status in single]
    assert (np.zeros(len(view), bool) if verdicts.errors is None else verdicts.errors).tolist() == failed


def _decisions(plugin, state, pod, view, *, in_one_go: bool):
    """Return what VolumeBinding decided for each node that passes, by one of the forms."""
    if in_one_go:
        plugin.filter_all(state, pod, view)
    else:
        for info in view.infos:
            plugin.filter(state, pod, info)
    (search,) = (value for key, value in state._values.items() if key.name == plugin.name)
    return search.by_node


@pytest.mark.parametrize("name", VOLUME_PLUGINS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_both_forms_agree(name: str, seed: int) -> None:
    """filter == filter_all, statuses, errors and decisions included, on the whole cluster and on a part of it."""
    rng = random.Random(seed)
    world = _World(rng)
    args = VolumeBindingArgs(shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)))
    plugin, pod = IN_TREE[name](args, world), world.pod("new").obj()
    rows = np.array(sorted(rng.sample(range(world.num_nodes), rng.randint(1, world.num_nodes))), np.intp)
    for view in (world.snapshot, world.snapshot.take(rows)):
        state, other = CycleState(), CycleState()
        _, status = plugin.pre_filter(state, pod, world.snapshot)
        if status is not None:
            return
        _check_forms(plugin, state, pod, view)
        if name == "VolumeBinding":
            plugin.pre_filter(other, pod, world.snapshot)
            wanted = _decisions(plugin, other, pod, view, in_one_go=False)
            plugin.pre_filter(state, pod, world.snapshot)
            assert _decisions(plugin, state, pod, view, in_one_go=True) == wanted
            scores = [plugin.score(state, pod, info) for info in view.infos]
            assert plugin.score_all(state, pod, view).tolist() == scores


@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_static_matching_is_the_plain_search(seed: int) -> None:
    """Candidates choose what upstream's loop over all volumes of the class chooses."""
    rng = random.Random(seed)
    world = _World(rng)
    stores = {kind.__name__: store for kind, store in world.stores._stores.items()}
    if "PersistentVolume" not in stores:
        return
    for claim in stores["PersistentVolumeClaim"].list():
        volumes = [
            v for v in stores["PersistentVolume"].list() if v.spec.storage_class_name == claim.spec.storage_class_name
        ]
        taken = {v.name for v in volumes if rng.random() < 0.2}
        candidates = Candidates(claim, volumes)
        for info in world.snapshot.infos:
            assert candidates.choose(info.labels, taken) == _plain_search(claim, volumes, info.labels, taken)


def _plain_search(claim, volumes, labels, taken):
    best, best_size = None, None
    for volume in volumes:
        size = parse_quantity_nano(volume.spec.capacity["storage"])
        if volume.name in taken or (volume.spec.claim_ref is not None and not is_bound_to(volume, claim)):
            continue
        if size < parse_quantity_nano(claim.spec.resources.requests["storage"]) or volume.spec.volume_mode == "Block":
            continue
        reachable = is_reachable(volume.spec.node_affinity, labels)
        if volume.spec.claim_ref is not None:
            return volume if reachable else None
        selected = claim.spec.selector is None or label_selector_matches(claim.spec.selector, volume.labels)
        fits = volume.status.phase == "Available" and selected and reachable
        if (
            fits
            and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
            and (best is None or size < best_size)
        ):
            best, best_size = volume, size
    return best
