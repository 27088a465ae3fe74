"""What is kept from one decision to the next changes the time a decision takes and nothing else.

Kept are rankings of equal pods (``cycle.class_cache``), and answers of plugins that read node objects alone
(``cycle.standing``), which serve pods of different sizes, too.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.cycle.class_cache import ClassCache
from scheduler.cycle.select import choose_smallest_name
from scheduler.cycle.standing import StandingAnswers
from scheduler.testing import builders as b
from scheduler.testing.harness import Harness

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
DISK = "disk"
ZONES = "abc"


def _node(rng: random.Random, name: str):
    node = b.node(name).capacity(cpu=rng.choice(("1", "2", "4")), memory="4Gi", pods=rng.choice(("3", "110")))
    node = node.hostname().zone(rng.choice(ZONES)).label("disk", rng.choice(("ssd", "hdd")))
    if rng.random() < 0.3:
        node = node.taint("soft", "", "PreferNoSchedule")
    if rng.random() < 0.2:
        node = node.taint("hard", "", "NoSchedule")
    if rng.random() < 0.3:
        node = node.image("app:1", size_bytes=rng.randrange(10**8, 10**9))
    return node.cordoned() if rng.random() < 0.15 else node


def _classes(rng: random.Random):
    """Return builders of a few kinds of pods; some kinds are coupled to other pods and may not share."""
    plain = b.pod("x").requests(cpu="100m", memory="64Mi").image("app:1")
    return [
        plain,
        plain.requests(cpu="700m").prefers_node(10, b.in_("disk", "ssd")).prefers_node(30, b.in_(ZONE, "a")),
        plain.requests(cpu="500m").node_selector({"disk": "hdd"}),
        plain.toleration("hard", operator="Exists"),
        plain.host_port(8080),
        plain.label("app", "w").pod_anti_affinity(ZONE, {"app": "w"}),
        plain.label("app", "s").spread(ZONE, {"app": "s"}, max_skew=1),
        plain.label("app", "w"),
        *_coupled(plain),
        plain.volume("data", emptyDir={}),
        plain.claim("gone"),  # its PreFilter ends the point, so that those behind it are not asked
    ]


def _coupled(plain):
    """Return kinds of pods that look at whole domains, in every way there is; many fit only some of the nodes."""
    web = plain.label("app", "web")
    return [
        web.pod_anti_affinity(DISK, {"app": "web"}),
        web.pod_affinity(ZONE, {"app": "web"}),
        web.pod_affinity(ZONE, {"app": "web"}, weight=7).pod_anti_affinity(DISK, {"app": "s"}, weight=3),
        web.spread(ZONE, {"app": "web"}, max_skew=2).spread(DISK, {"app": "web"}, when="ScheduleAnyway"),
        web.spread(DISK, {"app": "web"}, when="ScheduleAnyway", nodeTaintsPolicy="Honor"),
        web.spread(ZONE, {"app": "web"}, max_skew=2, minDomains=3).prefers_node(10, b.in_("disk", "ssd")),
        web.spread(HOSTNAME, {"app": "web"}, when="ScheduleAnyway").node_selector({"disk": "hdd"}),
    ]


def _resized(rng: random.Random, pod):
    """Return the pod with amounts of its own, which few others have."""
    return pod.requests(cpu=f"{rng.randrange(1, 900)}m", memory=f"{rng.randrange(1, 900)}Mi")


def _step(rng: random.Random, harnesses, number: int, classes, count: int) -> None:
    """Do the same to all harnesses: mostly a pod of some class, sometimes a change of the cluster."""
    kind = rng.random()
    if kind < 0.8:
        pod = rng.choice(classes).set("metadata.name", f"p{number}")
        pod = (_resized(rng, pod) if rng.random() < 0.4 else pod).obj()
        nodes = [harness.schedule(pod) for harness in harnesses]
        assert nodes[0] == nodes[1] == nodes[2], f"{pod.name}: {nodes}"
        messages = [h.last.status.message if h.last is not None and h.last.status else "" for h in harnesses[:2]]
        assert messages[0] == messages[1]
        _same_scores(harnesses[:2], pod.name)
    elif kind < 0.85:
        victim = f"default/p{rng.randrange(number + 1)}"
        for harness in harnesses:
            if (known := harness.pod(victim)) is not None:
                harness.remove(known)
    else:
        name = f"n{rng.randrange(count + 2)}"
        node = _node(rng, name).resource_version(number + 10).obj()
        removes = rng.random() < 0.2
        for harness in harnesses:
            harness.remove(node) if removes else harness.put(node)


def _same_scores(harnesses, pod: str) -> None:
    """Observers see the same scores, plugin by plugin, whether they were worked out or kept."""
    scores = [h.last.scores for h in harnesses]
    weighted = [None if s is None else list(s.weighted()) for s in scores]
    assert weighted[0] == weighted[1], pod


@given(seed=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_shared_rankings_decide_as_fresh_ones(seed: int) -> None:
    """On random histories of (un)equal pods, deletions and node changes all engines choose the same nodes.

    One of those that share has no observer, as in the daemon: it then takes short cuts.
    """
    rng = random.Random(seed)
    with (
        Harness(choose=choose_smallest_name) as shared,
        Harness(choose=choose_smallest_name) as fresh,
        Harness(choose=choose_smallest_name) as unobserved,
    ):
        unobserved.core.engine.observer = None
        fresh.core.engine.class_cache = ClassCache(max_classes=0)
        fresh.core.engine.standing = StandingAnswers(max_keys=0)
        count = rng.randint(1, 12)
        for i in range(count):
            node = _node(rng, f"n{i}").obj()
            for harness in (shared, fresh, unobserved):
                harness.put(node)
        classes = rng.sample(_classes(rng), rng.randint(1, 4))
        for number in range(40):
            _step(rng, (shared, fresh, unobserved), number, classes, count)


def test_equal_pods_do_share() -> None:
    """The third of several equal plain pods is decided from the ranking that the second one left."""
    with Harness() as cluster:
        for i in range(200):
            cluster.put(b.node(f"n{i}").capacity(cpu="4", memory="8Gi", pods="110").obj())
        for i in range(10):
            assert cluster.schedule(b.pod(f"p{i}").requests(cpu="100m").obj())
        assert cluster.core.engine.class_cache.hits == 8


def test_pods_of_different_sizes_share_what_node_objects_say() -> None:
    """From the third on, by a ranking, but in one attempt of ten, in which every plugin is measured."""
    with Harness() as cluster:
        for i in range(200):
            cluster.put(b.node(f"n{i}").capacity(cpu="4", memory="8Gi", pods="110").obj())
        for i in range(100):
            assert cluster.schedule(b.pod(f"p{i}").requests(cpu=f"{i + 1}m").obj())
        assert cluster.core.engine.class_cache.hits == 0
        assert 70 <= cluster.core.engine.standing.hits <= 98


def test_a_node_of_which_kept_answers_rule_out_the_pod_does_not_set_the_scale() -> None:
    """The one node that is preferred is cordoned, so the others are scaled to the best of them."""
    with Harness(choose=choose_smallest_name) as cluster:
        cluster.core.engine.observer = None  # it would want to hear of the cordoned node
        best = b.node("best").capacity(cpu="4", memory="8Gi", pods="110").label("disk", "ssd").zone("a")
        cluster.put(best.cordoned().obj())
        for i in range(100):
            cluster.put(b.node(f"plain-{i}").capacity(cpu="4", memory="8Gi", pods="110").zone("b").obj())
            busy = b.node(f"busy-{i}").capacity(cpu="4", memory="8Gi", pods="110").zone("b").label("disk", "ssd")
            cluster.put(busy.obj(), b.pod(f"load-{i}").requests(cpu="3", memory="6Gi").on(f"busy-{i}").obj())
        wanted = b.pod("x").prefers_node(10, b.in_("disk", "ssd")).prefers_node(90, b.in_(ZONE, "a"))
        nodes = [
            cluster.schedule(wanted.set("metadata.name", f"p{i}").requests(cpu=f"{i + 1}m", memory=f"{i + 1}Mi").obj())
            for i in range(20)
        ]
        assert {node[:5] for node in nodes} == {"busy-"}
        assert cluster.core.engine.standing.hits > 10


def test_pods_that_repel_their_like_share_what_nodes_alone_say() -> None:
    """Where the last pod went is asked anew for each, how well the nodes suit is not."""
    with Harness() as cluster:
        for i in range(200):
            cluster.put(b.node(f"n{i}").capacity(cpu="4", memory="8Gi", pods="110").hostname().obj())
        base = b.pod("x").label("app", "w").pod_anti_affinity("kubernetes.io/hostname", {"app": "w"})
        nodes = {cluster.schedule(base.set("metadata.name", f"p{i}").obj()) for i in range(10)}
        assert len(nodes) == 10
        assert cluster.core.engine.class_cache.hits == 8


def test_a_node_that_fills_up_changes_the_scale_of_the_others() -> None:
    """Preferences are scaled to the best feasible node, so the next best rise when that one is full."""
    with Harness(choose=choose_smallest_name) as cluster:
        cluster.put(b.node("best").capacity(cpu="4", memory="8Gi", pods="4").zone("a").label("disk", "ssd").obj())
        for i in range(100):
            cluster.put(b.node(f"idle-{i}").capacity(cpu="4", memory="8Gi", pods="110").zone("b").obj())
            busy = b.node(f"busy-{i}").capacity(cpu="4", memory="8Gi", pods="110").zone("b").label("disk", "ssd")
            cluster.put(busy.obj(), b.pod(f"load-{i}").requests(cpu="3", memory="6Gi").on(f"busy-{i}").obj())
        wanted = b.pod("x").requests(cpu="10m", memory="10Mi")
        wanted = wanted.prefers_node(10, b.in_("disk", "ssd")).prefers_node(30, b.in_(ZONE, "a"))
        nodes = [cluster.schedule(wanted.set("metadata.name", f"p{i}").obj()) for i in range(6)]
        assert nodes == ["best"] * 4 + ["busy-0", "busy-0"]
        assert cluster.core.engine.class_cache.hits == 4
