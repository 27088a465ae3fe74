"""Other kinds: newest version in the store, and the kind's event to the queue."""

from scheduler.model.delta import Added, Changed, Removed
from scheduler.model.storage import CSINode, PersistentVolumeClaim
from scheduler.testing import pod
from scheduler.testing.manifests import obj


def claim(version="1"):
    return obj(PersistentVolumeClaim, {"metadata": {"namespace": "default", "name": "c", "resourceVersion": version}})


def test_kind_with_events(bench):
    """Each change wakes the pods whose rejectors registered it."""
    old, new = claim(), claim("2")
    for delta, label in (
        (Added(old), "PersistentVolumeClaimAdd"),
        (Changed(old, new), "PersistentVolumeClaimUpdate"),
        (Removed(new), "PersistentVolumeClaimDelete"),
    ):
        parked = bench.park(pod(label.lower()).obj())
        bench.apply(delta)
        assert bench.is_woken(parked)
        assert bench.seconds[label] == 1
    assert len(bench.stores.of(PersistentVolumeClaim)) == 0


def test_newest_version_is_kept(bench):
    """Plugins read it through their lister."""
    old, new = claim(), claim("2")
    bench.apply(Added(old), Changed(old, new))
    assert bench.stores.of(PersistentVolumeClaim).get("default/c") is new


def test_kind_without_events(bench):
    """Only the store is kept."""
    parked = bench.park(pod("waits").obj())
    csi_node = obj(CSINode, {"metadata": {"name": "n1"}})
    bench.apply(Added(csi_node), Changed(csi_node, csi_node))
    assert bench.stores.of(CSINode).get("n1") is csi_node
    bench.apply(Removed(csi_node, is_stale=True))
    assert bench.stores.of(CSINode).get("n1") is None
    assert not bench.is_woken(parked)
    assert not bench.seconds
