"""VolumeBinding: what is reserved is taken for the next pod, and free again after Unreserve."""

import pytest

from scheduler.api import Code, CycleState
from scheduler.plugins.volume_binding.binder import BOUND_BY_CONTROLLER
from scheduler.plugins.volume_binding.delayed import SELECTED_NODE
from scheduler.plugins.volume_binding.plugin import NAME, no_volumes_for
from scheduler.testing import node, pod


class Attempt:
    """One pod's way through the plugin."""

    def __init__(self, bench, plugin, waiting):
        self.plugin, self.state, self.pod = plugin, CycleState(), waiting.obj()
        self.status = plugin.pre_filter(self.state, self.pod, bench.handle.snapshot)[1]
        self.fits = plugin.filter_all(self.state, self.pod, bench.handle.snapshot).ok.tolist()

    def reserve(self, node_name="n"):
        return self.plugin.reserve(self.state, self.pod, node_name)

    def unreserve(self, node_name="n"):
        self.plugin.unreserve(self.state, self.pod, node_name)

    def pre_flight(self, node_name="n"):
        return self.plugin.pre_bind_pre_flight(self.state, self.pod, node_name)


@pytest.fixture
def plugin(bench):
    bench.cluster([node("n")])
    return bench.make(NAME)


def test_a_volume_is_taken(bench, storage, plugin):
    """The next claim does not get it, until it is given back."""
    bench.handle.put(storage.storage_class(provisioner=""), storage.volume("pv"))
    bench.handle.put(storage.claim("a"), storage.claim("b"))
    first = Attempt(bench, plugin, pod("p").claim("a"))
    assert first.reserve() is None
    taken = plugin._caches.volumes.get("pv")
    assert (taken.spec.claim_ref.name, taken.spec.claim_ref.namespace) == ("a", "default")
    assert taken.spec.claim_ref.uid == storage.claim("a").uid
    assert taken.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert Attempt(bench, plugin, pod("q").claim("b")).fits == [False]
    first.unreserve()
    assert Attempt(bench, plugin, pod("q").claim("b")).fits == [True]
    first.unreserve()


def test_a_claim_is_sent_to_a_node(bench, storage, plugin):
    """Another pod with the same claim then fits only there."""
    bench.handle.put(storage.storage_class(), storage.claim("a"))
    bench.cluster([node("n"), node("m")])
    first = Attempt(bench, plugin, pod("p").claim("a"))
    assert first.reserve() is None
    assert plugin._caches.claims.get("default/a").annotations == {SELECTED_NODE: "n"}
    second = Attempt(bench, plugin, pod("q").claim("a"))
    assert second.fits == [name == "n" for name in bench.handle.snapshot.names]
    first.unreserve()
    assert Attempt(bench, plugin, pod("q").claim("a")).fits == [True, True]


def test_a_volume_set_aside_by_hand_is_not_marked(bench, storage, plugin):
    """The annotation tells that the controller, not a person, chose the volume."""
    volume = storage.volume("pv", phase="Bound", claim=storage.claim("a"))
    bench.handle.put(storage.storage_class(provisioner=""), volume, storage.claim("a"))
    assert Attempt(bench, plugin, pod("p").claim("a")).reserve() is None
    assert plugin._caches.volumes.get("pv") is volume


def test_nothing_to_bind(bench, storage, plugin):
    """A pod whose claims are all bound needs no PreBind; neither does a pod without claims."""
    bench.handle.put(storage.claim("a", volume="pv"), storage.volume("pv"))
    attempt = Attempt(bench, plugin, pod("p").claim("a"))
    assert attempt.reserve() is None
    assert attempt.pre_flight().code is Code.SKIP
    plain, state = pod("q").obj(), CycleState()
    assert plugin.reserve(state, plain, "n") is None
    plugin.unreserve(state, plain, "n")
    assert plugin.pre_bind_pre_flight(state, plain, "n").code is Code.SKIP


def test_pre_flight(bench, storage, plugin):
    """There is work to do on a node that was judged; another node is an error."""
    bench.handle.put(storage.storage_class(), storage.claim("a"))
    attempt = Attempt(bench, plugin, pod("p").claim("a"))
    attempt.reserve()
    assert attempt.pre_flight() is None
    assert attempt.pre_flight("m").reasons == (no_volumes_for("m"),)


def test_reserve_on_a_changed_volume_is_an_error(bench, storage, plugin):
    """Then nothing is assumed, neither the volumes before it."""
    bench.handle.put(storage.storage_class(provisioner=""), storage.claim("a", "1Gi"), storage.claim("b", "2Gi"))
    bench.handle.put(storage.volume("pv-1", "1Gi"), storage.volume("pv-2", "2Gi"))
    attempt = Attempt(bench, plugin, pod("p").claim("a").claim("b"))
    bench.handle.put(storage.volume("pv-2", "2Gi", version="7"))
    status = attempt.reserve()
    assert (status.code, status.reasons) == (Code.ERROR, ('"pv-2" is out of sync (stored: 7, assume: 1)',))
    assert plugin._caches.volumes.get("pv-1").spec.claim_ref is None
