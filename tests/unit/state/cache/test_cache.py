"""Cache: the pod state machine, placeholders, and what nodes and pods do to one another."""

import pytest

from scheduler.state.cache.cache import Cache
from scheduler.state.cache.errors import CacheError
from scheduler.state.cache.snapshot import Snapshot
from scheduler.testing.builders import node, pod

N1 = node("n1").capacity(cpu="4", memory="8Gi", pods="110").obj()
N2 = node("n2").capacity(cpu="4", memory="8Gi", pods="110").obj()
WEB = pod("web").requests(cpu="1").on("n1")


def cache_with(*nodes, ttl_s=None):
    made = Cache(ttl_s=ttl_s)
    for n in nodes:
        made.add_node(n)
    return made


def requested_cpu(cache, name):
    return cache.dump().nodes[name].requested.get("cpu", 0)


def names(cache):
    snapshot = Snapshot()
    cache.update_snapshot(snapshot)
    return snapshot.names


# --- the state machine ---


def test_assumed_pod_takes_its_place_at_once():
    """Initial → Assumed."""
    cache = cache_with(N1)

    cache.assume_pod(WEB.obj())

    assert requested_cpu(cache, "n1") == 1000
    assert cache.is_assumed(WEB.obj().uid)
    assert (cache.num_pods, cache.num_assumed) == (1, 1)


def test_api_servers_version_confirms_an_assumed_pod():
    """Assumed → Added; the newer object counts."""
    cache = cache_with(N1)
    cache.assume_pod(WEB.obj())
    confirmed = WEB.resource_version(7).obj()

    cache.add_pod(confirmed)

    assert not cache.is_assumed(confirmed.uid)
    assert confirmed is cache.get_pod(confirmed.uid)
    assert requested_cpu(cache, "n1") == 1000
    assert (cache.num_pods, cache.num_assumed) == (1, 0)


def test_confirmation_that_changes_nothing_leaves_the_nodes_generation_alone():
    """What was computed for the node stays true, and everyone sees the newer object."""
    cache, snapshot = cache_with(N1), Snapshot()
    repelling = WEB.pod_anti_affinity("kubernetes.io/hostname", {"app": "web"})
    cache.assume_pod(repelling.obj())
    cache.update_snapshot(snapshot)
    before = cache.get_node("n1").generation
    bound = repelling.resource_version(7).condition("PodScheduled", "True").obj()

    cache.add_pod(bound)
    cache.update_snapshot(snapshot)

    info = cache.get_node("n1")
    assert info.generation == before == snapshot.generations[0]
    assert info.pod(bound.uid) is info.pods_with_affinity[0] is info.pods_with_required_anti_affinity[0] is bound
    cache.remove_pod(bound)
    assert (requested_cpu(cache, "n1"), info.num_pods, info.num_pods_with_affinity) == (0, 0, 0)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(WEB.label("app", "web"), id="label"),
        pytest.param(WEB.requests(cpu="2"), id="requests"),
        pytest.param(WEB.terminating(), id="deletion"),
        pytest.param(WEB.condition("DisruptionTarget", "True"), id="another condition"),
        pytest.param(WEB.phase("Running"), id="phase"),
    ],
)
def test_version_that_changes_anything_that_counts_is_a_change_of_the_node(changed):
    """Only the API server's own notes are not."""
    cache = cache_with(N1)
    cache.add_pod(WEB.obj())
    before = cache.get_node("n1").generation

    cache.update_pod(WEB.obj(), changed.resource_version(7).obj())

    assert cache.get_node("n1").generation > before


def test_pod_bound_elsewhere_is_where_the_api_server_says():
    """Assumed → Added on another node: the real one wins."""
    cache = cache_with(N1, N2)
    cache.assume_pod(WEB.obj())

    cache.add_pod(WEB.on("n2").obj())

    assert (requested_cpu(cache, "n1"), requested_cpu(cache, "n2")) == (0, 1000)
    assert cache.get_pod(WEB.obj().uid).node_name == "n2"
    assert cache.num_assumed == 0


def test_forgotten_pod_gives_its_room_back():
    """Assumed → Initial, and it can be assumed anew."""
    cache = cache_with(N1)
    cache.assume_pod(WEB.obj())

    assert cache.forget_pod(WEB.obj())

    assert 0 == requested_cpu(cache, "n1") == cache.num_pods == cache.num_assumed
    cache.assume_pod(WEB.obj())


def test_forgetting_an_unknown_pod_is_fine():
    """Its deletion was faster."""
    assert not cache_with(N1).forget_pod(WEB.obj())


def test_assumed_pod_can_be_removed():
    """Assumed → Deleted."""
    cache = cache_with(N1)
    cache.assume_pod(WEB.obj())

    cache.remove_pod(WEB.obj())

    assert 0 == requested_cpu(cache, "n1") == cache.num_pods == cache.num_assumed


def test_update_counts_the_new_requests():
    """Added → Added with another size."""
    cache = cache_with(N1)
    cache.add_pod(WEB.obj())

    cache.update_pod(WEB.obj(), WEB.requests(cpu="3").obj())

    assert requested_cpu(cache, "n1") == 3000


def test_update_that_names_another_node_moves_the_pod():
    """The API server is right about its own object."""
    cache = cache_with(N1, N2)
    cache.add_pod(WEB.obj())

    cache.update_pod(WEB.obj(), WEB.on("n2").obj())

    assert (requested_cpu(cache, "n1"), requested_cpu(cache, "n2")) == (0, 1000)


@pytest.mark.parametrize("named", [pytest.param("", id="no node"), pytest.param("n2", id="another node")])
def test_deletion_takes_the_pod_from_where_it_is(named):
    """The last known state of a deleted pod may be older than the binding."""
    cache = cache_with(N1, N2)
    cache.add_pod(WEB.obj())

    cache.remove_pod(WEB.on(named).obj())

    assert 0 == requested_cpu(cache, "n1") == cache.num_pods


def test_pod_made_anew_under_its_old_name_is_another_pod():
    """Pods are known by UID."""
    cache = cache_with(N1)
    cache.add_pod(WEB.uid("old").obj())
    cache.assume_pod(WEB.uid("new").obj())

    cache.remove_pod(WEB.uid("old").obj())

    assert [p.uid for p in cache.get_node("n1").pods] == ["new"]


ADDED, ASSUMED, UNKNOWN = "added", "assumed", "unknown"


@pytest.mark.parametrize(
    ("state", "action", "message"),
    [
        pytest.param(
            ADDED, lambda c, p: c.assume_pod(p), "is in the cache, so can't be assumed", id="assume an added pod"
        ),
        pytest.param(ASSUMED, lambda c, p: c.assume_pod(p), "is in the cache, so can't be assumed", id="assume twice"),
        pytest.param(ADDED, lambda c, p: c.add_pod(p), "was already in added state", id="add twice"),
        pytest.param(
            ADDED, lambda c, p: c.forget_pod(p), "wasn't assumed so cannot be forgotten", id="forget an added pod"
        ),
        pytest.param(
            ASSUMED,
            lambda c, p: c.forget_pod(WEB.on("n2").obj()),
            "was assumed on n2 but assigned to n1",
            id="forget a pod on another node",
        ),
        pytest.param(
            ASSUMED, lambda c, p: c.update_pod(p, p), "assumed pod .* should not be updated", id="update an assumed pod"
        ),
        pytest.param(UNKNOWN, lambda c, p: c.update_pod(p, p), "so cannot be updated", id="update an unknown pod"),
        pytest.param(UNKNOWN, lambda c, p: c.remove_pod(p), "so cannot be removed", id="remove an unknown pod"),
        pytest.param(
            ADDED, lambda c, p: c.update_pod(p, WEB.uid("else").obj()), "it is not the pod", id="update to another pod"
        ),
        pytest.param(ADDED, lambda c, p: c.update_pod(p, WEB.on("").obj()), "lost its node n1", id="update to no node"),
        pytest.param(UNKNOWN, lambda c, p: c.assume_pod(WEB.on("").obj()), "has no node", id="assume without a node"),
        pytest.param(UNKNOWN, lambda c, p: c.add_pod(WEB.on("").obj()), "has no node", id="add without a node"),
        pytest.param(UNKNOWN, lambda c, p: c.assume_pod(WEB.uid("").obj()), "has no uid", id="assume without a uid"),
    ],
)
def test_other_transitions_are_refused_and_change_nothing(state, action, message):
    """CacheError names the pod; the cache stays as it was."""
    cache = cache_with(N1)
    if state == ADDED:
        cache.add_pod(WEB.obj())
    elif state == ASSUMED:
        cache.assume_pod(WEB.obj())
    before = (cache.num_nodes, cache.num_pods, cache.num_assumed, requested_cpu(cache, "n1"))

    with pytest.raises(CacheError, match=message):
        action(cache, WEB.obj())

    assert before == (cache.num_nodes, cache.num_pods, cache.num_assumed, requested_cpu(cache, "n1"))


# --- expiry ---


def test_assumed_pods_never_expire_by_default():
    """A pod of unknown fate goes on holding its capacity."""
    cache = cache_with(N1)
    cache.assume_pod(WEB.obj())
    cache.finish_binding(WEB.obj(), now_s=0.0)

    assert cache.expire(1e12) == []
    assert requested_cpu(cache, "n1") == 1000


def test_with_a_ttl_a_finished_pod_expires():
    """The time runs from the end of the binding."""
    cache = cache_with(N1, ttl_s=30.0)
    cache.assume_pod(WEB.obj())
    assert cache.expire(1e12) == []
    cache.finish_binding(WEB.obj(), now_s=100.0)

    assert cache.expire(129.0) == []
    assert [WEB.obj().uid] == [p.uid for p in cache.expire(130.0)]

    assert 0 == requested_cpu(cache, "n1") == cache.num_pods == cache.num_assumed


def test_confirmed_pod_does_not_expire():
    """The ttl is for assumed pods."""
    cache = cache_with(N1, ttl_s=30.0)
    cache.assume_pod(WEB.obj())
    cache.finish_binding(WEB.obj(), now_s=100.0)
    cache.add_pod(WEB.obj())

    assert cache.expire(1e12) == []


# --- nodes ---


def test_pod_before_its_node_waits_on_a_placeholder():
    """The placeholder is in no snapshot; the node finds the pod when it comes."""
    cache = cache_with(N2)
    cache.add_pod(WEB.obj())

    assert names(cache) == ["n2"]
    assert cache.get_node("n1") is None
    assert cache.num_nodes == 2

    info = cache.add_node(N1)

    assert names(cache) == ["n2", "n1"]
    assert info.requested == {"cpu": 1000}


def test_placeholder_goes_with_its_last_pod():
    """No trace of unknown nodes is kept."""
    cache = cache_with()
    cache.add_pod(WEB.obj())

    cache.remove_pod(WEB.obj())

    assert cache.num_nodes == 0


def test_removed_node_leaves_a_placeholder_while_pods_name_it():
    """Pod deletions may come after the node's."""
    cache = cache_with(N1, N2)
    cache.add_pod(WEB.obj())

    cache.remove_node("n1")

    assert names(cache) == ["n2"]
    assert cache.get_node("n1") is None
    assert WEB.obj().uid == cache.get_pod(WEB.obj().uid).uid
    cache.remove_pod(WEB.obj())
    assert cache.num_nodes == 1


def test_node_that_comes_back_finds_its_pods():
    """The placeholder becomes the node."""
    cache = cache_with(N1)
    cache.add_pod(WEB.obj())
    cache.remove_node("n1")

    cache.add_node(N1)

    assert names(cache) == ["n1"]
    assert requested_cpu(cache, "n1") == 1000


def test_removing_an_empty_node_leaves_nothing():
    """No pods, no placeholder."""
    cache = cache_with(N1)

    cache.remove_node("n1")

    assert cache.num_nodes == 0
    assert names(cache) == []


@pytest.mark.parametrize("has_pod", [pytest.param(False, id="unknown"), pytest.param(True, id="a placeholder")])
def test_removing_a_node_that_is_not_there_is_refused(has_pod):
    """Only nodes can be removed."""
    cache = cache_with()
    if has_pod:
        cache.add_pod(WEB.obj())

    with pytest.raises(CacheError, match="node n1 is not found"):
        cache.remove_node("n1")


def test_update_of_an_unknown_node_adds_it():
    """A missed add is no reason to lose the node."""
    cache = cache_with()

    cache.update_node(N1)

    assert names(cache) == ["n1"]


def test_images_are_counted_over_all_nodes():
    """Adding, changing and removing nodes keeps the counts."""
    cache = cache_with(
        node("n1").image("app", size_bytes=10).obj(),
        node("n2").image("app", size_bytes=20).image("db", size_bytes=5).obj(),
    )
    n1 = cache.get_node("n1")
    assert (n1.images["app"].size_bytes, n1.images["app"].num_nodes) == (10, 2)

    cache.update_node(node("n2").image("db", size_bytes=5).obj())
    assert n1.images["app"].num_nodes == 1
    assert list(cache.get_node("n2").images) == ["db"]

    cache.remove_node("n1")
    cache.update_node(node("n2").image("app", size_bytes=20).obj())
    assert (cache.get_node("n2").images["app"].size_bytes, cache.get_node("n2").images["app"].num_nodes) == (20, 1)


def test_dump_shows_placeholders_and_assumed_pods():
    """For the comparer and for people."""
    cache = cache_with(N2)
    cache.assume_pod(WEB.obj())

    dump = cache.dump()

    assert {"n1", "n2"} == set(dump.nodes)
    assert frozenset({WEB.obj().uid}) == dump.assumed


def test_snapshot_that_contradicts_the_cache_is_reported_and_rebuilt():
    """The cycle fails with an error, the next one works."""
    cache, snapshot = cache_with(N1, N2), Snapshot()
    cache.update_snapshot(snapshot)
    snapshot.names = snapshot.names[:1]

    with pytest.raises(CacheError, match="snapshot has 1 nodes and the cache 2"):
        cache.update_snapshot(snapshot)

    cache.update_snapshot(snapshot)
    assert snapshot.names == ["n1", "n2"]
