"""Laws of InterPodAffinity: it says what a walk over all pods says, and a dry run says what the changed cluster says."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import Code, CycleState
from scheduler.config.args import InterPodAffinityArgs
from scheduler.model.meta import Namespace
from scheduler.model.selectors import label_selector_matches
from scheduler.plugins.inter_pod_affinity import REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING, new
from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.store import Stores
from scheduler.testing.builders import exists, in_, node, not_in, obj, pod, selector

KEYS = ("zone", "host", "rack")
NAMESPACES = {"default": {"team": "red"}, "shop": {}, "ghost": None}
WANTED = ({}, {"app": "web"}, {"app": "db"}, [not_in("app", "web")], [exists("tier")], [in_("app", "web", "db")], None)


class Handle:
    """A cluster as the plugin reaches it."""

    def __init__(self, cache):
        self.cache, self.snapshot, self.stores = cache, Snapshot(), Stores()
        for name, labels in NAMESPACES.items():
            if labels is not None:
                manifest = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
                self.stores.of(Namespace).put(obj(Namespace, manifest))

    def nodes(self):
        self.cache.update_snapshot(self.snapshot)
        return self.snapshot

    def lister(self, kind):
        return self.stores.of(kind)


def random_pod(rng, name, number_of_terms):
    made = pod(name).uid(name).in_ns(rng.choice(tuple(NAMESPACES)))
    if rng.random() < 0.8:
        made = made.label("app", rng.choice(("web", "db")))
    if rng.random() < 0.3:
        made = made.label("tier", "x")
    for _ in range(number_of_terms):
        fields = {}
        if rng.random() < 0.3:
            fields["namespaces"] = rng.sample(tuple(NAMESPACES), rng.randint(1, 2))
        if rng.random() < 0.3:
            selects = rng.choice(({}, selector({"team": "red"}), selector([not_in("team", "red")])))
            fields["namespaceSelector"] = selects
        add = rng.choice((made.pod_affinity, made.pod_anti_affinity))
        made = add(rng.choice(KEYS), rng.choice(WANTED), weight=rng.choice((None, None, 1, 40)), **fields)
    return made


def random_cluster(rng):
    cache = Cache()
    count = rng.randint(1, 8)
    for i in range(count):
        labels = {"zone": rng.choice("ab"), "host": f"n{i}", "rack": rng.choice("12")}
        kept = {key: value for key, value in labels.items() if rng.random() < 0.8}
        cache.add_node(node(f"n{i}").labels(kept).obj())
    for i in range(rng.randint(0, 12)):
        cache.add_pod(random_pod(rng, f"r{i}", rng.choice((0, 0, 1, 2))).on(f"n{rng.randrange(count)}").obj())
    return Handle(cache)


# --- the rules, as a walk over all pods ------------------------------------------------------------------------------


def means(term, other):
    """Whether a term of the incoming pod means ``other``: names, or any namespace for a selector that needs no label."""
    selects = term.namespace_selector
    labels = NAMESPACES[other.namespace]
    in_namespace = (
        other.namespace in term.namespaces
        or label_selector_matches(selects, {})
        or (labels is not None and label_selector_matches(selects, labels))
    )
    return in_namespace and label_selector_matches(term.selector, other.labels)


def selects(term, pod_):
    """Whether a term of a running pod selects the incoming one."""
    return term.matches(pod_.namespace, pod_.labels, NAMESPACES[pod_.namespace] or {})


def reason_for(pod_, info, infos):
    """Why the pod cannot run on the node; None if it can."""
    near, apart = pod_.affinity_terms.required_affinity, pod_.affinity_terms.required_anti_affinity

    def same_domain(key, other):
        return key in info.labels and other.labels.get(key) == info.labels[key]

    friends = [(i, p) for i in infos for p in i.pods if near and all(means(term, p) for term in near)]
    in_domain = all(any(same_domain(term.topology_key, i) for i, _ in friends) for term in near)
    counted = any(term.topology_key in i.labels for i, _ in friends for term in near)
    is_first = not counted and all(means(term, pod_) for term in near)
    if not (in_domain or (is_first and all(term.topology_key in info.labels for term in near))):
        return REASON_AFFINITY
    if any(same_domain(term.topology_key, i) and means(term, p) for term in apart for i in infos for p in i.pods):
        return REASON_ANTI_AFFINITY
    repels = any(
        same_domain(term.topology_key, i) and selects(term, pod_)
        for i in infos
        for p in i.pods
        for term in p.affinity_terms.required_anti_affinity
    )
    return REASON_EXISTING if repels else None


def raw_scores(pod_, infos, hard_weight):
    """Node name -> raw score; None if nothing was added."""
    sums, own = Counter(), pod_.affinity_terms
    added = False
    for info in infos:
        for other in info.pods:
            theirs = other.affinity_terms
            weights = [
                *((t, w, means(t, other)) for t, w in own.preferred_affinity),
                *((t, -w, means(t, other)) for t, w in own.preferred_anti_affinity),
                *((t, hard_weight, bool(hard_weight) and selects(t, pod_)) for t in theirs.required_affinity),
                *((t, w, selects(t, pod_)) for t, w in theirs.preferred_affinity),
                *((t, -w, selects(t, pod_)) for t, w in theirs.preferred_anti_affinity),
            ]
            for term, weight, applies in weights:
                if applies and term.topology_key in info.labels:
                    sums[term.topology_key, info.labels[term.topology_key]] += weight
                    added = True
    return {i.name: sum(sums[pair] for pair in i.labels.items()) for i in infos} if added else None


# --- laws ------------------------------------------------------------------------------------------------------------


def reasons(plugin, state, pod_, snapshot):
    found = {info.name: plugin.filter(state, pod_, info) for info in snapshot.infos}
    assert plugin.filter_all(state, pod_, snapshot).ok.tolist() == [found[name] is None for name in snapshot.names]
    return {name: None if status is None else status.reasons[0] for name, status in found.items()}


@given(seed=st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_filter_equals_a_walk_over_all_pods(seed):
    """The counts of the indexes lead to the verdicts that the rules give."""
    rng = random.Random(seed)
    handle = random_cluster(rng)
    plugin, state, snapshot = new(InterPodAffinityArgs(), handle), CycleState(), handle.nodes()
    pod_ = random_pod(rng, "new", rng.randint(0, 4)).obj()
    _, status = plugin.pre_filter(state, pod_, snapshot)
    expected = {info.name: reason_for(pod_, info, snapshot.infos) for info in snapshot.infos}
    if status is not None:
        assert status.code is Code.SKIP
        assert set(expected.values()) == {None}
    else:
        assert reasons(plugin, state, pod_, snapshot) == expected


@given(seed=st.integers(0, 2**32), hard_weight=st.sampled_from((0, 1, 30)))
@settings(max_examples=300, deadline=None)
def test_scores_equal_a_walk_over_all_pods(seed, hard_weight):
    """The sums of the indexes are the sums over all pods; Skip means that nothing was added."""
    rng = random.Random(seed)
    handle = random_cluster(rng)
    plugin, state = new(InterPodAffinityArgs(hard_pod_affinity_weight=hard_weight), handle), CycleState()
    pod_ = random_pod(rng, "new", rng.randint(0, 4)).obj()
    status = plugin.pre_score(state, pod_, handle.nodes())
    expected = raw_scores(pod_, handle.snapshot.infos, hard_weight)
    if status is not None:
        assert status.code is Code.SKIP
        assert expected is None
        return
    scores = plugin.score_all(state, pod_, handle.snapshot)
    assert dict(zip(handle.snapshot.names, scores.tolist(), strict=True)) == expected
    normalized = plugin.normalize(state, pod_, handle.snapshot, scores)
    assert normalized.min() == 0
    assert normalized.max() == (100 if scores.min() < scores.max() else 0)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_dry_run_equals_the_changed_cluster(seed):
    """After ``add_pod`` and ``remove_pod`` the verdicts are those of a cluster with these pods more and less."""
    rng = random.Random(seed)
    handle = random_cluster(rng)
    plugin, state, snapshot = new(InterPodAffinityArgs(), handle), CycleState(), handle.nodes()
    pod_ = random_pod(rng, "new", rng.randint(1, 4)).obj()
    _, status = plugin.pre_filter(state, pod_, snapshot)
    if status is not None:
        return
    before = reasons(plugin, state, pod_, snapshot)
    clone = state.clone()
    running = [each for info in snapshot.infos for each in info.pods]
    leaving = rng.sample(running, min(len(running), rng.randint(0, 3)))
    coming = [random_pod(rng, f"x{i}", rng.randint(0, 2)).on(rng.choice(snapshot.names)).obj() for i in range(2)]
    for each in leaving:
        plugin.remove_pod(clone, pod_, each, snapshot.get(each.node_name))
    for each in coming:
        plugin.add_pod(clone, pod_, each, snapshot.get(each.node_name))
    found = reasons(plugin, clone, pod_, snapshot)
    assert reasons(plugin, state, pod_, snapshot) == before, "the original is untouched"
    for each in leaving:
        handle.cache.remove_pod(each)
    for each in coming:
        handle.cache.add_pod(each)
    infos = handle.nodes().infos
    assert found == {info.name: reason_for(pod_, info, infos) for info in infos}
