"""PodTopologySpread, soft constraints: facts of upstream's scoring_test.go; numbers worked out by its formula."""

import math

import numpy as np
import pytest

from scheduler.api import CycleState
from scheduler.config.args import PodTopologySpreadArgs
from scheduler.model.pod import TopologySpreadConstraint
from scheduler.model.workload import Service
from scheduler.plugins.topology_spread import NAME, scoring
from scheduler.plugins.topology_spread.constraints import HOSTNAME, ZONE
from scheduler.plugins.topology_spread.logarithm import log
from scheduler.testing import node, pod
from scheduler.testing.builders import obj

FOO = {"foo": ""}
Z1 = [node(name).zone("z1").hostname() for name in ("a", "b")]
Z2 = [node(name).zone("z2").hostname() for name in ("x", "y")]
NODES = (*Z1, *Z2)


def soft(*keys, max_skew=1, labels=FOO, **fields):
    made = pod("p").labels(labels)
    for key in keys:
        made = made.spread(key, FOO, max_skew=max_skew, when="ScheduleAnyway", **fields)
    return made


def running(counts, labels=FOO):
    return [pod(f"{name}-{i}").labels(labels).on(name) for name, n in counts.items() for i in range(n)]


def scores(bench, waiting, nodes=NODES, pods=(), args=None):
    """Return name -> normalized score, asked for in both forms."""
    bench.cluster(nodes, pods)
    found = bench.scores(bench.make(NAME, args), waiting.obj())
    return found if isinstance(found, str) else dict(zip(bench.handle.snapshot.names, found, strict=True))


@pytest.mark.parametrize(
    ("waiting", "counts", "expected"),
    [
        pytest.param(soft(ZONE), {}, {"a": 100, "b": 100, "x": 100, "y": 100}, id="no pods: all are equal"),
        pytest.param(soft(HOSTNAME), {"a": 1, "b": 1, "x": 1, "y": 1}, dict.fromkeys("abxy", 100), id="even"),
        # 0 and 3 pods, weight ln 4: 0 and round(4.16) = 4 -> (4+0-0)*100/4 and (4+0-4)*100/4
        pytest.param(soft(ZONE), {"a": 2, "b": 1}, {"a": 0, "b": 0, "x": 100, "y": 100}, id="an empty zone is best"),
        # hosts: 2 1 0 1 pods, weight ln 6 = 1.79: 4 2 0 2
        pytest.param(soft(HOSTNAME), {"a": 2, "b": 1, "y": 1}, {"a": 0, "b": 50, "x": 100, "y": 50}, id="hosts"),
        # zones 3 and 1 pods * ln 4 -> 4.16 1.39; hosts 2 1 0 1 * ln 6 -> 3.58 1.79 0 1.79; sums 8 6 1 3
        pytest.param(soft(ZONE, HOSTNAME), {"a": 2, "b": 1, "y": 1}, {"a": 12, "b": 37, "x": 100, "y": 75}, id="both"),
        # zones 3 and 1 pods: 4.16+4 and 1.39+4 -> 8 and 5
        pytest.param(
            soft(ZONE, max_skew=5), {"a": 3, "y": 1}, {"a": 62, "b": 62, "x": 100, "y": 100}, id="a skew waters it down"
        ),
    ],
)
def test_fewer_pods_are_better(bench, waiting, counts, expected):
    """100 * (max + min - score) / max, whole numbers."""
    assert scores(bench, waiting, pods=running(counts)) == expected


def test_only_domains_of_feasible_nodes_weigh(bench):
    """The weight is the number of domains among the nodes to be scored; pods on all nodes count."""
    bench.cluster((*NODES, node("far").zone("z3").hostname()), running({"a": 1, "b": 1, "far": 7}))
    snapshot = bench.handle.snapshot
    feasible = snapshot.take(np.array([snapshot.row("a"), snapshot.row("x")]))
    plugin, waiting, state = bench.make(NAME), soft(ZONE).obj(), CycleState()

    assert plugin.pre_score(state, waiting, feasible) is None
    assert plugin.score_all(state, waiting, feasible).tolist() == [round(2 * math.log(4)), 0]
    assert [plugin.score(state, waiting, info) for info in feasible.infos] == [3, 0]


@pytest.mark.parametrize(
    ("fields", "tainted", "expected"),
    [
        pytest.param({}, False, {"a": 100, "x": 100}, id="an excluded node's pods do not count"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, False, {"a": 0, "x": 100}, id="unless affinity is ignored"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, True, {"a": 0, "x": 100}, id="taints are ignored by default"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"},
            True,
            {"a": 100, "x": 100},
            id="unless honored",
        ),
    ],
)
def test_policies(bench, fields, tainted, expected):
    """Nodes that are left out of the counting take their pods with them."""
    crowded = node("b").zone("z1").hostname()
    bench.cluster((Z1[0], Z2[0], crowded.taint("gpu") if tainted else crowded), running({"b": 3}))
    snapshot, state = bench.handle.snapshot, CycleState()
    feasible = snapshot.take(np.array([snapshot.row("a"), snapshot.row("x")]))
    waiting = soft(ZONE, **fields).requires_node({"key": HOSTNAME, "operator": "NotIn", "values": ["b"]}).obj()
    plugin = bench.make(NAME)
    plugin.pre_score(state, waiting, feasible)
    found = plugin.normalize(state, waiting, feasible, plugin.score_all(state, waiting, feasible))

    assert dict(zip(feasible.names, found.tolist(), strict=True)) == expected


def test_nodes_without_a_key_are_ignored(bench):
    """The pod's own constraints ask for all labels: such a node scores 0 and is not compared with."""
    odd = node("odd").zone("z1")
    waiting = soft(ZONE, HOSTNAME)
    assert scores(bench, waiting, nodes=(*NODES, odd)) == {**dict.fromkeys("abxy", 100), "odd": 0}
    assert scores(bench, waiting, nodes=(odd,)) == {"odd": 0}
    found = scores(bench, waiting, nodes=(*NODES, odd), pods=running({"a": 1, "odd": 9}))
    assert found == scores(bench, waiting, pods=running({"a": 1})) | {"odd": 0}


def test_terminating_and_foreign_pods_do_not_count(bench):
    """Neither for zones nor for hosts."""
    pods = [made.terminating() for made in running({"a": 1})] + [made.in_ns("other") for made in running({"b": 1})]
    assert scores(bench, soft(ZONE, HOSTNAME), pods=pods) == dict.fromkeys("abxy", 100)


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(pod("p"), id="no constraints, nothing owns the pod"),
        pytest.param(pod("p").spread(ZONE, FOO), id="hard ones only"),
    ],
)
def test_skip(bench, waiting):
    """Without soft constraints there is nothing to score."""
    assert scores(bench, waiting) == "Skip"


def test_selector_that_cannot_be_read(bench):
    """The text is upstream's."""
    bad = {"matchExpressions": [{"key": "foo", "operator": "In"}]}
    assert scores(bench, pod("p").spread(ZONE, bad, when="ScheduleAnyway")) == (
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )


def test_match_label_keys(bench):
    """Pods of another version do not count."""
    waiting = soft(HOSTNAME, labels={"foo": "", "version": "2"}, matchLabelKeys=["version"])
    pods = running({"a": 3}, {"foo": "", "version": "1"}) + running({"x": 1}, {"foo": "", "version": "2"})
    assert scores(bench, waiting, pods=pods) == {"a": 100, "b": 100, "x": 0, "y": 100}


# --- defaults ---


def owned(bench):
    """A pod of a service, which is what the default constraints need."""
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": FOO}}
    bench.handle.stores.of(Service).put(obj(Service, service))
    return pod("p").labels(FOO)


def test_system_defaults(bench):
    """Hosts with skew 3, zones with skew 5: 2·ln 6 + 2 + 2·ln 4 + 4 = 12.4 on the crowded host."""
    waiting = owned(bench)
    # a: 12; b: 0 + 2 + 2.77 + 4 = 9; x, y: 6
    assert scores(bench, waiting, pods=running({"a": 2})) == {"a": 50, "b": 75, "x": 100, "y": 100}


def test_system_defaults_do_not_ask_for_all_labels(bench):
    """A node without zone competes by its host; such nodes are one more domain of zones."""
    waiting = owned(bench)
    bare = node("bare").hostname()
    # hosts weigh ln 7, zones ln 5 (z1, z2 and none). a: 1.95+2+1.61+4 = 10, b: 2+1.61+4 = 8, x y: 6, bare: 2·1.95+2 = 6
    found = scores(bench, waiting, nodes=(*NODES, bare), pods=running({"a": 1, "bare": 2}))
    assert found == {"a": 60, "b": 80, "x": 100, "y": 100, "bare": 100}


def test_empty_value_and_no_value_are_one_domain(bench):
    """parity: upstream reads a missing label as the empty text where it does not ask for all labels."""
    waiting = owned(bench)
    empty = node("empty").hostname().label(ZONE, "")
    bench.cluster((*NODES, node("bare").hostname(), empty), running({"bare": 3}))
    snapshot, plugin, state = bench.handle.snapshot, bench.make(NAME), CycleState()
    plugin.pre_score(state, waiting.obj(), snapshot)
    zones = state.read(scoring.STATE).rules[1]

    assert zones.weight == log(3 + 2)
    assert zones.counts[zones.column.code_of[""]] == 3
    assert bench.scores(plugin, waiting.obj())


def test_no_defaults_without_owner_or_service(bench):
    """Nobody knows which pods belong together."""
    assert scores(bench, pod("p").labels(FOO), pods=running({"a": 2})) == "Skip"


def listed(*constraints):
    return PodTopologySpreadArgs(constraints, "List")


def test_list_defaults(bench):
    """The profile's own list, which asks for all labels."""
    args = listed(TopologySpreadConstraint(1, ZONE, "ScheduleAnyway"))
    odd = node("odd").hostname()
    waiting = owned(bench)
    found = scores(bench, waiting, nodes=(*NODES, odd), pods=running({"a": 1}), args=args)
    assert found == {"a": 0, "b": 0, "x": 100, "y": 100, "odd": 0}


def test_list_defaults_may_be_hard(bench):
    """Filter applies them as well; PreScore steps aside."""
    args = listed(TopologySpreadConstraint(1, ZONE, "DoNotSchedule"))
    waiting = owned(bench).obj()
    bench.cluster(NODES, running({"a": 1}))
    plugin = bench.make(NAME, args)
    answer = bench.verdicts(plugin, waiting)

    assert {name for name, status in answer.items() if status is None} == {"x", "y"}
    assert bench.scores(plugin, waiting) == "Skip"


def test_own_constraints_replace_the_defaults(bench):
    """A pod with hard constraints alone is not scored by default ones."""
    waiting = owned(bench).spread(ZONE, FOO)
    assert scores(bench, waiting, pods=running({"a": 1})) == "Skip"


# --- arithmetic ---


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.5, 1), (1.5, 2), (2.5, 3), (0.49999999999999994, 0), (-0.5, -1), (-2.5, -3), (-0.4, 0), (7.0, 7)],
)
def test_rounding(value, rounded):
    """Half away from zero, as Go; Python and numpy round half to even."""
    assert scoring._round(value) == rounded
    assert scoring._round_all(np.array([value])).tolist() == [rounded]


@pytest.mark.parametrize(
    ("given", "ignored", "expected"),
    [
        pytest.param([3, 1, 2], None, [33, 100, 66], id="fewest pods are best"),
        pytest.param([0, 0], None, [100, 100], id="no pods"),
        pytest.param([0, 3, 9], [True, False, False], [0, 100, 33], id="ignored nodes are not compared with"),
        pytest.param([0, 0], [True, True], [0, 0], id="all ignored"),
        pytest.param([], None, [], id="no nodes"),
    ],
)
def test_normalize(given, ignored, expected):
    """Whole-number division."""
    mask = None if ignored is None else np.array(ignored)
    assert scoring.normalize(np.array(given, np.int64), mask).tolist() == expected


def test_logarithm_is_close():
    """Within the last bits of the C library's for any cluster size."""
    for value in (*range(2, 3000), 5002, 15_002, 65_002, 150_002):
        assert log(value) == pytest.approx(math.log(value), rel=1e-15)


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (3, "0x1.193ea7aad030ap+0"),
        (14, "0x1.51cca16d7bba8p+1"),
        (48, "0x1.ef8383c50bb74p+1"),
        (74, "0x1.1375cd6fcab1cp+2"),
        (7, "0x1.f2272ae325a57p+0"),
        (5002, "0x1.10901f6dc84b9p+3"),
    ],
)
def test_logarithm_is_gos(value, bits):
    """Bits of Go's math.Log; for the first four the C library gives others."""
    assert log(value).hex() == bits
