"""Score: facts of upstream's scoring_test.go."""

import pytest

from scheduler.config.args import InterPodAffinityArgs
from scheduler.model.meta import Namespace
from scheduler.plugins.inter_pod_affinity import NAME
from scheduler.testing import node, pod
from scheduler.testing.builders import not_in, obj, selector

WEB, DB = {"app": "web"}, {"app": "db"}
NODES = [
    node("a1").labels(zone="a", host="a1"),
    node("a2").labels(zone="a", host="a2"),
    node("b1").labels(zone="b", host="b1"),
]
HARD_0, IGNORE = (
    InterPodAffinityArgs(hard_pod_affinity_weight=0),
    InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True),
)
HARD_9 = InterPodAffinityArgs(hard_pod_affinity_weight=9)


def running(node_name, labels, namespace="default"):
    return pod("r").in_ns(namespace).labels(labels).on(node_name)


def web():
    return pod("p").labels(WEB)


def scores(bench, waiting, pods, args=None):
    bench.cluster(NODES, pods)
    return bench.scores(bench.make(NAME, args), waiting.obj())


@pytest.mark.parametrize(
    ("waiting", "pods", "args", "expected"),
    [
        pytest.param(pod("p"), [], None, "Skip", id="nothing to prefer"),
        pytest.param(pod("p"), [running("a1", WEB)], None, "Skip", id="others prefer nothing"),
        pytest.param(pod("p").pod_affinity("zone", WEB, weight=5), [], None, "Skip", id="nobody to be near to"),
        pytest.param(
            pod("p").pod_affinity("zone", WEB, weight=5), [running("a1", WEB)], None, [100, 100, 0], id="near a match"
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB, weight=5),
            [running("a1", DB)],
            None,
            "Skip",
            id="no match: nothing added",
        ),
        pytest.param(
            pod("p").pod_affinity("rack", WEB, weight=5), [running("a1", WEB)], None, "Skip", id="no node has the key"
        ),
        pytest.param(
            pod("p").pod_anti_affinity("host", WEB, weight=5), [running("a1", WEB)], None, [0, 100, 100], id="apart"
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB, weight=8).pod_affinity("host", DB, weight=4),
            [running("a1", WEB), running("a2", DB)],
            None,
            [66, 100, 0],
            id="weights add up over keys, halves are cut off",
        ),
        pytest.param(
            pod("p").pod_affinity("host", WEB, weight=5),
            [running("a1", WEB), running("a1", WEB), running("b1", WEB)],
            None,
            [100, 0, 50],
            id="each match counts",
        ),
        pytest.param(
            pod("p").pod_affinity("zone", WEB, weight=5).pod_anti_affinity("zone", WEB, weight=5),
            [running("a1", WEB)],
            None,
            [0, 0, 0],
            id="what cancels out is not nothing",
        ),
        # the preferences of others
        pytest.param(
            web(),
            [running("a1", DB).pod_affinity("zone", WEB, weight=5)],
            None,
            [100, 100, 0],
            id="another wants us near",
        ),
        pytest.param(
            web(), [running("a1", DB).pod_anti_affinity("host", WEB, weight=5)], None, [0, 100, 100], id="or away"
        ),
        pytest.param(
            pod("p"),
            [running("a1", DB).pod_affinity("zone", WEB, weight=5)],
            None,
            "Skip",
            id="another wants others near",
        ),
        pytest.param(
            web(), [running("a1", DB).pod_affinity("zone", WEB)], None, [100, 100, 0], id="another needs us near"
        ),
        pytest.param(
            web(), [running("a1", DB).pod_affinity("zone", WEB)], HARD_0, "Skip", id="which may weigh nothing"
        ),
        pytest.param(
            web(),
            [running("a1", DB).pod_affinity("host", WEB), running("a2", DB).pod_affinity("host", WEB, weight=3)],
            HARD_9,
            [100, 33, 0],
            id="or much",
        ),
        pytest.param(
            web(),
            [running("a1", DB).pod_anti_affinity("zone", WEB)],
            None,
            "Skip",
            id="required anti-affinity does not score",
        ),
        pytest.param(
            web(),
            [running("a1", DB).pod_affinity("zone", WEB, weight=5)],
            IGNORE,
            "Skip",
            id="others' preferences ignored",
        ),
        pytest.param(web(), [running("a1", DB).pod_affinity("zone", WEB)], IGNORE, "Skip", id="their needs too"),
        pytest.param(
            web().pod_affinity("host", WEB, weight=1),
            [running("a1", DB).pod_affinity("zone", WEB, weight=5)],
            IGNORE,
            [100, 100, 0],
            id="parity: not ignored by a pod with preferences",
        ),
        # both sides
        pytest.param(
            web().pod_affinity("zone", DB, weight=6),
            [running("a1", DB).pod_anti_affinity("host", WEB, weight=3), running("b1", DB)],
            None,
            [0, 100, 100],
            id="both sides add up",
        ),
    ],
)
def test_scores(bench, waiting, pods, args, expected):
    """Normalized scores by node; both forms agree."""
    assert scores(bench, waiting, pods, args) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(selector({"team": "red"}), [100, 0, 0], id="selected by label"),
        pytest.param(selector({"team": "green"}), "Skip", id="none selected"),
        pytest.param({}, [100, 0, 100], id="all, known or not"),
        pytest.param(
            selector([not_in("team", "red")]), [100, 0, 100], id="parity: a selector that only excludes means all"
        ),
    ],
)
def test_namespace_selector_of_the_incoming_pod(bench, wanted, expected):
    """It stands for the namespaces that it selects."""
    manifest = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "red", "labels": {"team": "red"}}}
    bench.handle.stores.of(Namespace).put(obj(Namespace, manifest))
    waiting = pod("p").pod_affinity("host", WEB, weight=5, namespaceSelector=wanted)
    assert scores(bench, waiting, [running("a1", WEB, "red"), running("b1", WEB, "unknown")]) == expected


@pytest.mark.parametrize(
    ("labels", "expected"), [({"team": "red"}, [100, 100, 0]), ({}, "Skip")], ids=["selected", "not"]
)
def test_namespace_selector_of_a_running_pod(bench, labels, expected):
    """It is asked about the labels of the incoming pod's namespace."""
    manifest = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default", "labels": labels}}
    bench.handle.stores.of(Namespace).put(obj(Namespace, manifest))
    wants_red = {"namespaceSelector": selector({"team": "red"})}
    assert (
        scores(bench, web(), [running("a1", DB, "other").pod_affinity("zone", WEB, weight=5, **wants_red)]) == expected
    )


def test_all_nodes_count_not_only_feasible_ones(bench):
    """A match on a node that the pod cannot use still makes its zone attractive."""
    snapshot = bench.cluster(NODES, [running("a1", WEB)])
    plugin, waiting = bench.make(NAME), pod("p").pod_affinity("zone", WEB, weight=5).obj()
    from scheduler.api import CycleState

    feasible, state = snapshot.take([snapshot.row("a2"), snapshot.row("b1")]), CycleState()
    assert plugin.pre_score(state, waiting, feasible) is None
    assert plugin.score_all(state, waiting, feasible).tolist() == [5, 0]
