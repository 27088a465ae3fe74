"""Router: every delta to its family, and what becomes of objects that cannot be understood."""

import pytest
from structlog.testing import capture_logs

from scheduler.model.delta import Added, Rejected, Synced, Unavailable
from scheduler.model.node import Node
from scheduler.model.pod import Pod
from scheduler.model.storage import CSINode, StorageClass
from scheduler.testing import node, pod
from scheduler.testing.manifests import obj


def rejected(version="1", *, kind=Pod, namespace="default", name="bad", reason="spec.x: nonsense", **of_pod):
    of_pod = {"scheduler_name": "default-scheduler", **of_pod}
    return Rejected(kind, namespace, name, "uid", version, reason, **of_pod)


def test_deltas_go_to_their_family(bench):
    """By the type of the object."""
    bench.apply(Added(node("n1").obj()), Added(pod("p").obj()))
    assert bench.cache.get_node("n1") is not None
    assert bench.place(pod("p").obj()) == "active"


def test_kind_without_a_handler_is_a_mistake_of_the_composition(bench):
    """Loud, because objects would be lost in silence."""
    with pytest.raises(KeyError):
        bench.apply(Added(obj(StorageClass, {"metadata": {"name": "s"}, "provisioner": "x"})))


def test_barrier_follows(bench):
    """Synced and Unavailable open it."""
    bench.apply(Synced(Pod), Synced(Node))
    assert not bench.intake.is_synced
    bench.apply(Unavailable(CSINode, "404"))
    assert bench.intake.is_synced
    assert bench.barrier.unavailable == {CSINode: "404"}


@pytest.mark.parametrize(
    ("kind", "consequence"), [(Node, "nothing is decided without it"), (CSINode, "plugins that need it work without")]
)
def test_the_log_says_what_a_kind_that_cannot_be_read_costs(bench, kind, consequence):
    """Once for each reason."""
    with capture_logs() as logged:
        bench.apply(Unavailable(kind, "403"), Unavailable(kind, "403"))
    assert [entry["event"] for entry in logged] == [f"kind cannot be read; {consequence}"]


def test_rejected_pod_is_told_once_a_version(bench):
    """Its owner gets an event; repetitions of the same version are silent."""
    bench.apply(rejected(), rejected(), rejected("2"))
    assert bench.rejected_kinds == ["Pod", "Pod"]
    first, second = bench.outbox.drain()
    assert (first.kind, first.reason, first.action) == ("Warning", "FailedScheduling", "Scheduling")
    assert (first.regarding.pod_key, first.regarding.uid, first.reporter) == ("default/bad", "uid", "default-scheduler")
    assert first.note == "the pod cannot be scheduled because it cannot be understood: spec.x: nonsense"
    assert second.note == first.note


@pytest.mark.parametrize(
    "delta",
    [
        pytest.param(rejected(kind=Node, namespace=""), id="a node"),
        pytest.param(rejected(name=""), id="a pod without a name"),
        pytest.param(rejected(namespace=""), id="a pod without a namespace"),
        pytest.param(rejected(scheduler_name="other"), id="a pod of another scheduler"),
        pytest.param(rejected(node_name="n1"), id="a running pod"),
    ],
)
def test_rejected_object_that_nobody_can_be_told_about(bench, delta):
    """Logged and counted only."""
    bench.apply(delta)
    assert bench.rejected_kinds == [delta.kind.__name__]
    assert len(bench.outbox) == 0


def test_note_fits_an_event(bench):
    """1,024 bytes at most, and never half a character."""
    bench.apply(rejected(reason="ü" * 2000))
    (event,) = bench.outbox.drain()
    assert len(event.note.encode()) in {1023, 1024}


def test_memory_of_rejections_is_bounded(bench):
    """A flood of bad objects does not fill the memory; the oldest are forgotten."""
    for i in range(5000):
        bench.apply(rejected(str(i)))
    assert len(bench.intake._rejections) == 4096
    bench.apply(rejected("4999"))
    assert len(bench.rejected_kinds) == 5000
    bench.apply(rejected("0"))
    assert len(bench.rejected_kinds) == 5001
