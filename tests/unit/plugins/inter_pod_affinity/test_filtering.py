"""Filter: facts of upstream's filtering_test.go, and the corners that its code has."""

import pytest

from scheduler.api import Code, CycleState
from scheduler.model.meta import Namespace
from scheduler.plugins.inter_pod_affinity import NAME, REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING
from scheduler.plugins.inter_pod_affinity.plugin import MAX_TERMS, too_many_terms
from scheduler.testing import node, pod
from scheduler.testing.builders import absent, exists, in_, not_in, obj, selector

WEB, DB = {"app": "web"}, {"app": "db"}
NODES = [
    node("a1").labels(zone="a", host="a1"),
    node("a2").labels(zone="a", host="a2"),
    node("b1").labels(zone="b", host="b1"),
    node("bare"),
]
NEAR, APART, REPELLED = REASON_AFFINITY, REASON_ANTI_AFFINITY, REASON_EXISTING
CODES = {
    NEAR: Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    APART: Code.UNSCHEDULABLE,
    REPELLED: Code.UNSCHEDULABLE,
}


def running(name, node_name, labels, namespace="default"):
    return pod(name).in_ns(namespace).labels(labels).on(node_name)


def web(name="p"):
    return pod(name).labels(WEB)


def namespace(name, **labels):
    return obj(Namespace, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}})


def put_namespaces(bench):
    store = bench.handle.stores.of(Namespace)
    for made in (namespace("default"), namespace("red", team="red"), namespace("blue", team="blue")):
        store.put(made)


def reasons(bench, waiting, pods):
    """Node name -> reason or None; "Skip" if PreFilter steps aside."""
    bench.cluster(NODES, pods)
    verdicts = bench.verdicts(bench.make(NAME), waiting.obj())
    if verdicts == "Skip":
        return "Skip"
    for status in verdicts.values():
        assert status is None or status.code is CODES[status.reasons[0]]
    return {name: None if status is None else status.reasons[0] for name, status in verdicts.items()}


def on(a1=None, a2=None, b1=None, bare=None):
    return {"a1": a1, "a2": a2, "b1": b1, "bare": bare}


WEB_ON_A1 = [running("r", "a1", WEB)]
DB_ON_A1 = [running("r", "a1", DB)]


@pytest.mark.parametrize(
    ("waiting", "pods", "expected"),
    [
        pytest.param(pod("p"), [], "Skip", id="no rule at all"),
        pytest.param(pod("p"), WEB_ON_A1, "Skip", id="no rule, other pods"),
        pytest.param(pod("p").pod_affinity("zone", WEB, weight=1), WEB_ON_A1, "Skip", id="preferences do not filter"),
        # affinity
        pytest.param(pod("p").pod_affinity("zone", WEB), WEB_ON_A1, on(b1=NEAR, bare=NEAR), id="the zone of a match"),
        pytest.param(
            pod("p").pod_affinity("host", WEB), WEB_ON_A1, on(a2=NEAR, b1=NEAR, bare=NEAR), id="the host of a match"
        ),
        pytest.param(pod("p").pod_affinity("zone", WEB), DB_ON_A1, on(NEAR, NEAR, NEAR, NEAR), id="no match"),
        pytest.param(
            pod("p").pod_affinity("rack", WEB), WEB_ON_A1, on(NEAR, NEAR, NEAR, NEAR), id="no node has the key"
        ),
        pytest.param(pod("p").pod_affinity("zone"), WEB_ON_A1, on(NEAR, NEAR, NEAR, NEAR), id="no selector, no match"),
        pytest.param(
            pod("p").pod_affinity("zone", {}), DB_ON_A1, on(b1=NEAR, bare=NEAR), id="an empty selector matches any pod"
        ),
        pytest.param(
            pod("p").pod_affinity("zone", [in_("app", "web", "x")]), WEB_ON_A1, on(b1=NEAR, bare=NEAR), id="In matches"
        ),
        pytest.param(
            web().pod_affinity("zone", [not_in("app", "web")]), WEB_ON_A1, on(NEAR, NEAR, NEAR, NEAR), id="NotIn fails"
        ),
        pytest.param(
            pod("p").pod_affinity("zone", [exists("app"), absent("x")]),
            WEB_ON_A1,
            on(b1=NEAR, bare=NEAR),
            id="both hold",
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB),
            [running("r", "a1", WEB, "other")],
            on(NEAR, NEAR, NEAR, NEAR),
            id="a match in another namespace",
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB, namespaces=["other"]),
            [running("r", "a1", WEB, "other")],
            on(b1=NEAR, bare=NEAR),
            id="a match in the named namespace",
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB).pod_affinity("host", DB),
            [running("r", "a1", WEB), running("s", "a1", DB)],
            on(NEAR, NEAR, NEAR, NEAR),
            id="one pod must match all terms",
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB).pod_affinity("host", {"tier": "x"}),
            [running("r", "a1", {**WEB, "tier": "x"})],
            on(a2=NEAR, b1=NEAR, bare=NEAR),
            id="all terms, each over its own topology",
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB).pod_affinity("zone", {"tier": "x"}),
            [running("r", "b1", {**WEB, "tier": "x"})],
            on(a1=NEAR, a2=NEAR, bare=NEAR),
            id="all terms over one topology",
        ),
        # the first of its kind
        pytest.param(web().pod_affinity("zone", WEB), [], on(bare=NEAR), id="first pod: nodes with the key"),
        pytest.param(web().pod_affinity("zone", WEB), DB_ON_A1, on(bare=NEAR), id="first pod beside others"),
        pytest.param(
            web().pod_affinity("zone", WEB),
            [running("r", "bare", WEB)],
            on(bare=NEAR),
            id="matches outside the topology",
        ),
        pytest.param(
            web().pod_affinity("zone", WEB).pod_affinity("zone", DB),
            [],
            on(NEAR, NEAR, NEAR, NEAR),
            id="not first: does not match all of its terms",
        ),
        pytest.param(
            web().pod_affinity("zone", WEB), WEB_ON_A1, on(b1=NEAR, bare=NEAR), id="not first: another is here"
        ),
        pytest.param(
            web().pod_affinity("zone", WEB, namespaces=["other"]),
            [],
            on(NEAR, NEAR, NEAR, NEAR),
            id="not first: its own namespace is not meant",
        ),
        # anti-affinity
        pytest.param(
            pod("p").pod_anti_affinity("zone", WEB), WEB_ON_A1, on(APART, APART), id="not the zone of a match"
        ),
        pytest.param(pod("p").pod_anti_affinity("host", WEB), WEB_ON_A1, on(APART), id="not the host of a match"),
        pytest.param(pod("p").pod_anti_affinity("zone", WEB), DB_ON_A1, on(), id="nothing to avoid"),
        pytest.param(pod("p").pod_anti_affinity("zone"), WEB_ON_A1, on(), id="no selector, nothing to avoid"),
        pytest.param(
            pod("p").pod_anti_affinity("zone", WEB).pod_anti_affinity("host", DB),
            [running("r", "b1", DB), running("s", "a1", WEB)],
            on(APART, APART, APART),
            id="each term on its own",
        ),
        pytest.param(
            pod("p").pod_anti_affinity("host", WEB).pod_anti_affinity("host", DB),
            [running("r", "b1", DB), running("s", "a1", WEB)],
            on(a1=APART, b1=APART),
            id="two terms over one topology",
        ),
        # symmetry
        pytest.param(
            web(),
            [running("r", "a1", DB).pod_anti_affinity("zone", WEB)],
            on(REPELLED, REPELLED),
            id="repelled by a pod",
        ),
        pytest.param(
            pod("p"), [running("r", "a1", DB).pod_anti_affinity("zone", WEB)], "Skip", id="another is repelled"
        ),
        pytest.param(
            web(), [running("r", "a1", DB).pod_anti_affinity("rack", WEB)], "Skip", id="repelled over a key nobody has"
        ),
        pytest.param(
            web(), [running("r", "a1", DB).pod_anti_affinity("zone", WEB, weight=9)], "Skip", id="only a preference"
        ),
        pytest.param(
            web(), [running("r", "a1", DB, "other").pod_anti_affinity("zone", WEB)], "Skip", id="of another namespace"
        ),
        pytest.param(
            web(),
            [running("r", "a1", DB, "other").pod_anti_affinity("host", WEB, namespaces=["default"])],
            on(REPELLED),
            id="names our namespace",
        ),
        pytest.param(
            web(),
            [
                running("r", "a1", DB).pod_anti_affinity("host", WEB),
                running("s", "b1", DB).pod_anti_affinity("zone", {}),
            ],
            on(a1=REPELLED, b1=REPELLED),
            id="repelled by two over two keys",
        ),
        # the order of the rules
        pytest.param(
            web().pod_anti_affinity("host", WEB).pod_affinity("zone", WEB),
            [running("r", "a1", WEB), running("s", "a2", DB).pod_anti_affinity("host", WEB)],
            on(APART, REPELLED, NEAR, NEAR),
            id="affinity, then anti-affinity, then symmetry",
        ),
        pytest.param(
            web().pod_anti_affinity("zone", WEB),
            [running("r", "a1", WEB).pod_anti_affinity("zone", WEB)],
            on(APART, APART),
            id="both repel: the own rule is told",
        ),
    ],
)
def test_filter(bench, waiting, pods, expected):
    """Reason by node; both forms agree."""
    assert reasons(bench, waiting, pods) == expected


RED, ALL, NOT_RED = selector({"team": "red"}), {}, selector([not_in("team", "red")])


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        pytest.param({"namespaceSelector": RED}, "red", id="selected by label"),
        pytest.param({"namespaceSelector": ALL}, "red blue other", id="all of them"),
        pytest.param({"namespaceSelector": RED, "namespaces": ["blue"]}, "red blue", id="selected or named"),
        pytest.param({"namespaceSelector": selector({"team": "green"})}, "", id="none of them"),
        pytest.param(
            {"namespaceSelector": NOT_RED}, "red blue other", id="parity: a selector that only excludes means all"
        ),
    ],
)
def test_namespace_selector_of_the_incoming_pod(bench, made, fits):
    """It stands for the namespaces that it selects; ``other`` is unknown and has no labels."""
    put_namespaces(bench)
    for name in ("red", "blue", "other"):
        waiting = pod("p").pod_affinity("zone", WEB, **made)
        verdicts = reasons(bench, waiting, [running("r", "a1", WEB, name)])
        assert (verdicts["a2"] is None) is (name in fits.split()), name


@pytest.mark.parametrize(
    ("made", "repelled"),
    [
        pytest.param({"namespaceSelector": RED}, "red", id="selected by label"),
        pytest.param({"namespaceSelector": ALL}, "red blue other", id="all of them"),
        pytest.param({"namespaceSelector": RED, "namespaces": ["blue"]}, "red blue", id="selected or named"),
        pytest.param({"namespaceSelector": NOT_RED}, "blue other", id="excluded by label"),
    ],
)
def test_namespace_selector_of_a_running_pod(bench, made, repelled):
    """It is asked about the labels of the incoming pod's namespace."""
    put_namespaces(bench)
    for name in ("red", "blue", "other"):
        pods = [running("r", "a1", {}, "default").pod_anti_affinity("zone", WEB, **made)]
        verdicts = reasons(bench, web().in_ns(name), pods)
        assert (verdicts != "Skip") is (name in repelled.split()), name


def test_changed_namespaces_are_seen(bench):
    """Resolved names are kept only as long as no namespace changes."""
    store = bench.handle.stores.of(Namespace)
    bench.cluster(NODES, [running("r", "a1", WEB, "shop")])
    plugin, waiting = bench.make(NAME), pod("p").pod_affinity("zone", WEB, namespaceSelector=RED).obj()
    for labels, fits in (({}, False), ({"team": "red"}, True), ({"team": "red"}, True), ({"team": "blue"}, False)):
        store.put(namespace("shop", **labels))
        assert (bench.verdicts(plugin, waiting)["a1"] is None) is fits
    store.put(namespace("shop", team="red"))
    assert bench.verdicts(plugin, waiting)["a1"] is None
    store.remove(store.get("shop"))
    assert bench.verdicts(plugin, waiting)["a1"] is not None


def test_terminating_pods_count(bench):
    """A pod that is being deleted still runs."""
    assert reasons(bench, pod("p").pod_anti_affinity("host", WEB), [running("r", "a1", WEB).terminating()]) == on(APART)


def test_selectors_that_cannot_be_read(bench):
    """The pod is rejected for good, with upstream's text; such terms of running pods are void."""
    bad = [{"key": "app", "operator": "Sometimes"}]
    bench.cluster(NODES, [running("r", "a1", DB).pod_anti_affinity("zone", bad).pod_anti_affinity("zone", WEB)])
    plugin = bench.make(NAME)
    _, status = bench.pre_filter(plugin, pod("p").pod_anti_affinity("zone", bad).obj())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (
        'parsing pod: requiredAntiAffinityTerms: "Sometimes" is not a valid label selector operator',
    )
    assert bench.verdicts(plugin, web().obj()) == "Skip"


def test_too_many_terms(bench):
    """Hundreds of terms are evaluated, thousands are refused with a reason."""
    bench.cluster(NODES, WEB_ON_A1)
    plugin, waiting = bench.make(NAME), pod("p")
    for i in range(MAX_TERMS):
        waiting = waiting.pod_anti_affinity("zone", {"app": f"app-{i}"})
    assert set(bench.verdicts(plugin, waiting.obj()).values()) == {None}
    _, status = bench.pre_filter(plugin, waiting.pod_affinity("zone", WEB, weight=1).obj())
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == (too_many_terms(MAX_TERMS + 1),)


# --- what if -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "pods", "other", "before", "after"),
    [
        pytest.param(
            pod("p").pod_anti_affinity("zone", WEB), [], running("x", "a1", WEB), None, APART, id="a match comes"
        ),
        pytest.param(
            pod("p").pod_anti_affinity("zone", WEB), [], running("x", "a1", DB), None, None, id="another comes"
        ),
        pytest.param(pod("p").pod_affinity("zone", WEB), [], running("x", "a1", WEB), NEAR, None, id="a friend comes"),
        pytest.param(
            web().pod_affinity("zone", WEB),
            [],
            running("x", "b1", WEB),
            None,
            NEAR,
            id="first no more: a friend elsewhere",
        ),
        pytest.param(
            web(),
            [running("r", "b1", DB).pod_anti_affinity("zone", WEB)],
            running("x", "a1", DB).pod_anti_affinity("zone", WEB),
            None,
            REPELLED,
            id="one that repels comes, over a known key",
        ),
        pytest.param(
            web(),
            [running("r", "b1", DB).pod_anti_affinity("zone", WEB)],
            running("x", "a1", DB).pod_anti_affinity("host", WEB),
            None,
            REPELLED,
            id="one that repels comes, over a new key",
        ),
        pytest.param(
            pod("p").pod_anti_affinity("zone", WEB),
            [],
            running("x", "bare", WEB),
            None,
            None,
            id="on a node without the key",
        ),
    ],
)
def test_dry_run(bench, waiting, pods, other, before, after):
    """A pod that comes changes the clone alone; when it goes again, everything is as before."""
    snapshot = bench.cluster(NODES, pods)
    plugin, pod_, state = bench.make(NAME), waiting.obj(), CycleState()
    plugin.pre_filter(state, pod_, snapshot)
    node_of_other = snapshot.get(other.obj().node_name)

    def reason(of):
        status = plugin.filter(of, pod_, snapshot.get("a1"))
        of_all = plugin.filter_all(of, pod_, snapshot)
        assert bool(of_all.ok[snapshot.row("a1")]) is (status is None), "both forms agree"
        return None if status is None else status.reasons[0]

    clone = state.clone()
    assert reason(state) == before
    assert plugin.add_pod(clone, pod_, other.obj(), node_of_other) is None
    assert (reason(clone), reason(state)) == (after, before)
    second = clone.clone()
    assert plugin.remove_pod(second, pod_, other.obj(), node_of_other) is None
    assert (reason(second), reason(clone), reason(state)) == (before, after, before)
