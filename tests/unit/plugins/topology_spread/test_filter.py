"""PodTopologySpread, hard constraints: facts of upstream's filtering_test.go."""

import pytest

from scheduler.api import Code, CycleState, Status
from scheduler.plugins.topology_spread import NAME, REASON_CONSTRAINTS, REASON_MISSING_LABEL
from scheduler.testing import node, pod
from scheduler.testing.builders import exists, in_, not_in

ZONE, HOST = "zone", "node"
FOO = {"foo": ""}
MISSING = Status.unresolvable(REASON_MISSING_LABEL)
SKEWED = Status.unschedulable(REASON_CONSTRAINTS)

A, B = node("a").label(ZONE, "z1").label(HOST, "a"), node("b").label(ZONE, "z1").label(HOST, "b")
X, Y = node("x").label(ZONE, "z2").label(HOST, "x"), node("y").label(ZONE, "z2").label(HOST, "y")
NODES = (A, B, X, Y)


def running(counts, labels=FOO, ns="default"):
    """Pods by node name -> how many."""
    return [pod(f"{ns}-{name}-{i}").in_ns(ns).labels(labels).on(name) for name, n in counts.items() for i in range(n)]


def fits(bench, waiting, nodes=NODES, pods=()):
    """Return the names of the nodes that the pod fits on."""
    bench.cluster(nodes, pods)
    answer = bench.verdicts(bench.make(NAME), waiting.obj())
    return answer if isinstance(answer, str) else {name for name, status in answer.items() if status is None}


def new(*spreads, labels=FOO):
    """A pending pod with hard constraints; each is (key, max skew, more fields)."""
    made = pod("p").labels(labels)
    for key, max_skew, *fields in spreads:
        made = made.spread(key, FOO, max_skew=max_skew, **(fields[0] if fields else {}))
    return made


@pytest.mark.parametrize(
    ("waiting", "counts", "expected"),
    [
        pytest.param(new((ZONE, 1)), {}, "abxy", id="no pods yet"),
        pytest.param(new((ZONE, 1)), {"a": 1, "b": 1, "y": 2}, "abxy", id="zones are even"),
        pytest.param(new((ZONE, 1)), {"a": 2, "b": 1, "y": 2}, "xy", id="one zone is ahead"),
        pytest.param(new((ZONE, 2)), {"a": 2, "b": 1, "y": 2}, "abxy", id="a larger skew allows it"),
        pytest.param(
            new((ZONE, 1), labels={"bar": ""}), {"a": 2, "b": 1, "y": 2}, "abxy", id="the pod does not count itself"
        ),
        pytest.param(new((HOST, 1)), {"a": 2, "b": 1, "y": 3}, "x", id="hosts"),
        pytest.param(new((HOST, 2)), {"a": 2, "b": 1, "y": 3}, "bx", id="hosts with a larger skew"),
        pytest.param(new((ZONE, 1), (HOST, 1)), {"a": 2, "b": 1, "y": 3}, "x", id="both must hold"),
        pytest.param(new((ZONE, 1), (HOST, 1)), {"a": 2, "b": 2, "x": 1, "y": 4}, "", id="nothing satisfies both"),
    ],
)
def test_max_skew(bench, waiting, counts, expected):
    """No domain gets more than maxSkew above the emptiest."""
    assert fits(bench, waiting, pods=running(counts)) == set(expected)


@pytest.mark.parametrize(
    ("min_domains", "counts", "expected"),
    [
        pytest.param(2, {"a": 1, "x": 1}, "abxy", id="enough domains: the emptiest counts"),
        pytest.param(3, {"a": 1, "x": 1}, "", id="too few domains: the emptiest counts as empty"),
        pytest.param(3, {"a": 1}, "xy", id="too few domains, one of them empty"),
        pytest.param(2**31 - 1, {"a": 1}, "xy", id="absurdly many"),
    ],
)
def test_min_domains(bench, min_domains, counts, expected):
    """With fewer domains than wanted, the missing ones are empty ones."""
    waiting = new((ZONE, 1, {"minDomains": min_domains}))
    assert fits(bench, waiting, pods=running(counts)) == set(expected)


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param(running({"a": 3}, labels={"bar": ""}), id="other labels"),
        pytest.param(running({"a": 3}, ns="other"), id="another namespace"),
        pytest.param([made.terminating() for made in running({"a": 3})], id="being deleted"),
    ],
)
def test_pods_that_do_not_count(bench, pods):
    """Only living pods of the same namespace that the selector matches are counted."""
    assert fits(bench, new((ZONE, 1)), pods=pods) == set("abxy")


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        pytest.param(pod("p").labels(FOO).spread(ZONE, {}, max_skew=1), "abxy", id="an empty selector counts nobody"),
        pytest.param(pod("p").labels(FOO).spread(ZONE, max_skew=1), "abxy", id="no selector matches nobody"),
        pytest.param(pod("p").labels(FOO).spread(ZONE, [exists("foo")], max_skew=1), "xy", id="expressions"),
        pytest.param(pod("p").labels(FOO).spread(ZONE, [not_in("foo", "x")], max_skew=1), "xy", id="not in"),
    ],
)
def test_selectors(bench, waiting, expected):
    """parity: the empty selector matches everything and yet counts as if it matched nothing."""
    assert fits(bench, waiting, pods=running({"a": 1})) == set(expected)


def test_an_empty_selector_matches_the_pod_itself(bench):
    """Zero pods everywhere, one of them would be the pod: that is one above the minimum."""
    assert fits(bench, pod("p").spread(ZONE, {}, max_skew=1)) == set("abxy")
    assert (
        fits(bench, pod("p").set("spec.topologySpreadConstraints", [constraint(maxSkew=0, labelSelector={})])) == set()
    )
    assert fits(bench, pod("p").set("spec.topologySpreadConstraints", [constraint(maxSkew=0)])) == set("abxy")


def constraint(**fields):
    return {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **fields}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"foo": "", "version": "2"}, "abxy", id="pods of another version do not count"),
        pytest.param({"foo": "", "version": "1"}, "xy", id="pods of the same version count"),
        pytest.param({"foo": ""}, "xy", id="a key that the pod lacks is passed over"),
    ],
)
def test_match_label_keys(bench, labels, expected):
    """The pod's own values narrow the selector."""
    waiting = new((ZONE, 1, {"matchLabelKeys": ["version"]}), labels=labels)
    assert fits(bench, waiting, pods=running({"a": 2}, labels={"foo": "", "version": "1"})) == set(expected)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({}, "a", id="by default the excluded zone does not count"),
        pytest.param({"nodeAffinityPolicy": "Honor"}, "a", id="honored"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, "", id="ignored: the excluded zone is the emptiest"),
    ],
)
@pytest.mark.parametrize("how", [pytest.param("selector", id="node selector"), pytest.param("affinity", id="affinity")])
def test_node_affinity_policy(bench, policy, expected, how):
    """Nodes that the pod's affinity excludes are no domain, unless it says so."""
    waiting = new((ZONE, 1, policy))
    waiting = waiting.node_selector({ZONE: "z1"}) if how == "selector" else waiting.requires_node(in_(ZONE, "z1"))
    found = fits(bench, waiting, nodes=(A, X), pods=running({"a": 1}))
    assert found & {"a"} == set(expected)


@pytest.mark.parametrize(
    ("policy", "tolerates", "expected"),
    [
        pytest.param({}, False, "x", id="by default a tainted zone counts"),
        pytest.param({"nodeTaintsPolicy": "Ignore"}, False, "x", id="ignored"),
        pytest.param({"nodeTaintsPolicy": "Honor"}, False, "ax", id="honored: the tainted zone is no domain"),
        pytest.param({"nodeTaintsPolicy": "Honor"}, True, "x", id="honored, tolerated"),
    ],
)
def test_node_taints_policy(bench, policy, tolerates, expected):
    """Only untolerated hard taints take a node out of the counting."""
    waiting = new((ZONE, 1, policy))
    if tolerates:
        waiting = waiting.toleration("gpu", operator="Exists")
    found = fits(bench, waiting, nodes=(A, X.taint("gpu")), pods=running({"a": 1}))
    assert found == set(expected)


def test_soft_taints_do_not_matter(bench):
    """PreferNoSchedule is no reason to leave a node out."""
    waiting = new((ZONE, 1, {"nodeTaintsPolicy": "Honor"}))
    nodes = (A, X.taint("gpu", effect="PreferNoSchedule"))
    assert fits(bench, waiting, nodes=nodes, pods=running({"a": 1})) == {"x"}


def test_reasons(bench):
    """The first constraint that objects is named; a missing label cannot be cured by evictions."""
    lost = node("lost").label(HOST, "lost")
    homeless = node("homeless").label(ZONE, "z1")
    bench.cluster((A, X, lost, homeless), running({"a": 1}))
    answer = bench.verdicts(bench.make(NAME), new((ZONE, 1), (HOST, 1)).obj())

    assert answer == {"a": SKEWED, "x": None, "lost": MISSING, "homeless": SKEWED}
    assert bench.verdicts(bench.make(NAME), new((HOST, 1), (ZONE, 1)).obj())["homeless"] == MISSING


def test_nodes_without_all_keys_do_not_count(bench):
    """Their pods are not seen, and they make no domain."""
    other = node("other").label(ZONE, "z3")
    pods = running({"a": 1, "x": 1, "other": 0})
    assert fits(bench, new((ZONE, 1), (HOST, 1)), nodes=(A, X, B, other), pods=pods) == {"b"}
    assert fits(bench, new((ZONE, 1)), nodes=(A, X, B, other), pods=pods) == {"other"}


def test_no_node_has_the_label(bench):
    """Every node is rejected, none can be helped."""
    bench.cluster((node("n"), node("m")))
    assert set(bench.verdicts(bench.make(NAME), new((ZONE, 1)).obj()).values()) == {MISSING}


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(pod("p"), id="no constraints"),
        pytest.param(pod("p").spread(ZONE, FOO, when="ScheduleAnyway"), id="soft ones only"),
    ],
)
def test_skip(bench, waiting):
    """Without hard constraints there is nothing to filter."""
    assert fits(bench, waiting) == "Skip"


def test_selector_that_cannot_be_read(bench):
    """An error that names the problem, not an exception and not a silent match."""
    waiting = pod("p").spread(ZONE, {"matchExpressions": [{"key": "foo", "operator": "Near"}]}).obj()
    bench.cluster(NODES)
    _, status = bench.pre_filter(bench.make(NAME), waiting)

    assert status.code is Code.ERROR
    assert status.message == (
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Near" is not a valid label selector operator'
    )


def test_filter_without_pre_filter_is_an_error(bench):
    """A profile that enables Filter alone gets an exception, which the guard turns into an Error."""
    bench.cluster(NODES)
    plugin = bench.make(NAME)
    with pytest.raises(KeyError):
        plugin.filter(CycleState(), new((ZONE, 1)).obj(), bench.handle.snapshot.infos[0])


def test_thousands_of_constraints(bench):
    """Each is judged; the last one objects."""
    waiting = new(*[(ZONE, 5)] * 2000, (HOST, 1)).obj()
    bench.cluster((A, B), running({"a": 1}))
    assert bench.verdicts(bench.make(NAME), waiting) == {"a": SKEWED, "b": None}


def test_thousands_of_keys_that_no_node_has(bench, monkeypatch):
    """The first of them settles it: no column is built for the others."""
    waiting = new((ZONE, 1), *[(f"key-{i}", 1) for i in range(3000)]).spread("k", FOO, when="ScheduleAnyway").obj()
    snapshot = bench.cluster(NODES)
    asked = []
    label = snapshot.label
    monkeypatch.setattr(snapshot, "label", lambda key: asked.append(key) or label(key))

    assert set(bench.verdicts(bench.make(NAME), waiting).values()) == {MISSING}
    assert set(bench.scores(bench.make(NAME), waiting)) == {0}
    assert set(asked) == {ZONE, "key-0", "k"}
