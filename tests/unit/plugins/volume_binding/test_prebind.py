"""VolumeBinding: what PreBind writes, for what it waits, and how it gives up; facts of upstream's binder_test.go."""

import asyncio

import msgspec
import pytest

from scheduler.api import Code, CycleState, Status
from scheduler.config.args import VolumeBindingArgs
from scheduler.plugins.volume_binding.binder import BOUND_BY_CONTROLLER
from scheduler.plugins.volume_binding.delayed import SELECTED_NODE
from scheduler.plugins.volume_binding.plugin import NAME
from scheduler.plugins.volume_binding.prebind import TIMED_OUT
from scheduler.testing import node, pod

ZONE = "topology.kubernetes.io/zone"


class World:
    """A node, an API server, and what happens second by second while PreBind waits."""

    def __init__(self, bench, storage, timeout_s=600):
        self.handle, self.storage, self.seconds = bench.handle, storage, []
        self.pod = pod("p").claim("static").claim("dynamic").obj()
        self.refuse = {}
        self.handle.patch, self.handle.sleep = self.patch, self.sleep
        made = node("n").label(ZONE, "a")
        bench.cluster([made])
        self.plugin = bench.make(NAME, VolumeBindingArgs(bind_timeout_seconds=timeout_s))
        self.handle.put(made.obj(), self.pod)
        self.handle.put(storage.storage_class(), storage.storage_class("none", ""))
        self.handle.put(storage.claim("static", cls="none"), storage.claim("dynamic"))
        self.handle.put(storage.volume("pv", cls="none", zones=["a"]))
        self.state = CycleState()
        self.events = {}

    async def patch(self, obj, changes):
        self.handle.patched.append((obj.key, changes))
        if obj.key in self.refuse:
            return Status.error(self.refuse[obj.key])
        meta = msgspec.structs.replace(obj.metadata, resource_version="5")
        return msgspec.structs.replace(obj, metadata=meta)

    async def sleep(self, seconds):
        self.seconds.append(seconds)
        self.handle.clock.advance(seconds)
        for change in self.events.pop(len(self.seconds), ()):
            change()

    def at(self, second, *changes):
        self.events[second] = changes

    def put(self, *objects):
        return lambda: self.handle.put(*objects)

    def remove(self, obj):
        return lambda: self.handle.stores.of(type(obj)).remove(obj)

    def run(self):
        """Take the pod from PreFilter to PreBind."""
        snapshot = self.handle.snapshot
        self.plugin.pre_filter(self.state, self.pod, snapshot)
        assert self.plugin.filter_all(self.state, self.pod, snapshot).ok.all()
        assert self.plugin.reserve(self.state, self.pod, "n") is None
        assert self.plugin.pre_bind_pre_flight(self.state, self.pod, "n") is None
        return asyncio.run(self.plugin.pre_bind(self.state, self.pod, "n"))

    # What the controllers bring about.

    def bound_volume(self, version="5", **more):
        return self.storage.volume(
            "pv",
            cls="none",
            zones=more.pop("zones", ["a"]),
            claim=self.storage.claim("static"),
            version=version,
            **more,
        )

    def bound_static(self):
        return self.storage.claim("static", cls="none", volume="pv", version="6")

    def bound_dynamic(self, **annotations):
        known = {SELECTED_NODE: "n", **self.storage.BOUND, **annotations}
        return self.storage.claim("dynamic", volume="made", annotations=known, version="6")

    def made_volume(self, zone="a"):
        return self.storage.volume("made", zones=[zone], version="6")

    def all_bound(self):
        return self.put(self.bound_volume(), self.bound_static(), self.bound_dynamic(), self.made_volume())


@pytest.fixture
def world(bench, storage):
    return World(bench, storage)


def test_what_is_written(world, storage):
    """Volumes first, then claims; only what changes, under the version that was read."""
    world.at(1, world.all_bound())
    assert world.run() is None
    claim_ref = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "static",
        "uid": storage.claim("static").uid,
        "resourceVersion": "1",
    }
    assert world.handle.patched == [
        (
            "pv",
            {
                "metadata": {"resourceVersion": "1", "annotations": {BOUND_BY_CONTROLLER: "yes"}},
                "spec": {"claimRef": claim_ref},
            },
        ),
        ("default/dynamic", {"metadata": {"resourceVersion": "1", "annotations": {SELECTED_NODE: "n"}}}),
    ]


def test_waits_until_all_is_bound(world):
    """The state is looked at once a second; what lags behind our own write is waited for."""
    world.at(2, world.put(world.bound_volume(), world.bound_static()))
    world.at(4, world.put(world.storage.claim("dynamic", annotations={SELECTED_NODE: "n"}, version="5")))
    world.at(6, world.put(world.bound_dynamic()))
    world.at(8, world.put(world.made_volume()))
    assert world.run() is None
    assert world.seconds == [1.0] * 8


def static_only(world):
    world.pod = pod("p").claim("static").obj()
    world.handle.put(world.pod)


def dynamic_only(world):
    world.pod = pod("p").claim("dynamic").obj()
    world.handle.put(world.pod)


@pytest.mark.parametrize(
    ("prepare", "change", "text"),
    [
        pytest.param(
            static_only, lambda w: w.remove(w.pod), 'pod does not exist any more: pod "p" not found', id="pod deleted"
        ),
        pytest.param(
            static_only,
            lambda w: w.remove(node("n").obj()),
            'failed to get node "n": node "n" not found',
            id="node deleted",
        ),
        pytest.param(
            static_only,
            lambda w: w.remove(w.bound_volume()),
            'failed to check binding: persistentvolumes "pv" not found',
            id="volume deleted",
        ),
        pytest.param(
            static_only,
            lambda w: w.remove(w.storage.claim("static")),
            'failed to check binding: persistentvolumeclaims "default/static" not found',
            id="claim deleted",
        ),
        pytest.param(
            static_only,
            lambda w: w.put(w.bound_volume(zones=["b"])),
            'pv "pv" node affinity doesn\'t match node "n": no matching NodeSelectorTerms',
            id="volume out of reach",
        ),
        pytest.param(
            static_only,
            lambda w: w.put(w.storage.volume("pv", cls="none", version="5")),
            'ClaimRef got reset for pv "pv"',
            id="volume unbound",
        ),
        pytest.param(
            static_only,
            lambda w: w.put(
                w.bound_volume(labels={ZONE: "x__y"}, zones=(), gcePersistentDisk={"pdName": "d"}),
                w.storage.csi_node("n", "kubernetes.io/gce-pd"),
            ),
            "failed to translate pv to csi: could not translate pv: failed to get region from zones: zone in unexpected "
            "format, expected: {locale}-{region}-{zone}, got: x",
            id="volume cannot be translated",
        ),
        pytest.param(
            dynamic_only,
            lambda w: w.remove(w.storage.claim("dynamic")),
            'failed to check provisioning pvc: persistentvolumeclaims "default/dynamic" not found',
            id="claim to provision deleted",
        ),
        pytest.param(
            dynamic_only,
            lambda w: w.put(w.storage.claim("dynamic", annotations={}, version="7")),
            'selectedNode annotation reset for PVC "dynamic"',
            id="all annotations gone",
        ),
        pytest.param(
            dynamic_only,
            lambda w: w.put(w.storage.claim("dynamic", annotations={"x": "y"}, version="7")),
            'provisioning failed for PVC "dynamic"',
            id="provisioner gave up",
        ),
        pytest.param(
            dynamic_only,
            lambda w: w.put(w.bound_dynamic(), w.made_volume("b")),
            'pv "made" node affinity doesn\'t match node "n": no matching NodeSelectorTerms',
            id="made out of reach",
        ),
    ],
)
def test_what_ends_the_wait(world, prepare, change, text):
    """The pod has to be scheduled anew; the text is upstream's."""
    prepare(world)
    world.at(2, change(world))
    status = world.run()
    assert (status.code, status.reasons) == (Code.ERROR, (f"binding volumes: {text}",))
    assert world.seconds == [1.0, 1.0]


@pytest.mark.parametrize(("timeout_s", "looks"), [(3, 3), (0, 0)])
def test_time_is_up(bench, storage, timeout_s, looks):
    """After the configured time the attempt fails."""
    world = World(bench, storage, timeout_s)
    status = world.run()
    assert (status.code, status.reasons) == (Code.ERROR, (f"binding volumes: {TIMED_OUT}",))
    assert sum(world.seconds) == timeout_s
    assert world.seconds.count(1.0) == looks


@pytest.mark.parametrize(
    ("refused", "written"),
    [
        pytest.param("pv", ["pv"], id="volume"),
        pytest.param("default/dynamic", ["pv", "default/dynamic"], id="claim"),
    ],
)
def test_a_refused_write(world, refused, written):
    """The server's words are the error; what was not written is free at once, what was stays."""
    conflict = "Operation cannot be fulfilled: the object has been modified"
    world.refuse[refused] = conflict
    status = world.run()
    assert (status.code, status.reasons) == (Code.ERROR, (conflict,))
    assert [key for key, _ in world.handle.patched] == written
    caches = world.plugin._caches
    assert SELECTED_NODE not in caches.claims.get("default/dynamic").annotations
    assert (caches.volumes.get("pv").spec.claim_ref is None) is (refused == "pv")
    assert world.seconds == []


def test_pre_bind_on_an_unknown_node(world):
    """A node that was never judged has no decisions to carry out."""
    world.at(1, world.all_bound())
    assert world.run() is None
    status = asyncio.run(world.plugin.pre_bind(world.state, world.pod, "other"))
    assert status.reasons == ('no pod volume found for node "other"',)
    assert asyncio.run(world.plugin.pre_bind(CycleState(), world.pod, "n")) is None
