"""The index of what waiting pods wait for changes nothing but the price: every pod goes where it went without it.

The in-tree plugins' hints are registered twice: as they are, and without their indexes, so that each is asked about
every pod that its plugin rejected. Two queues live through the same random history.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import ActionType, ClusterEvent, EventRegistration, EventResource, QueueingHint
from scheduler.api.events import IndexedRegistration
from scheduler.config.args import NodeAffinityArgs, PodTopologySpreadArgs
from scheduler.config.gates import FeatureGates
from scheduler.config.load import default_configuration
from scheduler.model.meta import Namespace
from scheduler.model.pod import NodeAffinity, TopologySpreadConstraint
from scheduler.model.workload import Service
from scheduler.plugins import IN_TREE
from scheduler.state.changes import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    node_events,
    pod_events,
)
from scheduler.state.queue.profile import QueueProfile
from scheduler.state.queue.queue import SchedulingQueue
from scheduler.state.store import Stores
from scheduler.testing import FakeClock
from scheduler.testing import builders as b

PLUGINS = (
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodePorts",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeDeclaredFeatures",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
)
WITHOUT_INDEX = "NodeResourcesFit"
PROFILES = ("default-scheduler", "second")
NAMESPACES = ("default", "shop", "ghost")  # nobody has heard of the last
TEAMS = ("red", "blue", "")
APPS = ("web", "db", "cache")
TOPOLOGY = ("zone", "host", "rack")
SELECTORS = (
    None,
    {},
    {"app": "web"},
    {"app": "db", "tier": "x"},
    {"matchLabels": {"app": "web"}, "matchExpressions": [b.not_in("tier", "x")]},
    [b.in_("app", "web", "cache")],
    [b.in_("app", *(f"v{i}" for i in range(20)), "db")],
    [b.exists("tier")],
    [b.absent("tier")],
    [b.not_in("app", "web")],
    [b.absent("app"), b.in_("tier", "x")],
    [{"key": "app", "operator": "Sometimes", "values": ["web"]}],
)
CLAIMS = ("claim-1", "claim-2", "waiting-scratch")
OF_OBJECTS = {
    "StorageClass": EventResource.STORAGE_CLASS,
    "CSINode": EventResource.CSI_NODE,
    "CSIStorageCapacity": EventResource.CSI_STORAGE_CAPACITY,
    "CSIDriver": EventResource.CSI_DRIVER,
    "PersistentVolume": EventResource.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": EventResource.PERSISTENT_VOLUME_CLAIM,
}
NODE_TERMS = (
    b.in_("zone", "a"),
    b.in_("rack", "1", "2"),
    b.not_in("zone", "a"),
    b.exists("rack"),
    b.absent("rack"),
    b.gt("rack", 1),
    b.lt("rack", 2),
    b.field_in("n1"),
    b.field_not_in("n1"),
    b.all_of(b.in_("zone", "a", "b"), b.absent("rack")),
    b.all_of(b.field_in("n1", "n2"), b.in_("zone", "b")),
    b.all_of(b.in_("zone", "a"), b.gt("rack", "many")),
    {"matchFields": [b.in_("metadata.namespace", "")]},
    {},
)


class Handle:
    """As much of a Handle as the plugins ask for."""

    def __init__(self):
        self.stores = Stores()
        self.clock = FakeClock()
        self.random = random.Random(0)
        self.team("default", "red")
        self.team("shop", "")
        self.service("default", {"app": "web"})

    def team(self, name, team):
        metadata = {"name": name, "labels": {"team": team} if team else {}}
        self.stores.of(Namespace).put(b.obj(Namespace, {"kind": "Namespace", "apiVersion": "v1", "metadata": metadata}))

    def service(self, namespace, wanted):
        service = {"metadata": {"name": "one", "namespace": namespace}, "spec": {"selector": wanted}}
        self.stores.of(Service).put(b.obj(Service, service))

    def lister(self, kind):
        return self.stores.of(kind)

    async def patch(self, obj, changes):
        raise NotImplementedError("there is no API server")

    async def sleep(self, seconds):
        raise NotImplementedError("nothing waits")

    def is_enabled(self, feature):
        return FeatureGates().enabled(feature)


def plugins_of(handle, *, is_second):
    """Make a profile's plugins; the second profile has rules for pods that have none."""
    args = {name: default_configuration().profiles[0].plugin_config.get(name) for name in (*PLUGINS, WITHOUT_INDEX)}
    if is_second:
        hard = TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule")
        args["PodTopologySpread"] = PodTopologySpreadArgs(default_constraints=(hard,), defaulting_type="List")
        required = b.pod().requires_node(b.exists("zone")).obj().spec.affinity.node_affinity.required
        args["NodeAffinity"] = NodeAffinityArgs(added_affinity=NodeAffinity(required=required))
    return {name: IN_TREE[name](given, handle) for name, given in args.items()}


def registrations_of(plugins):
    return [(name, registration) for name, plugin in plugins.items() for registration in plugin.events()]


def without_indexes(registrations):
    return [(name, EventRegistration(known.event, known.hint)) for name, known in registrations]


# --- random things ----------------------------------------------------------------------------------------------------


def random_labels(rng):
    labels = {}
    if rng.random() < 0.8:
        labels["app"] = rng.choice(APPS)
    if rng.random() < 0.4:
        labels["tier"] = rng.choice("xy")
    return labels


def random_pod(rng, name):
    made = b.pod(name).uid(f"uid-{name}").in_ns(rng.choice(NAMESPACES)).labels(random_labels(rng))
    return made.scheduler(rng.choice(PROFILES))


def with_pod_terms(rng, made):
    for _ in range(rng.choice((1, 1, 2, 3))):
        fields = {}
        if rng.random() < 0.3:
            fields["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
        if rng.random() < 0.4:
            wanted = rng.choice(({}, {"team": "red"}, [b.exists("team")], [b.not_in("team", "red")]))
            fields["namespaceSelector"] = b.selector(wanted)
        add = rng.choice((made.pod_affinity, made.pod_anti_affinity))
        made = add(rng.choice(TOPOLOGY), rng.choice(SELECTORS), weight=rng.choice((None, None, 5)), **fields)
    return made


def random_waiting(rng, name, *, instead_of=None):
    made = random_pod(rng, name)
    if instead_of is not None:
        made = made.in_ns(instead_of.namespace).scheduler(instead_of.spec.scheduler_name)
    if rng.random() < 0.6:
        made = with_pod_terms(rng, made)
    for _ in range(rng.choice((0, 1, 1, 2))):
        when = rng.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        more = {"matchLabelKeys": ["tier"]} if rng.random() < 0.3 else {}
        if rng.random() < 0.3:
            more["nodeTaintsPolicy"] = "Honor"
        made = made.spread(rng.choice(TOPOLOGY), rng.choice(SELECTORS), when=when, **more)
    if rng.random() < 0.3:
        made = made.node_selector(zone=rng.choice("ab"))
    for _ in range(rng.choice((0, 1, 1, 2))):
        made = made.requires_node(rng.choice(NODE_TERMS))
    return with_volumes_and_ports(rng, made).obj()


def with_volumes_and_ports(rng, made):
    for _ in range(rng.choice((0, 0, 1, 2))):
        made = made.host_port(
            rng.choice((80, 443)), protocol=rng.choice(("TCP", "UDP")), ip=rng.choice(("", "10.0.0.1"))
        )
    for claim in rng.sample(CLAIMS, rng.choice((0, 0, 1, 2))):
        made = made.claim(claim, volume=claim)
    if rng.random() < 0.2:
        made = made.volume("scratch", {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    if rng.random() < 0.3:
        made = made.volume("disk", {"gcePersistentDisk": {"pdName": rng.choice("de"), "readOnly": rng.random() < 0.3}})
    if rng.random() < 0.2:
        made = made.set("spec.hostNetwork", True).set("spec.hostUsers", False)
    return made


def random_other(rng, name):
    made = with_volumes_and_ports(rng, random_pod(rng, name))
    if rng.random() < 0.4:
        made = with_pod_terms(rng, made)
    where = rng.random()
    return made.on("n1").obj() if where < 0.7 else made.nominated("n1").obj() if where < 0.85 else made.obj()


def relabelled(rng, known):
    made = b.pod(known.name).uid(known.uid).in_ns(known.namespace).labels(random_labels(rng))
    made = made.on(known.node_name) if known.node_name else made
    made = made.set("spec.hostUsers", False) if rng.random() < 0.2 else made
    return (made.toleration("gpu", operator="Exists") if rng.random() < 0.3 else made).obj()


def random_node(rng, name):
    made = b.node(name)
    for key in TOPOLOGY:
        if rng.random() < 0.7:
            made = made.label(key, rng.choice("ab" if key == "zone" else "123"))
    made = made.cordoned() if rng.random() < 0.3 else made
    made = made.declares(rng.choice(("one", "another"))) if rng.random() < 0.3 else made
    return (made.taint("gpu") if rng.random() < 0.3 else made).obj()


def random_object(rng, kind):
    """Return one of the kinds that volumes are made of, with what some hint looks at."""
    meta = {"name": rng.choice(CLAIMS), "uid": "u"}
    match kind:
        case "PersistentVolumeClaim":
            return b.obj(kind, {"metadata": {**meta, "namespace": rng.choice(NAMESPACES)}, "spec": {}})
        case "PersistentVolume":
            labels = {"topology.kubernetes.io/zone": rng.choice("ab")} if rng.random() < 0.7 else {}
            return b.obj(kind, {"metadata": {**meta, "labels": labels}, "spec": {}})
        case "StorageClass":
            mode = rng.choice(("WaitForFirstConsumer", "Immediate"))
            topologies = [{"matchLabelExpressions": [{"key": "zone", "values": [rng.choice("ab")]}]}]
            fields = {"volumeBindingMode": mode, "allowedTopologies": topologies if rng.random() < 0.5 else []}
            return b.obj(kind, {"metadata": meta, "provisioner": "csi", **fields})
        case "CSINode":
            driver = {"name": "csi", "nodeID": "n", "allocatable": {"count": rng.randint(1, 3)}}
            migrated = {"storage.alpha.kubernetes.io/migrated-plugins": rng.choice(("", "kubernetes.io/gce-pd"))}
            return b.obj(kind, {"metadata": {**meta, "annotations": migrated}, "spec": {"drivers": [driver]}})
        case "CSIStorageCapacity":
            metadata = {**meta, "namespace": "default"}
            return b.obj(kind, {"metadata": metadata, "storageClassName": "c", "capacity": rng.choice(("1Gi", "2Gi"))})
        case _:
            return b.obj("CSIDriver", {"metadata": meta, "spec": {"storageCapacity": rng.random() < 0.5}})


def object_happening(rng):
    kind = rng.choice(tuple(OF_OBJECTS))
    action, old, new = rng.choice(((ActionType.ADD, 0, 1), (ActionType.UPDATE, 1, 1), (ActionType.DELETE, 1, 0)))
    made = [random_object(rng, kind) if there else None for there in (old, new)]
    return (ClusterEvent(OF_OBJECTS[kind], action), *made)


def random_happenings(rng, waiting):
    """Return (event, old, new) of one thing that happened; several events may come of it."""
    pods, nodes = ("pod came", "pod went", "pod changed", "self changed"), ("node came", "node went", "node changed")
    kind = rng.choice((*pods, *nodes, "object", "object"))
    if kind == "object":
        return [object_happening(rng)]
    if kind == "pod came":
        return [(ASSIGNED_POD_ADD, None, random_other(rng, "other"))]
    if kind == "pod went":
        return [(ASSIGNED_POD_DELETE, random_other(rng, "other"), None)]
    if kind in ("pod changed", "self changed"):
        old = rng.choice(waiting) if kind == "self changed" and waiting else random_other(rng, "other")
        new = relabelled(rng, old)
        return [(event, old, new) for event in pod_events(old, new)]
    if kind == "node came":
        return [(NODE_ADD, None, random_node(rng, rng.choice(("n1", "n2"))))]
    if kind == "node went":
        return [(NODE_DELETE, random_node(rng, "n1"), None)]
    before, after = random_node(rng, "n1"), random_node(rng, "n1")
    return [(event, before, after) for event in node_events(before, after)]


# --- laws -------------------------------------------------------------------------------------------------------------


def says_queue(hint, *args):
    try:
        return hint(*args) is not QueueingHint.SKIP
    except Exception:  # noqa: BLE001  the queue takes a hint's bug for Queue
        return True


def finds(index, pod, old, new):
    wanted, offered = index.wanted(pod), index.offered(old, new)
    if wanted is None or offered is None:
        return True
    wanted = set(wanted)
    return any((where, what) in wanted for where, whats in offered for what in whats)


@given(seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=600)
def test_an_index_finds_every_pod_that_its_hint_would_queue(seed):
    """The contract of ``HintIndex``, hint by hint."""
    rng = random.Random(seed)
    handle = Handle()
    registrations = registrations_of(plugins_of(handle, is_second=rng.random() < 0.5))
    indexed = [registration for _, registration in registrations if isinstance(registration, IndexedRegistration)]
    for _ in range(8):
        handle.team(rng.choice(("default", "shop")), rng.choice(TEAMS))
        waiting = random_waiting(rng, "waiting")
        for event, old, new in random_happenings(rng, [waiting]):
            for each in indexed:
                if each.event.matches(event) and says_queue(each.hint, waiting, old, new):
                    assert finds(each.index, waiting, old, new), (each, event, waiting, old, new)


class Twins:
    """Two queues that differ in nothing but the indexes."""

    def __init__(self):
        self.handle = Handle()
        self.clock = FakeClock()
        self.queues = []
        for strip in (list, without_indexes):
            self.queues.append(
                SchedulingQueue(
                    clock=self.clock,
                    sort_key=lambda info: (-info.pod.priority, info.timestamp_s),
                    profiles=self.profiles(strip),
                    initial_backoff_s=1.0,
                )
            )

    def profiles(self, strip, names=PROFILES):
        made = {name: plugins_of(self.handle, is_second=name == "second") for name in names}
        return {name: QueueProfile(registrations=strip(registrations_of(made[name]))) for name in names}

    def each(self, act):
        one, other = (act(queue) for queue in self.queues)
        assert one == other
        return one

    def fail(self, pod, rejectors, pending):
        self.clock.advance(0.01)  # no two pods failed at the same time, or their order would be anybody's

        def act(queue):
            info = queue.pop_specific_pod(pod)
            if info is None:
                return False
            return self.come_back(queue, info, rejectors, pending)

        return self.each(act)

    @staticmethod
    def come_back(queue, info, rejectors, pending):
        info.unschedulable_plugins, info.pending_plugins, info.gating_plugin = set(rejectors), set(pending), ""
        return queue.add_unschedulable_if_not_present(info, queue.scheduling_cycle)


@given(seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=100)
def test_every_pod_goes_where_it_went_without_indexes(seed):
    """After any history, events during flights, changed pods, namespaces and profiles included."""
    rng = random.Random(seed)
    twins = Twins()
    pods = {}
    rejected_by = (*PLUGINS, WITHOUT_INDEX)

    def rejectors():
        some = rng.sample(rejected_by, rng.choice((1, 1, 2)))
        return some, some[:1] if rng.random() < 0.2 else ()

    def flight(pod, happenings):
        why = rejectors()
        twins.clock.advance(0.01)

        def act(queue):
            info = queue.pop_specific_pod(pod)
            for event, old, new in happenings:
                queue.move_all_to_active_or_backoff_queue(event, old, new)
            return info is not None and twins.come_back(queue, info, *why)

        twins.each(act)

    for i in range(12):
        pod = pods[f"p{i}"] = random_waiting(rng, f"p{i}")
        twins.each(lambda queue, pod=pod: queue.add(pod))
        twins.fail(pod, *rejectors())
    for _ in range(25):
        pod = pods[rng.choice(sorted(pods))]
        what = rng.random()
        if what < 0.6:
            for event, old, new in random_happenings(rng, list(pods.values())):
                twins.each(lambda queue, e=event, o=old, n=new: queue.move_all_to_active_or_backoff_queue(e, o, n))
        elif what < 0.75:
            flight(pod, random_happenings(rng, list(pods.values())))
        elif what < 0.85:
            changed = pods[pod.name] = random_waiting(rng, pod.name, instead_of=pod)
            twins.each(lambda queue, o=pod, n=changed: queue.update(o, n))
        elif what < 0.9:
            twins.handle.team(rng.choice(("default", "shop")), rng.choice(TEAMS))
            twins.handle.service(rng.choice(("default", "shop")), rng.choice(({"app": "web"}, {"tier": "x"})))
        elif what < 0.93:
            twins.clock.advance(rng.choice((1, 3)))
            twins.each(lambda queue: queue.run(twins.clock.now()))
        elif what < 0.95:
            names = rng.choice((PROFILES, PROFILES[:1]))
            for queue, strip in zip(twins.queues, (list, without_indexes), strict=True):
                queue.set_profiles(twins.profiles(strip, names), ())
        else:
            twins.fail(pod, *rejectors())
        assert twins.each(lambda queue: {key: queue.place_of(p.pod_key) for key, p in pods.items()})
    twins.each(lambda queue: [info.pod.name for info in iter(queue.pop, None)])


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_plugins_have_indexes(plugin):
    """Or the laws above would say nothing."""
    registrations = registrations_of(plugins_of(Handle(), is_second=False))
    assert any(name == plugin and isinstance(known, IndexedRegistration) for name, known in registrations)
