"""The rule of the two forms: what a plugin says of one node and what it says of all nodes is the same."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import Code, CycleState, FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from scheduler.config.args import PodTopologySpreadArgs
from scheduler.config.gates import FeatureGates
from scheduler.config.load import default_configuration
from scheduler.model.meta import Namespace
from scheduler.model.pod import TopologySpreadConstraint
from scheduler.model.workload import Service
from scheduler.plugins import IN_TREE
from scheduler.plugins.node_affinity import NodeAffinity
from scheduler.plugins.node_resources.fit import NodeResourcesFit
from scheduler.plugins.topology_spread import PodTopologySpread
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.store import Stores
from scheduler.testing import FakeClock
from scheduler.testing import builders as b

KEYS = ("zone", "disk", "rank")
VALUES = {"zone": ("a", "b", "c"), "disk": ("ssd", "hdd"), "rank": ("1", "2", "10", "x")}
IMAGES = ("app:1", "registry.example/db", "tool:2", "big:latest")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
NAMESPACES = {"default": {"team": "red"}, "shop": {}}
APPS = ("web", "db")


class _Handle:
    """As much of a Handle as the plugins under test ask for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stores = Stores()
        for name, labels in NAMESPACES.items():
            namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
            self._stores.of(Namespace).put(b.obj(Namespace, namespace))
            service = {"metadata": {"name": "web", "namespace": name}, "spec": {"selector": {"app": "web"}}}
            self._stores.of(Service).put(b.obj(Service, service))
        self.clock = FakeClock()
        self.random = random.Random(1)

    def nodes(self) -> Snapshot:
        return self._snapshot

    def lister(self, kind):
        return self._stores.of(kind)

    def is_enabled(self, feature: str) -> bool:
        return FeatureGates().enabled(feature)

    async def patch(self, obj, changes):
        raise NotImplementedError("there is no API server")

    async def sleep(self, seconds):
        self.clock.advance(seconds)


def _random_node(rng: random.Random, name: str):
    node = b.node(name).capacity(
        {
            "cpu": f"{rng.choice((0, 1500, 1600, 3000, 7999))}m",
            "memory": f"{rng.choice((0, 1024, 2048, 4096))}Mi",
            "pods": str(rng.choice((0, 1, 3, 110, 110, 110))),
            **({"vendor.example/gpu": str(rng.randint(0, 4))} if rng.random() < 0.5 else {}),
        }
    )
    for key in KEYS:
        if rng.random() < 0.7:
            node = node.label(key, rng.choice(VALUES[key]))
    if rng.random() < 0.9:
        node = node.hostname()
    for _ in range(rng.choice((0, 0, 1, 2))):
        node = node.taint(rng.choice(("dedicated", "flaky")), rng.choice(("", "x")), rng.choice(EFFECTS))
    for image in IMAGES:
        if rng.random() < 0.3:
            name_with_tag = image if ":" in image else f"{image}:latest"
            node = node.image(name_with_tag, size_bytes=rng.randrange(10**6, 2 * 10**9))
    for feature in ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"):
        if rng.random() < 0.5:
            node = node.declares(feature)
    return (node.cordoned() if rng.random() < 0.2 else node).obj()


def _random_requirement(rng: random.Random):
    key = rng.choice(KEYS)
    values = rng.sample(VALUES[key], rng.randint(1, 2))
    return rng.choice(
        (
            b.in_(key, *values),
            b.not_in(key, *values),
            b.exists(key),
            b.absent(key),
            b.gt("rank", rng.randint(0, 5)),
            b.lt("rank", rng.randint(0, 5)),
            {"key": "rank", "operator": "Gt", "values": ["word"]},
            b.field_in(f"n{rng.randint(0, 9)}"),
            b.field_not_in(f"n{rng.randint(0, 9)}"),
            b.field_in("n1", "n2"),
        )
    )


def _random_pod(rng: random.Random, name: str):
    pod = b.pod(name)
    if rng.random() < 0.8:
        pod = pod.requests(
            {
                "cpu": rng.choice(("0", "100m", "1500m", "1500m", "9")),
                **({"memory": rng.choice(("0", "1Gi", "3Gi"))} if rng.random() < 0.6 else {}),
                **({"vendor.example/gpu": str(rng.randint(0, 3))} if rng.random() < 0.4 else {}),
            }
        )
    pod = pod.image(rng.choice(IMAGES))
    if rng.random() < 0.3:
        pod = pod.container({"cpu": "50m"}, image=rng.choice(IMAGES))
    if rng.random() < 0.3:
        pod = pod.host_port(rng.choice((80, 81)), protocol=rng.choice(("TCP", "UDP")), ip=rng.choice(("", "10.0.0.1")))
    if rng.random() < 0.3:
        pod = pod.toleration(rng.choice(("dedicated", "")), operator="Exists", effect=rng.choice(("", *EFFECTS)))
    if rng.random() < 0.3:
        pod = pod.node_selector({"zone": rng.choice(VALUES["zone"])})
    if rng.random() < 0.4:
        pod = pod.requires_node(*(_all_of(rng) for _ in range(rng.randint(1, 2))))
    for _ in range(rng.choice((0, 1, 2))):
        pod = pod.prefers_node(rng.randint(1, 100), b.in_("zone", rng.choice(VALUES["zone"])))
    if rng.random() < 0.2:
        pod = pod.init_container({"cpu": "2", "memory": "2Gi"}, image=rng.choice(IMAGES))
    if rng.random() < 0.2:
        pod = pod.volume("image", image={"reference": rng.choice(IMAGES)})
    if rng.random() < 0.1:
        pod = pod.pod_requests(cpu=rng.choice(("1", "3")))
    if rng.random() < 0.8:
        pod = pod.label("app", rng.choice(APPS))
    pod = pod.in_ns(rng.choice(("default", "default", "shop")))
    for _ in range(rng.choice((0, 0, 1, 2))):
        pod = _with_pod_term(rng, pod)
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        pod = _with_spread(rng, pod)
    if rng.random() < 0.1:
        pod = pod.terminating()
    if rng.random() < 0.2:
        pod = pod.set("spec.hostNetwork", True).set("spec.hostUsers", False)
    return pod


def _with_pod_term(rng: random.Random, pod):
    wanted = rng.choice(({}, {"app": "web"}, {"app": "db"}, [b.not_in("app", "web")], None))
    weight = rng.choice((None, 1, 50))
    fields = {}
    if rng.random() < 0.2:
        fields["namespaces"] = [rng.choice(("default", "shop"))]
    if rng.random() < 0.2:
        fields["namespaceSelector"] = rng.choice(
            ({}, b.selector({"team": "red"}), b.selector([b.not_in("team", "red")]))
        )
    add = rng.choice((pod.pod_affinity, pod.pod_anti_affinity))
    return add(rng.choice((*KEYS, "zone", "name")), wanted, weight=weight, **fields)


def _with_spread(rng: random.Random, pod):
    wanted = rng.choice(({"app": "web"}, [b.exists("app")], [b.not_in("app", "db")], {}, None))
    fields = {
        **({"nodeAffinityPolicy": rng.choice(("Honor", "Ignore"))} if rng.random() < 0.4 else {}),
        **({"nodeTaintsPolicy": rng.choice(("Honor", "Ignore"))} if rng.random() < 0.4 else {}),
        **({"matchLabelKeys": ["app"]} if rng.random() < 0.3 else {}),
    }
    when = rng.choice(("DoNotSchedule", "ScheduleAnyway"))
    if when == "DoNotSchedule" and rng.random() < 0.3:
        fields["minDomains"] = rng.randint(1, 5)
    key = rng.choice((*KEYS, "kubernetes.io/hostname"))
    return pod.spread(key, wanted, max_skew=rng.randint(1, 3), when=when, **fields)


def _all_of(rng: random.Random):
    return b.all_of(*(_random_requirement(rng) for _ in range(rng.randint(1, 2))))


def _random_cluster(rng: random.Random) -> Snapshot:
    cache, snapshot = Cache(), Snapshot()
    count = rng.randint(1, 12)
    for i in range(count):
        cache.add_node(_random_node(rng, f"n{i}"))
    for i in range(rng.randint(0, 20)):
        cache.add_pod(_random_pod(rng, f"run-{i}").on(f"n{rng.randrange(count)}").obj())
    cache.update_snapshot(snapshot)
    return snapshot


def _args(rng: random.Random, name: str):
    args = default_configuration().profiles[0].plugin_config.get(name)
    if name == PodTopologySpread.name:
        return _spread_args(rng)
    if name != NodeResourcesFit.name or args is None:
        return args
    import msgspec

    from scheduler.config.args import RequestedToCapacityRatio, ResourceSpec, UtilizationShapePoint

    kind = rng.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    resources = [ResourceSpec("cpu", rng.randint(1, 5)), ResourceSpec("memory", 1)]
    if rng.random() < 0.5:
        resources.append(ResourceSpec("vendor.example/gpu", rng.randint(1, 9)))
    points = (UtilizationShapePoint(10, rng.randint(0, 10)), UtilizationShapePoint(77, rng.randint(0, 10)))
    shape = RequestedToCapacityRatio(points) if kind == "RequestedToCapacityRatio" else None
    strategy = msgspec.structs.replace(
        args.scoring_strategy, type=kind, resources=tuple(resources), requested_to_capacity_ratio=shape
    )
    return msgspec.structs.replace(args, scoring_strategy=strategy)


ABSURD = (0, 1, 2**31, 2**53 - 1, 2**53 + 1, 2**56, 2**56 + 1, 92233720368547758, 2**62, 2**63 - 1)


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
@given(
    capacity=st.sampled_from(ABSURD),
    running=st.lists(st.sampled_from(ABSURD), max_size=3),
    waiting=st.sampled_from(ABSURD),
    other=st.integers(0, 2**63 - 1),
)
@settings(max_examples=150, deadline=None)
def test_absurd_amounts(strategy: str, capacity: int, running: list[int], waiting: int, other: int) -> None:
    """However large the amounts: the forms agree, the filter is exact, and scores lie in 0..100."""
    from scheduler.config.args import (
        NodeResourcesFitArgs,
        RequestedToCapacityRatio,
        ResourceSpec,
        ScoringStrategy,
        UtilizationShapePoint,
    )

    gpu = "vendor.example/gpu"
    cache, snapshot = Cache(), Snapshot()
    cache.add_node(b.node("n0").capacity({"memory": capacity, gpu: capacity, "pods": "110"}).obj())
    cache.add_node(b.node("n1").capacity({"memory": other, gpu: "4", "cpu": "4", "pods": "110"}).obj())
    for i, amount in enumerate(running):
        cache.add_pod(b.pod(f"run-{i}").requests({"memory": amount, gpu: amount}).on("n0").obj())
    cache.update_snapshot(snapshot)
    points = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 1))
    resources = (ResourceSpec("memory", 100), ResourceSpec(gpu, 100), ResourceSpec("cpu", 1))
    scoring = ScoringStrategy(strategy, resources, RequestedToCapacityRatio(points))
    pod = b.pod("new").requests({"memory": waiting, gpu: waiting}).obj()
    for name, args in (
        ("NodeResourcesFit", NodeResourcesFitArgs(ignored_resources=(gpu,), scoring_strategy=scoring)),
        ("NodeResourcesBalancedAllocation", None),
    ):
        plugin, state = IN_TREE[name](args, _Handle(snapshot)), CycleState()
        if isinstance(plugin, FilterPlugin):
            plugin.pre_filter(state, pod, snapshot)
            _check_filter(plugin, state, pod, snapshot)
            fits = not waiting or sum(running) + waiting <= capacity
            assert bool(plugin.filter_all(state, pod, snapshot).ok[0]) == fits
        if plugin.pre_score(state, pod, snapshot) is None:
            scores = plugin.score_all(state, pod, snapshot).tolist()
            assert scores == [plugin.score(state, pod, info) for info in snapshot.infos]
            assert all(0 <= score <= 100 for score in scores)


@given(
    capacity=st.integers(1, 2**56),
    used=st.integers(0, 2**57),
    amount=st.integers(0, 2**57),
)
def test_bounded_amounts_change_no_score(capacity: int, used: int, amount: int) -> None:
    """Upstream's formulas on the true amounts give what the strategies give on the bounded ones."""
    from scheduler.plugins.node_resources.bounded import bounded
    from scheduler.plugins.node_resources.scoring import (
        LeastAllocated,
        MostAllocated,
        RequestedToCapacityRatio,
        Usage,
    )

    requested = used + amount
    usage = Usage(1, *bounded(capacity, used, amount)[::2])
    least = 0 if requested > capacity else (capacity - requested) * 100 // capacity
    most = min(requested, capacity) * 100 // capacity
    assert LeastAllocated().score([usage]) == least
    assert MostAllocated().score([usage]) == most
    assert RequestedToCapacityRatio(((0, 0), (100, 100))).score([usage]) == most


def _spread_args(rng: random.Random) -> PodTopologySpreadArgs:
    if rng.random() < 0.5:
        return PodTopologySpreadArgs()
    constraints = [
        TopologySpreadConstraint(rng.randint(1, 3), key, rng.choice(("DoNotSchedule", "ScheduleAnyway")))
        for key in rng.sample((*KEYS, "kubernetes.io/hostname"), rng.randint(1, 2))
    ]
    return PodTopologySpreadArgs(tuple(constraints), "List")


TWO_FORMS = sorted(name for name in IN_TREE if name not in {"DefaultBinder", "PrioritySort", "SchedulingGates"})


@pytest.mark.parametrize("name", TWO_FORMS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_both_forms_agree(name: str, seed: int) -> None:
    """For every plugin, random cluster and random pod: filter == filter_all and score == score_all, also on subsets."""
    rng = random.Random(seed)
    snapshot = _random_cluster(rng)
    plugin = IN_TREE[name](_args(rng, name), _Handle(snapshot))
    pod = _random_pod(rng, "new").obj()
    state = CycleState()
    rows = np.array(sorted(rng.sample(range(len(snapshot)), rng.randint(1, len(snapshot)))), np.intp)
    views = (snapshot, snapshot.take(rows))
    if isinstance(plugin, PreFilterPlugin):
        _, status = plugin.pre_filter(state, pod, snapshot)
        if status is not None and status.code is Code.SKIP:
            return _check_scores(plugin, state, pod, views)
    if isinstance(plugin, FilterPlugin):
        for view in views:
            _check_filter(plugin, state, pod, view)
    return _check_scores(plugin, state, pod, views)


def _check_filter(plugin, state, pod, view) -> None:
    single = [plugin.filter(state, pod, info) for info in view.infos]
    verdicts = plugin.filter_all(state, pod, view)
    assert [s is None for s in single] == verdicts.ok.tolist()
    failed = np.flatnonzero(~verdicts.ok)
    explained = {row: status for status, rows in verdicts.explain(failed) for row in rows.tolist()}
    assert explained == {row: single[row] for row in failed.tolist()}


def _check_scores(plugin, state, pod, views) -> None:
    if not isinstance(plugin, ScorePlugin):
        return
    for view in views:
        if isinstance(plugin, PreScorePlugin):
            status = plugin.pre_score(state, pod, view)
            if status is not None:
                continue
        assert plugin.score_all(state, pod, view).tolist() == [plugin.score(state, pod, info) for info in view.infos]


def test_added_affinity_has_both_forms() -> None:
    """The profile's added affinity rejects with its own reason in both forms."""
    cache, snapshot = Cache(), Snapshot()
    for name, zone in (("n0", "a"), ("n1", "b"), ("n2", "c")):
        cache.add_node(b.node(name).label("zone", zone).obj())
    cache.update_snapshot(snapshot)
    added = b.pod("x").requires_node(b.in_("zone", "a", "b")).obj().spec.affinity.node_affinity.required
    plugin = NodeAffinity(added, ())
    pod = b.pod("new").node_selector({"zone": "b"}).obj()
    state = CycleState()
    plugin.pre_filter(state, pod, snapshot)
    _check_filter(plugin, state, pod, snapshot)
    assert plugin.filter_all(state, pod, snapshot).ok.tolist() == [False, True, False]
