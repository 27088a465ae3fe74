"""VolumeBinding: what may help a pod whose volumes could not be bound."""

import msgspec
import pytest

from scheduler.api import ActionType, QueueingHint
from scheduler.plugins.volume_binding.plugin import NAME
from scheduler.testing import obj, pod

STORAGE_K8S = "storage.k8s.io/"
EPHEMERAL = {"volumeClaimTemplate": {"spec": {}}}


def csi_driver(name, publishes):
    spec = {} if publishes is None else {"storageCapacity": publishes}
    return obj("CSIDriver", {"metadata": {"name": name}, "spec": spec})


def registration(bench, resource):
    found = [r for r in bench.make(NAME).events() if r.event.resource.value == resource]
    assert len(found) == 1
    return found[0]


def answer(bench, resource, waiting, old, new):
    return registration(bench, resource).hint(waiting.obj(), old, new)


def test_registered_events(bench):
    """As in spec §2.7; volumes and nodes need no hint."""
    both = ActionType.ADD | ActionType.UPDATE
    made = {r.event.resource.value: (r.event.action, r.hint is None) for r in bench.make(NAME).events()}
    assert made == {
        "storage.k8s.io/StorageClass": (both, False),
        "PersistentVolumeClaim": (both, False),
        "PersistentVolume": (both, True),
        "Node": (ActionType.ADD | ActionType.UPDATE_NODE_LABEL, True),
        "storage.k8s.io/CSINode": (both, False),
        "storage.k8s.io/CSIDriver": (ActionType.UPDATE, False),
        "storage.k8s.io/CSIStorageCapacity": (both, False),
    }


def test_storage_classes(bench, storage):
    """A new class helps, a changed one if its topologies changed."""
    old = storage.storage_class()
    for before, after, said in (
        (None, old, "Queue"),
        (old, storage.storage_class(zones=["a"]), "Queue"),
        (old, msgspec.structs.replace(old, parameters={"x": "y"}), "QueueSkip"),
    ):
        assert answer(bench, STORAGE_K8S + "StorageClass", pod("p").claim("c"), before, after) is QueueingHint(said)


@pytest.mark.parametrize(
    ("waiting", "name", "namespace", "said"),
    [
        pytest.param(pod("p").claim("c"), "c", "default", "Queue", id="own claim"),
        pytest.param(pod("p").claim("c"), "d", "default", "QueueSkip", id="another claim"),
        pytest.param(pod("p").claim("c"), "c", "other", "QueueSkip", id="another namespace"),
        pytest.param(pod("p").volume("v", ephemeral=EPHEMERAL), "p-v", "default", "Queue", id="ephemeral claim"),
    ],
)
def test_claims(bench, storage, waiting, name, namespace, said):
    """Claims of the pod help, new or changed."""
    claim = storage.claim(name, namespace=namespace)
    assert answer(bench, "PersistentVolumeClaim", waiting, None, claim) is QueueingHint(said)
    assert answer(bench, "PersistentVolumeClaim", waiting, claim, claim) is QueueingHint(said)


def test_csi_nodes(bench, storage):
    """A node that takes up a migrated plugin may reach volumes in another way."""
    old, new = storage.csi_node("n"), storage.csi_node("n", "kubernetes.io/aws-ebs")
    for before, after, said in ((None, old, "Queue"), (old, new, "Queue"), (new, new, "QueueSkip")):
        assert answer(bench, STORAGE_K8S + "CSINode", pod("p").claim("c"), before, after) is QueueingHint(said)


@pytest.mark.parametrize(
    ("driver", "before", "after", "said"),
    [
        pytest.param("d", True, False, "Queue", id="publishes no more"),
        pytest.param("d", True, None, "Queue", id="publishes no more, unset"),
        pytest.param("d", False, True, "QueueSkip", id="publishes now"),
        pytest.param("d", True, True, "QueueSkip", id="no change"),
        pytest.param("e", True, False, "QueueSkip", id="another driver"),
    ],
)
def test_drivers(bench, driver, before, after, said):
    """A driver that no longer publishes capacities is no longer asked for them."""
    waiting = pod("p").volume("v", csi={"driver": "d"})
    old, new = csi_driver(driver, before), csi_driver(driver, after)
    assert answer(bench, STORAGE_K8S + "CSIDriver", waiting, old, new) is QueueingHint(said)


def test_capacities(bench, storage):
    """More room helps; the largest volume size goes before the capacity."""
    make = storage.capacity
    for before, after, said in (
        (None, make("c", "1Gi"), "Queue"),
        (make("c", "1Gi"), make("c", "2Gi"), "Queue"),
        (make("c", "2Gi"), make("c", "1Gi"), "QueueSkip"),
        (make("c", None), make("c", "1Gi"), "Queue"),
        (make("c", "1Gi"), make("c", None), "QueueSkip"),
        (make("c", "1Gi", largest="1Gi"), make("c", "9Gi", largest="1Gi"), "QueueSkip"),
        (make("c", "9Gi", largest="1Gi"), make("c", "9Gi", largest="2Gi"), "Queue"),
    ):
        said_of = answer(bench, STORAGE_K8S + "CSIStorageCapacity", pod("p").claim("c"), before, after)
        assert said_of is QueueingHint(said)


def test_nonsense_queues(bench):
    """A hint that cannot read its objects does not let a pod wait."""
    for each in bench.make(NAME).events():
        if each.hint is not None:
            assert each.hint(pod("p").obj(), "x", "y") is QueueingHint.QUEUE
