"""Volumes, claims, classes and capacities in few words."""

import pytest

from scheduler.testing import obj

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


class Storage:
    """Makes storage objects; what is not said is the plainest."""

    BOUND = BOUND
    ZONE = ZONE

    @staticmethod
    def volume(
        name,
        size="1Gi",
        *,
        cls="wait",
        phase="Available",
        zones=(),
        modes=("ReadWriteOnce",),
        labels=None,
        claim=None,
        deleting=False,
        annotations=None,
        version="1",
        **spec,
    ):
        meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}, "resourceVersion": version}
        if deleting:
            meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        spec = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": cls, **spec}
        if zones:
            terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        if claim is not None:
            spec["claimRef"] = {"namespace": "default", "name": claim.name, "uid": claim.uid}
        return obj("PersistentVolume", {"metadata": meta, "spec": spec, "status": {"phase": phase}})

    @staticmethod
    def claim(
        name,
        size="1Gi",
        *,
        cls="wait",
        volume="",
        annotations=None,
        phase="Pending",
        modes=("ReadWriteOnce",),
        selector=None,
        owner=None,
        deleting=False,
        version="1",
        namespace="default",
    ):
        """A claim; with ``volume`` it is fully bound unless ``annotations`` say otherwise."""
        if annotations is None:
            annotations = BOUND if volume else {}
        meta = {"name": name, "namespace": namespace, "annotations": annotations, "resourceVersion": version}
        if owner is not None:
            made_by = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
            meta["ownerReferences"] = [made_by]
        if deleting:
            meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        spec = {"accessModes": list(modes), "volumeName": volume, "storageClassName": cls}
        if size is not None:
            spec["resources"] = {"requests": {"storage": size}}
        if selector is not None:
            spec["selector"] = selector
        return obj("PersistentVolumeClaim", {"metadata": meta, "spec": spec, "status": {"phase": phase}})

    @staticmethod
    def storage_class(name="wait", provisioner="csi", *, mode="WaitForFirstConsumer", zones=()):
        made = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
        if zones:
            made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
        return obj("StorageClass", made)

    @staticmethod
    def driver(name="csi", *, publishes=True):
        return obj("CSIDriver", {"metadata": {"name": name}, "spec": {"storageCapacity": publishes}})

    @staticmethod
    def capacity(name, size, *, zone=None, cls="wait", largest=None):
        made = {"metadata": {"name": name, "namespace": "default"}, "storageClassName": cls}
        if size is not None:
            made["capacity"] = size
        if zone is not None:
            made["nodeTopology"] = {"matchLabels": {ZONE: zone}}
        if largest is not None:
            made["maximumVolumeSize"] = largest
        return obj("CSIStorageCapacity", made)

    @staticmethod
    def csi_node(name, migrated=""):
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
        return obj("CSINode", {"metadata": {"name": name, "annotations": annotations}})


@pytest.fixture
def storage():
    return Storage
