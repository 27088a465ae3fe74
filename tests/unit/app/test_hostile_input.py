"""Hostile input: pods with thousands of rules get a clear status, and cost the others next to nothing.

What it costs is counted, not timed: how many selectors, terms and expressions are evaluated while ordinary pods come.
The times are printed by ``python -m tests.benchmarks.core_hostile``.
"""

from __future__ import annotations

import pytest

from scheduler.framework.metrics import FAULT_OVERRUN
from scheduler.model import selectors, visible_labels
from scheduler.model.affinity import AffinityTerm
from scheduler.model.delta import Changed, Removed
from scheduler.model.pod import Pod
from scheduler.testing.builders import exists, in_, not_in, pod, selector
from tests.benchmarks.core_hostile import Faults, World, ordinary, relabelled
from tests.benchmarks.hostile_cases import KINDS
from tests.benchmarks.objects import ZONE

ORDINARY = 40


def titles(*parts: str) -> list[object]:
    found = [kind for kind in KINDS if all(part in kind.title for part in parts)]
    assert found, parts
    return [pytest.param(kind, id=kind.title) for kind in found]


class Counted:
    """Wraps a function and counts its calls."""

    def __init__(self, function) -> None:
        self.calls = 0
        self._function = function

    def __call__(self, *args):
        self.calls += 1
        return self._function(*args)


def live(world: World, first: int, end: int) -> None:
    """Let ordinary pods come and go, and a node's label change with each."""
    for i in range(first, end):
        world.place(ordinary(i))
        placed = world.core.cache.get_pod(ordinary(i).uid)
        assert placed is not None, f"pod {i} has no node"
        if i % 2:
            world.apply(Removed(placed))
        known = world.nodes[0]
        world.nodes[0] = relabelled(known, i)
        world.apply(Changed(known, world.nodes[0]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_each_gets_its_own_status_and_the_others_get_nodes(kind):
    """No plugin raises; a hostile pod that cannot run is told why in a sentence."""
    world = World(12)
    objects = list(kind.make())
    world.put(*objects)
    world.try_all()
    live(world, 0, 4)
    assert not [fault for fault in world.faults.seen if fault[2] != FAULT_OVERRUN]
    for made in objects:
        if isinstance(made, Pod) and not made.node_name and world.core.cache.get_pod(made.uid) is None:
            assert world.conditions[made.name].reason in ("Unschedulable", "SchedulerError")
            assert world.conditions[made.name].message


@pytest.mark.parametrize("kind", titles("waiting pods", "2,000 anti-affinity") + titles("waiting pods", "2,000 spread"))
def test_waiting_pods_cost_others_nothing_for_each_of_their_rules(kind, monkeypatch):
    """Thousands of selectors are asked about pods that look alike to them once, not at each event."""
    counted = Counted(visible_labels.label_selector_matches)
    monkeypatch.setattr(visible_labels, "label_selector_matches", counted)
    world = World(3)
    world.put(*kind.make())
    world.try_all()
    live(world, 0, ORDINARY)
    assert counted.calls <= 3 * 2 * 2_000
    before = counted.calls
    live(world, ORDINARY, 2 * ORDINARY)
    assert counted.calls == before


@pytest.mark.parametrize("kind", titles("running pods", "2,000 anti-affinity") + titles("running pods", "preferences"))
def test_running_pods_cost_others_nothing_for_each_of_their_terms(kind, monkeypatch):
    """Thousands of terms are asked about pods that look alike to them once, not in each cycle."""
    calls = []
    matches = AffinityTerm.matches
    monkeypatch.setattr(AffinityTerm, "matches", lambda self, *args: calls.append(self) or matches(self, *args))
    world = World(3)
    world.put(*kind.make())
    live(world, 0, ORDINARY)
    assert len(calls) <= 3 * 2_000
    before = len(calls)
    live(world, ORDINARY, 2 * ORDINARY)
    assert len(calls) == before


def test_node_affinity_by_the_thousand_costs_a_node_s_change_the_terms_it_may_meet(monkeypatch):
    """Terms that want labels which the node has not are not looked at."""
    (kind,) = (each.values[0] for each in titles("waiting pods", "node affinity"))
    counted = Counted(selectors.node_selector_term_matches)
    monkeypatch.setattr(selectors, "node_selector_term_matches", counted)
    world = World(3)
    world.put(*kind.make())
    world.try_all()
    live(world, 2_000, 2_000 + ORDINARY)
    assert counted.calls == 0


INDEXED = ("PodTopologySpread", "InterPodAffinity", "NodeAffinity")


@pytest.fixture
def hints(monkeypatch):
    """Plugin, event and answer of each hint that is asked."""
    asked = []
    monkeypatch.setattr(Faults, "hint_duration", lambda _self, *call: asked.append(call[:3]))
    return asked


@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(lambda i: pod(f"p{i}").spread("no-such-key", {"app": f"mine-{i}"}), id="spread by label"),
        pytest.param(
            lambda i: pod(f"p{i}").spread("no-such-key", [exists("no-such-label")]), id="spread without a pair"
        ),
        pytest.param(lambda i: pod(f"p{i}").pod_affinity(ZONE, {"app": f"mine-{i}"}), id="affinity by label"),
        pytest.param(
            lambda i: pod(f"p{i}").in_ns("shop").label("app", "a").pod_affinity(ZONE, [not_in("app", "a")]),
            id="affinity in another namespace",
        ),
        pytest.param(
            lambda i: pod(f"p{i}").pod_affinity(
                ZONE, [not_in("app", f"mine-{i}")], namespaceSelector=selector([exists("team")])
            ),
            id="affinity in namespaces by label",
        ),
        pytest.param(lambda i: pod(f"p{i}").requires_node(in_("rack", f"mine-{i}")), id="node affinity"),
    ],
)
def test_events_that_help_nobody_ask_no_hint(waiting, count, hints):
    """However many pods wait."""
    world = World(3)
    world.put(*(waiting(i).obj() for i in range(count)))
    world.try_all()
    assert world.core.queue.sizes().unschedulable == count
    live(world, 0, ORDINARY)
    assert [asked for asked in hints if asked[0] in INDEXED] == []


def test_an_event_that_helps_one_pod_asks_about_that_one(hints):
    """The pod that the others do not wait for."""
    world = World(3)
    world.put(*(pod(f"p{i}").pod_affinity(ZONE, {"app": f"app-{i}"}).obj() for i in range(20)))
    world.try_all()
    world.place(ordinary(7))
    assert hints == [("InterPodAffinity", "AssignedPodAdd", "Queue")]
    assert world.core.queue.sizes().unschedulable == 19
