"""Laws of the cache: whatever happened, kept sums equal recomputed ones and kept columns equal fresh ones.

A hypothesis state machine drives a cache with nodes and pods that come, change, move and go in any order, keeps a plain
model beside it, and compares at every snapshot: the incremental snapshot with one made from scratch, every sum with
the sum over the pods, and the cache with the model through the comparer.
"""

from collections import Counter

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from scheduler.state.cache.cache import Cache
from scheduler.state.cache.comparer import compare
from scheduler.state.cache.node_info import NodeInfo
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node, pod

NODES = ("n0", "n1", "n2")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "example.com/gpu", "example.com/fpga")
LABELS = ("disk", "topology.kubernetes.io/zone", "unheard")
IMAGES = ("app", "db")

some_node = st.sampled_from(NODES)


@st.composite
def nodes(draw, name=None):
    made = node(draw(some_node) if name is None else name)
    made = made.capacity({r: draw(st.integers(0, 3)) for r in draw(st.sets(st.sampled_from(RESOURCES)))})
    if zone := draw(st.sampled_from(("", "a", "b"))):
        made = made.zone(zone)
    if disk := draw(st.sampled_from(("", "ssd", "hdd"))):
        made = made.label("disk", disk)
    for key in draw(st.sets(st.sampled_from("xy"))):
        made = made.taint(key)
    for image in draw(st.sets(st.sampled_from(IMAGES))):
        made = made.image(image, size_bytes=draw(st.integers(1, 3)))
    return (made.cordoned() if draw(st.booleans()) else made).obj()


@st.composite
def pod_shapes(draw):
    """A pod without name, uid and node."""
    made = pod().priority(draw(st.integers(-1, 1)))
    made = made.requests(
        {r: draw(st.integers(0, 3)) for r in draw(st.sets(st.sampled_from(RESOURCES[:3] + RESOURCES[4:])))}
    )
    for port in draw(st.sets(st.sampled_from((80, 81)))):
        made = made.host_port(port)
    for claim in draw(st.lists(st.sampled_from("xyz"), max_size=2)):
        made = made.claim(claim)
    if draw(st.booleans()):
        made = made.pod_affinity("zone", {"a": "b"}, weight=1)
    if draw(st.booleans()):
        made = made.pod_anti_affinity("zone", {"a": "b"})
    return made


def placed(shape, number, node_name):
    return shape.set("metadata.name", f"p{number}").uid(f"uid-{number}").on(node_name).obj()


class CacheMachine(RuleBasedStateMachine):
    """Drives a cache; ``snapshot`` lives through the whole history, some columns are asked for early."""

    assumed = Bundle("assumed")
    added = Bundle("added")

    def __init__(self):
        super().__init__()
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.nodes = {}
        self.pods = {}
        self.number = 0
        self.zones_at_rest = True  # no node changed its zone since the order was last read
        self.names_changed = False
        self.last_seen = {}  # name → (generation, snapshot.generation) at the last comparison

    # --- nodes ---

    @rule(made=nodes())
    def put_node(self, made):
        old = self.nodes.get(made.name)
        self.names_changed |= old is None
        self.zones_at_rest &= old is None or old.zone_key == made.zone_key
        (self.cache.add_node if old is None else self.cache.update_node)(made)
        self.nodes[made.name] = made

    @precondition(lambda self: self.nodes)
    @rule(data=st.data(), look_before=st.booleans(), look_after=st.booleans())
    def remove_node(self, data, look_before, look_after):
        """The interesting order is often snapshot, removal, snapshot; leave it less to chance."""
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        if look_before:
            self.take_snapshot()
        self.cache.remove_node(name)
        del self.nodes[name]
        self.names_changed = True
        if look_after:
            self.take_snapshot()

    # --- pods ---

    def _keep(self, made):
        self.pods[made.uid] = made
        return made.uid

    @rule(target=assumed, shape=pod_shapes(), name=some_node)
    def assume(self, shape, name):
        self.number += 1
        made = placed(shape, self.number, name)
        self.cache.assume_pod(made)
        assert self.cache.is_assumed(made.uid)
        return self._keep(made)

    @rule(target=added, shape=pod_shapes(), name=some_node)
    def add(self, shape, name):
        self.number += 1
        made = placed(shape, self.number, name)
        self.cache.add_pod(made)
        return self._keep(made)

    @rule(uid=assumed)
    def finish_binding(self, uid):
        self.cache.finish_binding(self.pods[uid], 0.0)
        assert self.cache.expire(1e12) == []

    @rule(target=added, uid=consumes(assumed), shape=pod_shapes(), name=some_node)
    def confirm(self, uid, shape, name):
        made = placed(shape, uid.removeprefix("uid-"), name)
        self.cache.add_pod(made)
        assert not self.cache.is_assumed(uid)
        return self._keep(made)

    @rule(uid=consumes(assumed))
    def forget(self, uid):
        assert self.cache.forget_pod(self.pods.pop(uid))
        assert not self.cache.is_assumed(uid)

    @rule(uid=added, shape=pod_shapes())
    def update(self, uid, shape):
        old = self.pods[uid]
        made = placed(shape, uid.removeprefix("uid-"), old.node_name)
        self.cache.update_pod(old, made)
        self._keep(made)

    @rule(uid=consumes(added))
    def remove(self, uid):
        self.cache.remove_pod(self.pods.pop(uid))

    @rule(uid=consumes(assumed))
    def remove_assumed(self, uid):
        self.cache.remove_pod(self.pods.pop(uid))

    # --- reading ---

    @rule(resource=st.sampled_from(RESOURCES), label=st.sampled_from(LABELS), image=st.sampled_from(IMAGES))
    def ask_early(self, resource, label, image):
        """Columns made now must follow from here on."""
        self.snapshot.allocatable(resource)
        self.snapshot.requested(resource)
        self.snapshot.non_zero_requested(resource)
        self.snapshot.label(label)
        self.snapshot.image(image)

    @rule()
    def take_snapshot(self):
        before = self.snapshot.generation
        self.cache.update_snapshot(self.snapshot)
        fresh = Snapshot()
        self.cache.update_snapshot(fresh)

        self._check_order(fresh)
        assert facts(self.snapshot) == facts(fresh)
        assert facts(self.snapshot) == expected_facts(self.nodes, self.pods)
        assert lists(self.snapshot) == lists(fresh)
        assert lists(self.snapshot).items() >= expected_lists(self.nodes, self.pods).items()
        self._check_changed_rows(before)
        self._check_images()
        self._check_subset()

    def _check_order(self, fresh):
        assert set(self.snapshot.names) == set(self.nodes)
        assert [self.snapshot.row(name) for name in self.snapshot.names] == list(range(len(self.nodes)))
        self.zones_at_rest |= self.names_changed
        if self.zones_at_rest:
            assert self.snapshot.names == fresh.names
        self.names_changed = False

    def _check_changed_rows(self, before):
        rows = self.snapshot.changes_since(before)
        now = {name: self.cache.get_node(name).generation for name in self.nodes}
        if rows is not None:
            assert set(now) == set(self.last_seen)
            changed = {name for name, generation in now.items() if generation != self.last_seen[name]}
            assert {self.snapshot.names[row] for row in rows} == changed
            assert len(changed) == len(rows)
        self.last_seen = now

    def _check_images(self):
        for image in IMAGES:
            holders = {n for n, made in self.nodes.items() if any(image in i.names for i in made.status.images)}
            found = self.snapshot.image(image)
            assert (found[1].num_nodes if found else 0) == len(holders)
            assert all(self.cache.get_node(n).images[image] is found[1] for n in holders)

    def _check_subset(self):
        rows = np.flatnonzero(np.arange(len(self.snapshot)) % 2 == 0)[::-1]
        view = self.snapshot.take(rows)
        whole = facts(self.snapshot)
        assert facts(view) == {name: whole[name] for name in view.names}
        assert [view.row(name) for name in view.names] == list(range(len(view)))

    @invariant()
    def sums_equal_recomputation(self):
        for name, info in self.cache.dump().nodes.items():
            again = NodeInfo(name)
            for made in info.pods:
                assert made.node_name == name
                again.add_pod(made)
            assert sums(info) == sums(again) == sums(info.clone())

    @invariant()
    def comparer_finds_nothing(self):
        found = compare(self.cache, nodes=self.nodes.values(), pods=self.pods.values(), pending=())
        placeholders = {made.node_name for made in self.pods.values()} - set(self.nodes)
        assert found.nodes.missed == ()
        assert set(found.nodes.redundant) == placeholders
        assert not found.pods
        assert self.cache.num_pods == len(self.pods)
        assert all(self.cache.get_pod(uid) is made for uid, made in self.pods.items())


def sums(info):
    return (
        info.requested,
        info.non_zero_requested,
        info.used_ports,
        info.pvc_ref_counts,
        info.priorities,
        {p.uid for p in info.pods},
        {p.uid for p in info.pods_with_affinity},
        {p.uid for p in info.pods_with_required_anti_affinity},
    )


def facts(view):
    """All columns of a view, turned into name → facts, so that order plays no part."""
    columns = {
        **{("allocatable", r): view.allocatable(r).tolist() for r in RESOURCES},
        **{("requested", r): view.requested(r).tolist() for r in RESOURCES},
        **{("non_zero", r): view.non_zero_requested(r).tolist() for r in RESOURCES},
        **{("label", key): decoded(view.label(key)) for key in LABELS},
        "taints": [tuple(t.key for t in taints) for taints in decoded(view.taints)],
        "num_pods": view.num_pods.tolist(),
        "lowest priority": view.lowest_priority.tolist(),
        "unschedulable": view.unschedulable.tolist(),
        "ports": flags(len(view), view.rows_using_host_ports()),
        **{
            ("image", name): flags(len(view), found[0].tolist() if (found := view.image(name)) else ())
            for name in IMAGES
        },
    }
    return {name: {key: column[row] for key, column in columns.items()} for row, name in enumerate(view.names)}


def expected_facts(nodes_by_name, pods):
    """The same, from the model alone."""
    expected = {}
    for name, made in nodes_by_name.items():
        here = [p for p in pods.values() if p.node_name == name]
        requested, non_zero = Counter(), Counter()
        for p in here:
            requested.update(p.accounted_requests)
            non_zero.update(p.accounted_non_zero_requests)
        non_zero = {r: non_zero[r] if r in ("cpu", "memory") else requested[r] for r in RESOURCES}
        expected[name] = {
            **{("allocatable", r): made.allocatable.get(r, 0) for r in RESOURCES},
            **{("requested", r): requested[r] for r in RESOURCES},
            **{("non_zero", r): non_zero[r] for r in RESOURCES},
            **{("label", key): made.labels.get(key) for key in LABELS},
            "taints": tuple(t.key for t in made.spec.taints),
            "num_pods": len(here),
            "lowest priority": min((p.priority for p in here), default=2**31),
            "unschedulable": made.spec.unschedulable,
            "ports": any(p.host_ports for p in here),
            **{("image", i): any(i in image.names for image in made.status.images) for i in IMAGES},
        }
    return expected


def expected_lists(nodes_by_name, pods):
    """Some of the same, from the model alone."""
    here = [p for p in pods.values() if p.node_name in nodes_by_name]
    return {
        "affinity": {p.node_name for p in here if p.has_affinity},
        "anti-affinity": {p.node_name for p in here if p.has_required_anti_affinity},
        "ports": {p.node_name for p in here if p.host_ports},
        "claims": {f"default/{v.persistent_volume_claim.claim_name}" for p in here for v in p.spec.volumes},
    }


def decoded(column):
    return [column.values[code] if code >= 0 else None for code in column.codes.tolist()]


def flags(size, rows):
    return [row in set(rows) for row in range(size)]


def lists(snapshot):
    named = {
        "affinity": snapshot.rows_with_affinity,
        "anti-affinity": snapshot.rows_with_required_anti_affinity,
        "ports": snapshot.rows_using_host_ports(),
    }
    assert all(0 <= row < len(snapshot) for rows in named.values() for row in rows)
    return {
        **{key: {snapshot.names[row] for row in rows} for key, rows in named.items()},
        "infos": {name: id(info) for name, info in zip(snapshot.names, snapshot.infos, strict=True)},
        "claims": set(snapshot.used_claims),
        "generations": dict(zip(snapshot.names, snapshot.generations.tolist(), strict=True)),
    }


TestCache = CacheMachine.TestCase
TestCache.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
