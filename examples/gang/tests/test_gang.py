"""Gangs in the engine that the daemon runs: together or not at all, and never waiting for each other."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podium_gang import Gang

from scheduler.testing import Harness, node, pod

PROFILE = {
    "plugins": {"multiPoint": {"enabled": [{"name": "Gang"}]}},
    "pluginConfig": [{"name": "Gang", "args": {"waitSeconds": 30}}],
}


def cluster_of(slots, **how):
    """Return a cluster in which so many pods of one CPU find a place."""
    made = Harness(plugins={"Gang": Gang}, profile=PROFILE, **how)
    made.put(node("n1").capacity(cpu=str(slots), memory="64Gi", pods="110").obj())
    return made


def member(gang, number, size):
    labels = {"gang.podium.dev/name": gang, "gang.podium.dev/size": str(size)}
    return pod(f"{gang}-{number}").labels(labels).requests(cpu="1").obj()


def gang_of(name, size):
    return [member(name, number, size) for number in range(size)]


def bound(cluster, pods):
    return sum(1 for p in pods if cluster.pod(p.pod_key).node_name)


def held(cluster):
    return len(list(cluster.core.waiting))


@pytest.fixture
def cluster():
    with cluster_of(4) as made:
        yield made


def test_a_gang_is_placed_once_all_of_it_is_there(cluster):
    """Until then it holds nothing."""
    first, second, third = gang_of("a", 3)
    cluster.put(first, second)
    cluster.run()
    assert (bound(cluster, [first, second]), held(cluster)) == (0, 0)
    assert "gang default/a has 2 of 3 pods" in cluster.pod(first.pod_key).status.conditions[0].message
    cluster.put(third)
    cluster.advance(10)
    cluster.run()
    assert bound(cluster, [first, second, third]) == 3
    assert cluster.metric("podium_plugin_gang_completed_total") == 1


def test_one_that_does_not_fit_holds_nothing(cluster):
    """Its fifth member finds no place, so the four others give theirs back, and another pod takes one."""
    gang = gang_of("a", 5)
    cluster.put(*gang)
    cluster.run()
    assert (bound(cluster, gang), held(cluster)) == (0, 0)
    assert cluster.metric("podium_plugin_gang_given_up_total") >= 1
    assert cluster.schedule(pod("plain").requests(cpu="4").obj()) == "n1"


def test_it_is_placed_once_there_is_room(cluster):
    """A new node is an event that wakes the member that had no place; it wakes the others."""
    gang = gang_of("a", 5)
    cluster.put(*gang)
    cluster.run()
    cluster.put(node("n2").capacity(cpu="1", memory="64Gi", pods="110").obj())
    cluster.advance(60)
    cluster.run()
    assert bound(cluster, gang) == 5


def test_time_is_up_for_all_at_once(cluster):
    """A member that is gated never comes; those that hold places give them back together."""
    late = pod("a-2").labels({"gang.podium.dev/name": "a", "gang.podium.dev/size": "3"}).requests(cpu="1")
    gang = [*gang_of("a", 3)[:2], late.gate("not-yet").obj()]
    cluster.put(*gang)
    cluster.run()
    assert held(cluster) == 2
    cluster.advance(29)
    assert held(cluster) == 2
    cluster.advance(1)
    assert held(cluster) == 0
    told = [cluster.pod(p.pod_key).status.conditions[0].message for p in gang[:2]]
    assert any("rejected due to timeout after waiting 30s at plugin Gang" in text for text in told)


def test_a_member_that_is_deleted_takes_the_others_along(cluster):
    """There is no gang without it."""
    late = pod("a-2").labels({"gang.podium.dev/name": "a", "gang.podium.dev/size": "3"}).requests(cpu="1")
    gang = [*gang_of("a", 3)[:2], late.gate("not-yet").obj()]
    cluster.put(*gang)
    cluster.run()
    cluster.core._reject_waiting_pod(gang[0].uid, "", "pod deleted")  # what the watch does when a held pod goes
    cluster.advance(0)
    assert held(cluster) == 0


def test_a_member_that_is_replaced_joins_those_that_run(cluster):
    """Three of four run; the new one completes the gang."""
    gang = gang_of("a", 4)
    cluster.put(*gang)
    cluster.run()
    assert bound(cluster, gang) == 4
    cluster.remove(cluster.pod(gang[3].pod_key))
    assert cluster.schedule(member("a", 9, 4)) == "n1"


def test_two_gangs_that_fit_only_one_after_the_other(cluster):
    """Members come in turns; upstream's plain Permit would have each hold half of the cluster."""
    a, b = gang_of("a", 3), gang_of("b", 3)
    cluster.put(*itertools.chain.from_iterable(zip(a, b, strict=True)))
    cluster.run()
    assert sorted([bound(cluster, a), bound(cluster, b)]) == [0, 3]
    first, other = (a, b) if bound(cluster, a) else (b, a)
    cluster.remove(*(cluster.pod(p.pod_key) for p in first))
    cluster.advance(60)
    cluster.run()
    assert bound(cluster, other) == 3


def test_labels_that_make_no_sense_are_said(cluster):
    odd = pod("odd").labels({"gang.podium.dev/name": "a", "gang.podium.dev/size": "many"}).obj()
    assert cluster.schedule(odd) == ""
    assert (
        "label gang.podium.dev/size is no number above zero" in cluster.pod("default/odd").status.conditions[0].message
    )


def test_pods_without_labels_are_no_concern_of_it(cluster):
    assert cluster.schedule(pod("plain").obj()) == "n1"


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    slots=st.integers(1, 6),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    data=st.data(),
)
def test_any_interleaving_ends_well(slots, sizes, data):
    """However the members come: never a part of a gang, and at the end none is left that would have had room.

    Members come in any order, with attempts and time between them, and gangs that have been placed may be deleted.
    """
    gangs = {f"g{number}": gang_of(f"g{number}", size) for number, size in enumerate(sizes)}
    left = data.draw(st.permutations(list(itertools.chain.from_iterable(gangs.values()))))
    with cluster_of(slots, seed=data.draw(st.integers(0, 9))) as cluster:
        gone = set()

        def check_all_or_none():
            for name, pods in gangs.items():
                known = [p for p in pods if cluster.pod(p.pod_key) is not None]
                assert name in gone or bound(cluster, known) in {0, len(pods)}, "a part of a gang is bound"
            half_placed = {held.pod.metadata.labels["gang.podium.dev/name"] for held in cluster.core.waiting}
            assert len(half_placed) <= 1, "two gangs hold places at a time"

        for p in left:
            cluster.put(p)
            cluster.run(data.draw(st.integers(0, 3)))
            check_all_or_none()
            cluster.advance(data.draw(st.sampled_from([0, 1, 12, 31])))
            check_all_or_none()
        for name, pods in gangs.items():
            if bound(cluster, pods) and data.draw(st.booleans()):
                gone.add(name)
                cluster.remove(*(cluster.pod(p.pod_key) for p in pods))
        for _ in range(12):
            cluster.advance(31)
            cluster.run()
            check_all_or_none()
        alive = {name: pods for name, pods in gangs.items() if name not in gone}
        free = slots - sum(bound(cluster, pods) for pods in alive.values())
        waiting = [name for name, pods in alive.items() if not bound(cluster, pods)]
        assert held(cluster) == 0
        assert all(len(gangs[name]) > free for name in waiting), "a gang waits although it would fit"
