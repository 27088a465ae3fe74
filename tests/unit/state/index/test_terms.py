"""The index of carried terms: counts by topology value, and that a pod meets only terms that may select it."""

import numpy as np
import pytest

from scheduler.state.cache.cache import Cache
from scheduler.state.cache.snapshot import Snapshot
from scheduler.state.index.carried import Carried
from scheduler.state.index.term_buckets import TermBuckets
from scheduler.state.index.term_counts import DenseCounts, TermCounts
from scheduler.state.index.terms import TermIndex
from scheduler.testing import node, pod
from scheduler.testing.builders import exists, in_, not_in, selector

WEB = {"app": "web"}
ZONE_A = {"zone": "a"}


def counts(table):
    return [each.counts for each in table]


def term(wanted, namespace="default", **fields):
    return (
        pod()
        .in_ns(namespace)
        .pod_anti_affinity("zone", wanted, **fields)
        .obj()
        .affinity_terms.required_anti_affinity[0]
    )


def carried(wanted, **fields):
    return Carried(term(wanted, **fields), None)


def test_equal_terms_are_counted_together():
    """Whoever carries it, a term has one entry, with one count for each value of its key."""
    index = TermIndex()
    for name, labels in (("a", ZONE_A), ("b", ZONE_A), ("c", {"zone": "b"})):
        index.add(pod(name).pod_anti_affinity("zone", WEB).obj(), labels)
    assert counts(index.repelling) == [{"a": 2, "b": 1}]
    assert len(index.preferring) == 0


def test_kinds_and_weights_are_kept_apart():
    """Required anti-affinity repels; the other three kinds are for scores, anti-affinity with a negative weight."""
    index = TermIndex()
    made = pod().pod_affinity("zone", WEB).pod_affinity("zone", WEB, weight=3)
    index.add(made.pod_anti_affinity("zone", WEB).pod_anti_affinity("zone", WEB, weight=3).obj(), ZONE_A)
    assert [each.weight for each in index.repelling] == [None]
    assert [each.weight for each in index.preferring] == [None, 3, -3]


@pytest.mark.parametrize(
    ("made", "labels"),
    [
        pytest.param(pod().pod_anti_affinity("zone", WEB), {"rack": "1"}, id="the node lacks the key"),
        pytest.param(pod().pod_anti_affinity("zone"), ZONE_A, id="the term selects nothing"),
        pytest.param(pod(), ZONE_A, id="a pod without affinity"),
    ],
)
def test_what_is_not_counted(made, labels):
    """Terms that cannot matter take no room."""
    index = TermIndex()
    index.add(made.obj(), labels)
    assert (len(index.repelling), len(index.preferring)) == (0, 0)
    index.remove(made.obj(), labels)


def test_a_term_twice_in_a_pod_counts_twice():
    """Parity: upstream adds the weights of both."""
    index = TermIndex()
    made = pod().pod_affinity("zone", WEB, weight=5).pod_affinity("zone", WEB, weight=5).obj()
    index.add(made, ZONE_A)
    assert counts(index.preferring) == [{"a": 2}]
    index.remove(made, ZONE_A)
    assert len(index.preferring) == 0


def test_relabelled_node():
    """Carriers move with their node's labels, appear with the node and vanish with it."""
    index = TermIndex()
    made = pod().pod_anti_affinity("zone", WEB).obj()
    for old, new, expected in (
        (None, ZONE_A, [{"a": 1}]),
        (ZONE_A, ZONE_A, [{"a": 1}]),
        (ZONE_A, {"zone": "b"}, [{"b": 1}]),
        ({"zone": "b"}, {}, []),
        ({}, ZONE_A, [{"a": 1}]),
        (ZONE_A, None, []),
    ):
        index.relabel([made], old, new)
        assert counts(index.repelling) == expected


def test_new_version_of_a_pod():
    """A version with the same terms changes nothing, one with others moves the count."""
    index = TermIndex()
    old = pod().pod_anti_affinity("zone", WEB)
    index.add(old.obj(), ZONE_A)
    (entry,) = index.repelling
    index.replace(old.obj(), old.label("x", "y").obj(), ZONE_A)
    assert list(index.repelling) == [entry]
    index.replace(old.obj(), pod().pod_anti_affinity("zone", {"app": "db"}).obj(), ZONE_A)
    assert [each.term for each in index.repelling] == [term({"app": "db"})]


PAIR = [in_("app", "web")]
ALTERNATIVES = [in_("app", "web", "db")]


@pytest.mark.parametrize(
    ("made", "namespace", "labels", "is_met"),
    [
        pytest.param(carried(WEB), "default", WEB, True, id="the pair"),
        pytest.param(carried(WEB), "default", {"app": "db"}, False, id="another value"),
        pytest.param(carried(WEB), "default", {}, False, id="no labels"),
        pytest.param(carried(WEB), "other", WEB, False, id="another namespace"),
        pytest.param(carried(PAIR), "default", WEB, True, id="a pair by expression"),
        pytest.param(carried(PAIR), "default", {"app": "db"}, False, id="another value by expression"),
        pytest.param(carried(ALTERNATIVES), "default", {"app": "db"}, True, id="one of two values"),
        pytest.param(carried(ALTERNATIVES), "default", {"app": "x"}, False, id="none of two values"),
        pytest.param(carried([in_("app", *map(str, range(9)))]), "default", {}, True, id="many values: for everyone"),
        pytest.param(carried([exists("app")]), "default", {}, True, id="no pair demanded: for everyone"),
        pytest.param(carried({}), "default", {"x": "y"}, True, id="selects all"),
        pytest.param(carried({}), "other", {"x": "y"}, False, id="selects all, but in its namespace"),
        pytest.param(carried(WEB, namespaces=["a", "b"]), "b", WEB, True, id="second of the named namespaces"),
        pytest.param(carried(WEB, namespaceSelector={}), "any", WEB, True, id="all namespaces"),
        pytest.param(carried(WEB, namespaceSelector={}), "any", {}, False, id="all namespaces, without the pair"),
    ],
)
def test_candidates(made, namespace, labels, is_met):
    """A pod meets a term in its namespace if it has the one pair under which the term stands."""
    buckets = TermBuckets()
    buckets.add(made)
    assert (list(buckets.candidates(namespace, labels)) == [made]) is is_met
    buckets.remove(made)
    assert list(buckets.candidates(namespace, labels)) == []


def test_terms_stand_under_their_rarest_pair():
    """Of thousands of terms that share a label a pod meets the few that share the other one too."""
    buckets = TermBuckets()
    for i in range(2000):
        buckets.add(carried({"tier": "front", "app": f"app-{i}"}))
    met = list(buckets.candidates("default", {"tier": "front", "app": "app-7"}))
    assert len(met) <= 2
    assert any(each.term.selector.match_labels["app"] == "app-7" for each in met)


def number_selecting(table, asking, namespace_labels):
    """How many carriers of terms that select the pod there are."""
    return sum(sum(each.counts.values()) for each in table.selecting(asking.obj(), namespace_labels))


def test_the_whole_term_is_asked():
    """Namespace labels and the rest of the selector decide among the candidates."""
    index = TermIndex()
    made = pod().in_ns("a").pod_anti_affinity("zone", [in_("app", "web"), not_in("tier", "x")])
    index.add(made.obj(), ZONE_A)
    index.add(pod().pod_anti_affinity("zone", WEB, namespaceSelector=selector({"team": "red"})).obj(), ZONE_A)
    asking = pod().in_ns("a").labels(WEB)
    assert number_selecting(index.repelling, asking, {}) == 1
    assert number_selecting(index.repelling, asking, {"team": "red"}) == 2
    assert number_selecting(index.repelling, asking.label("tier", "x"), {"team": "red"}) == 1
    assert index.preferring.selecting(asking.obj(), {}) == ()


@pytest.mark.parametrize("number", [3, 40], ids=["few values", "many values"])
@pytest.mark.parametrize("factor", [1, -5])
def test_sums_by_label_code(number, factor):
    """Counts land on the codes of their values; values that no node has are left out, others' sums stay."""
    cache, snapshot = Cache(), Snapshot()
    for i in range(number + 1):
        cache.add_node(node(f"n{i}").label("zone", f"z{i}").obj())
    cache.update_snapshot(snapshot)
    column = snapshot.label("zone")
    made = TermCounts("zone", True, DenseCounts())
    for i in range(1, number + 1):
        made.add(f"z{i}", 2, 1)
    made.add("gone", 1, 1)
    for _ in range(2):
        sums = np.ones(len(column.values) + 1, np.int64)
        made.add_to(sums, column, factor)
        assert sums[column.codes].tolist() == [1] + [1 + 2 * factor] * number
        assert sums[-1] == 1
    made.add("z1", -2, 1)
    sums = np.zeros(len(column.values) + 1, np.int64)
    made.add_to(sums, column, factor)
    assert sums[column.codes].tolist() == [0, 0] + [2 * factor] * (number - 1)


WEB_POD = pod("p").labels(WEB)


def sums(table, asking=WEB_POD):
    return {(each.topology_key, each.is_required): each.counts for each in table.selecting(asking.obj(), {})}


def test_terms_of_one_key_add_up():
    """Required terms are counted, preferences are added by weight; other keys stand apart."""
    index = TermIndex()
    near = pod().pod_affinity("zone", WEB).pod_affinity("zone", {}, weight=5).pod_anti_affinity("zone", WEB, weight=2)
    index.add(near.pod_affinity("rack", WEB, weight=9).obj(), {"zone": "a", "rack": "1"})
    index.add(pod().pod_affinity("zone", {}).pod_affinity("zone", {"app": "db"}, weight=50).obj(), ZONE_A)
    assert sums(index.preferring) == {("zone", True): {"a": 2}, ("zone", False): {"a": 3}, ("rack", False): {"1": 9}}


def test_what_cancels_out_is_still_there():
    """A sum of 0 with carriers behind it is something else than no carriers."""
    index = TermIndex()
    made = pod().pod_affinity("zone", WEB, weight=5).pod_anti_affinity("zone", WEB, weight=5).obj()
    index.add(made, ZONE_A)
    assert sums(index.preferring) == {("zone", False): {"a": 0}}
    index.remove(made, ZONE_A)
    assert sums(index.preferring) == {}


def test_questions_follow():
    """An answer follows carriers that come and go, and terms that name new label keys."""
    index = TermIndex()
    first, second = (pod().pod_anti_affinity("zone", wanted).obj() for wanted in (WEB, {"tier": "x"}))
    tiered = WEB_POD.label("tier", "x")
    index.add(first, ZONE_A)
    for asking in (WEB_POD, tiered):
        assert sums(index.repelling, asking) == {("zone", True): {"a": 1}}
    index.add(second, {"zone": "b"})
    assert sums(index.repelling) == {("zone", True): {"a": 1}}
    assert sums(index.repelling, tiered) == {("zone", True): {"a": 1, "b": 1}}
    index.remove(first, ZONE_A)
    assert sums(index.repelling) == {}
    assert sums(index.repelling, tiered) == {("zone", True): {"b": 1}}
    index.remove(second, {"zone": "b"})
    assert sums(index.repelling, tiered) == {}


def test_labels_that_no_selector_names_make_no_question():
    """Pods that differ in a label of their own (an index, a job's name) share their answer."""
    index = TermIndex()
    index.add(pod().pod_anti_affinity("zone", WEB).obj(), ZONE_A)
    for i in range(50):
        assert sums(index.repelling, WEB_POD.label("index", f"{i}")) == {("zone", True): {"a": 1}}
    assert len(index.repelling._questions._questions) == 1


def test_questions_that_were_not_asked_for_long():
    """Whether it follows the log, counts anew or the log is too short: the answer is the same."""
    index = TermIndex()
    carrier = pod().pod_anti_affinity("zone", WEB).obj()
    for number in (1, 70, 300, 20_000):
        sums(index.repelling)
        for i in range(number):
            index.add(carrier, {"zone": f"z{i % 7}"})
            if i % 3:
                index.remove(carrier, {"zone": f"z{i % 7}"})
        (total,) = (sum(counts.values()) for counts in sums(index.repelling).values())
        assert total == sum(sum(each.counts.values()) for each in index.repelling)


def test_old_questions_give_way():
    """The number of kept answers is bounded; a question that gave way is answered anew."""
    index = TermIndex()
    index.add(pod().pod_anti_affinity("zone", [exists("app")]).obj(), ZONE_A)
    for i in range(400):
        assert sums(index.repelling, pod().label("app", f"{i}")) == {("zone", True): {"a": 1}}
    questions = index.repelling._questions
    assert len(questions._questions) == len(questions._sizes) <= 256
    assert questions._num_entries == len(questions._questions)
    assert sums(index.repelling, pod().label("app", "0")) == {("zone", True): {"a": 1}}
