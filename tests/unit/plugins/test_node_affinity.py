"""NodeAffinity: facts of upstream's node_affinity_test.go."""

import pytest

from scheduler.api import ActionType, ClusterEvent, Code, EventResource, QueueingHint
from scheduler.config.args import NodeAffinityArgs
from scheduler.plugins.node_affinity import NAME, REASON_CONFLICT, REASON_ENFORCED, REASON_POD
from scheduler.state.changes import NODE_ADD
from scheduler.testing import node, pod
from scheduler.testing.builders import absent, all_of, exists, field_in, field_not_in, gt, in_, lt, not_in

NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def requires(*terms):
    return pod("p").requires_node(*terms)


def other_field(operator, value):
    return {"matchFields": [{"key": "metadata.namespace", "operator": operator, "values": [value]}]}


def added(required=None, preferred=None):
    """Args with an affinity that every pod of the profile has."""
    made = pod("x")
    if required is not None:
        made = made.requires_node(required)
    if preferred is not None:
        made = made.prefers_node(*preferred)
    return NodeAffinityArgs(made.obj().spec.affinity.node_affinity)


@pytest.mark.parametrize(
    ("waiting", "labels", "fits"),
    [
        pytest.param(pod("p").node_selector(foo="bar"), {}, False, id="missing label"),
        pytest.param(pod("p").node_selector(foo="bar"), {"foo": "bar"}, True, id="same label"),
        pytest.param(pod("p").node_selector(foo="bar"), {"foo": "bar", "baz": "blah"}, True, id="more labels"),
        pytest.param(pod("p").node_selector(foo="bar", baz="blah"), {"foo": "bar"}, False, id="one of two labels"),
        pytest.param(requires(in_("foo", "bar", "value2")), {"foo": "bar"}, True, id="In"),
        pytest.param(requires(gt("kernel-version", 204)), {"kernel-version": "206"}, True, id="Gt"),
        pytest.param(requires(lt("kernel-version", 204)), {"kernel-version": "206"}, False, id="Lt"),
        pytest.param(requires(gt("kernel-version", 204)), {"kernel-version": "old"}, False, id="Gt of a word"),
        pytest.param(requires(not_in("mem-type", "DDR", "DDR2")), {"mem-type": "DDR3"}, True, id="NotIn"),
        pytest.param(requires(not_in("mem-type", "DDR", "DDR2")), {}, True, id="NotIn and no label"),
        pytest.param(requires(exists("GPU")), {"GPU": "NVIDIA-GRID-K1"}, True, id="Exists"),
        pytest.param(requires(exists("GPU")), {}, False, id="Exists and no label"),
        pytest.param(requires(absent("GPU")), {}, True, id="DoesNotExist"),
        pytest.param(requires(absent("GPU")), {"GPU": "x"}, False, id="DoesNotExist and a label"),
        pytest.param(requires(in_("foo", "v1", "v2")), {"foo": "bar"}, False, id="In and another value"),
        pytest.param(pod("p").set(REQUIRED, {"nodeSelectorTerms": []}), {"foo": "bar"}, False, id="no terms"),
        pytest.param(pod("p").set(REQUIRED, {"nodeSelectorTerms": [{}]}), {"foo": "bar"}, False, id="an empty term"),
        pytest.param(
            pod("p").set(REQUIRED, {"nodeSelectorTerms": [{"matchExpressions": []}]}),
            {"foo": "bar"},
            False,
            id="a term without expressions",
        ),
        pytest.param(pod("p"), {"foo": "bar"}, "Skip", id="no affinity"),
        pytest.param(pod("p").set("spec.affinity.nodeAffinity", {}), {"foo": "bar"}, "Skip", id="empty node affinity"),
        pytest.param(
            requires(all_of(exists("GPU"), not_in("GPU", "AMD", "INTER"))),
            {"GPU": "NVIDIA-GRID-K1"},
            True,
            id="all expressions of a term",
        ),
        pytest.param(
            requires(all_of(exists("GPU"), in_("GPU", "AMD"))),
            {"GPU": "NVIDIA-GRID-K1"},
            False,
            id="one of a term's two",
        ),
        pytest.param(
            requires(in_("foo", "bar", "value2"), in_("diffkey", "wrong", "value2")),
            {"foo": "bar"},
            True,
            id="terms are ORed",
        ),
        pytest.param(
            pod("p").node_selector(foo="bar").requires_node(exists("foo")),
            {"foo": "bar"},
            True,
            id="selector and affinity",
        ),
        pytest.param(
            pod("p").node_selector(foo="bar").requires_node(exists("foo")),
            {"foo": "barrrrrr"},
            False,
            id="affinity alone",
        ),
        pytest.param(requires(in_("foo", "invalid value: ___@#$%^")), {"foo": "bar"}, False, id="an invalid value"),
        pytest.param(
            requires(in_("foo", "{{.bad-value.}}"), in_("foo", "bar")),
            {"foo": "bar"},
            True,
            id="a bad term beside a good one",
        ),
        pytest.param(
            requires({"key": "foo", "operator": "Near", "values": []}), {"foo": "bar"}, False, id="an unknown operator"
        ),
    ],
)
def test_filter_by_labels(bench, waiting, labels, fits):
    """A mismatch is final: no eviction changes a label."""
    bench.cluster([node("n").labels(labels)])
    plugin, obj = bench.make(NAME), waiting.obj()
    status = bench.verdict(plugin, obj)
    if fits == "Skip":
        assert status == "Skip"
        assert bench.verdict(plugin, obj, pre_filter=False) is None
    elif fits:
        assert status is None
    else:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_POD,))
        assert bench.verdict(plugin, obj, pre_filter=False) == status, "PreFilter is not needed for the verdict"


@pytest.mark.parametrize(
    ("waiting", "named", "fitting"),
    [
        pytest.param(requires(field_in("n1")), {"n1"}, ["n1"], id="a named node"),
        pytest.param(requires(field_in("gone")), {"gone"}, [], id="a node that does not exist"),
        pytest.param(
            requires(field_in("n1"), in_("foo", "bar")), None, ["n0", "n1"], id="a second term without a name"
        ),
        pytest.param(requires(all_of(field_in("n1"), in_("foo", "bar"))), {"n1"}, [], id="the name without the label"),
        pytest.param(requires(all_of(field_in("n0"), in_("foo", "bar"))), {"n0"}, ["n0"], id="name and label"),
        pytest.param(
            requires(all_of(field_in("n0"), in_("foo", "bar")), field_in("n1")),
            {"n0", "n1"},
            ["n0", "n1"],
            id="the union over terms",
        ),
        pytest.param(
            requires(all_of(field_in("n0"), field_in("n1")), field_in("n2")),
            {"n2"},
            ["n2"],
            id="the intersection inside a term",
        ),
        pytest.param(requires(field_not_in("n0")), None, ["n1", "n2"], id="NotIn names nobody"),
        pytest.param(requires(field_in("n0", "n1")), {"n0", "n1"}, [], id="two names in one field make a bad term"),
        pytest.param(requires(other_field("In", "")), None, ["n0", "n1", "n2"], id="another field is empty"),
        pytest.param(requires(other_field("In", "x")), None, [], id="another field is no text"),
        pytest.param(
            requires(other_field("NotIn", "x")), None, ["n0", "n1", "n2"], id="another field is not that text"
        ),
        pytest.param(requires(other_field("Exists", "x")), None, [], id="fields know In and NotIn only"),
    ],
)
def test_filter_by_name(bench, waiting, named, fitting):
    """Terms that all name their nodes narrow the search to those; the verdicts are the same without."""
    bench.cluster([node("n0").label("foo", "bar"), node("n1"), node("n2")])
    plugin = bench.make(NAME)
    names, status = bench.pre_filter(plugin, waiting.obj())
    assert status is None
    assert names == named
    verdicts = bench.verdicts(plugin, waiting.obj())
    assert [name for name, verdict in verdicts.items() if verdict is None] == fitting


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(requires(all_of(field_in("n1"), field_in("n2"))), id="two names in one term"),
        pytest.param(requires(field_in()), id="no names at all"),
    ],
)
def test_conflicting_names_reject_the_pod(bench, waiting):
    """Terms that can name no node end the attempt in PreFilter."""
    bench.cluster([node("n1"), node("n2")])
    names, status = bench.pre_filter(bench.make(NAME), waiting.obj())
    assert names is None
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (REASON_CONFLICT,))


@pytest.mark.parametrize(
    ("args", "waiting", "reasons"),
    [
        pytest.param(added(in_("zone", "bar")), pod("p"), [None, REASON_ENFORCED], id="added affinity alone"),
        pytest.param(
            added(field_in("n0")), pod("p").node_selector(zone="bar"), [None, REASON_ENFORCED], id="both match"
        ),
        pytest.param(
            added(in_("zone", "bar")),
            pod("p").node_selector(zone="foo"),
            [REASON_POD, REASON_ENFORCED],
            id="the added one first",
        ),
        pytest.param(added(exists("zone")), requires(field_in("n1")), [REASON_POD, None], id="the pod's own later"),
    ],
)
def test_added_affinity(bench, args, waiting, reasons):
    """The profile's affinity counts for every pod, with a reason of its own."""
    bench.cluster([node("n0").label("zone", "bar"), node("n1").label("zone", "foo")])
    verdicts = bench.verdicts(bench.make(NAME, args), waiting.obj())
    assert [None if status is None else status.message for status in verdicts.values()] == reasons


NODES = (
    node("node1").label("foo", "bar"),
    node("node5").labels(foo="bar", key="value", az="az1"),
    node("node2").label("key", "value"),
)
TWO = pod("p").prefers_node(2, in_("foo", "bar"))
THREE = TWO.prefers_node(4, in_("key", "value")).prefers_node(
    5, in_("foo", "bar"), in_("key", "value"), in_("az", "az1")
)
BAD_KEY = (
    '[0].matchExpressions[0].key: Invalid value: "invalid key": name part must consist of alphanumeric characters, '
    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
BAD_GT = "for 'Gt', 'Lt' operators, the value must be an integer"


@pytest.mark.parametrize(
    ("args", "waiting", "scores"),
    [
        pytest.param(None, pod("p"), "Skip", id="no preferences"),
        pytest.param(None, TWO, [100, 100, 0], id="one preference"),
        pytest.param(None, pod("p").prefers_node(2, in_("foo", "baz")), [0, 0, 0], id="nobody matches"),
        pytest.param(None, THREE, [18, 100, 36], id="sums of weights"),
        pytest.param(added(preferred=(2, in_("foo", "bar"))), pod("p"), [100, 100, 0], id="added preference"),
        pytest.param(added(preferred=(3, in_("key", "value"))), TWO, [40, 100, 60], id="added beside the pod's own"),
        pytest.param(None, pod("p").prefers_node(9), [0, 0, 0], id="an empty preference"),
        pytest.param(
            None, pod("p").prefers_node(0, in_("invalid key", "x")), [0, 0, 0], id="weight 0 is not even read"
        ),
        pytest.param(None, pod("p").prefers_node(2, in_("invalid key", "bar")), BAD_KEY, id="a bad key"),
        pytest.param(
            None,
            TWO.prefers_node(
                1, {"key": "a", "operator": "Gt", "values": ["b"]}, {"key": "c", "operator": "Gt", "values": ["d"]}
            ),
            f'[[1].matchExpressions[0].values[0]: Invalid value: "b": {BAD_GT}, '
            f'[1].matchExpressions[1].values[0]: Invalid value: "d": {BAD_GT}]',
            id="two problems in one list",
        ),
    ],
)
def test_score(bench, args, waiting, scores):
    """Weights of matching preferences are summed, and the highest sum becomes 100."""
    bench.cluster(NODES)
    assert bench.scores(bench.make(NAME, args), waiting.obj()) == scores


def test_score_without_pre_score(bench):
    """A profile may have Score alone; the scores are the same."""
    bench.cluster(NODES)
    assert bench.scores(bench.make(NAME), THREE.obj(), pre_score=False) == [18, 100, 36]
    assert bench.scores(bench.make(NAME), pod("p").obj(), pre_score=False) == [0, 0, 0]


WANTS = requires(in_("foo", "bar"))
GOOD, BAD = node("n").label("foo", "bar"), node("n")


@pytest.mark.parametrize(
    ("args", "event", "old", "new", "answer"),
    [
        pytest.param(None, NODE_ADD, None, "not a node", "Queue", id="an object that is no node"),
        pytest.param(None, NODE_ADD, None, BAD.obj(), "QueueSkip", id="a new node that does not match"),
        pytest.param(None, NODE_ADD, None, GOOD.obj(), "Queue", id="a new node that matches"),
        pytest.param(None, NODE_LABEL, BAD.obj(), BAD.label("k", "v").obj(), "QueueSkip", id="an unrelated label"),
        pytest.param(None, NODE_LABEL, GOOD.obj(), BAD.label("k", "v").obj(), "QueueSkip", id="matches no more"),
        pytest.param(None, NODE_LABEL, BAD.obj(), GOOD.obj(), "Queue", id="matches now"),
        pytest.param(None, NODE_LABEL, GOOD.obj(), GOOD.label("k", "v").obj(), "QueueSkip", id="matched before"),
        pytest.param(added(in_("foo", "bar")), NODE_ADD, None, BAD.obj(), "QueueSkip", id="added affinity misses"),
        pytest.param(added(in_("foo", "bar")), NODE_ADD, None, GOOD.obj(), "Queue", id="added affinity matches"),
        pytest.param(added(exists("x")), NODE_ADD, None, GOOD.obj(), "QueueSkip", id="only the pod's own matches"),
    ],
)
def test_hints(bench, args, event, old, new, answer):
    """A node helps when it matches now and did not before."""
    assert bench.hint(bench.make(NAME, args), event, WANTS.obj(), old, new) is QueueingHint(answer)


def test_events(bench):
    """Labels of nodes."""
    assert bench.registered(bench.make(NAME)) == {("Node", ActionType.ADD | ActionType.UPDATE_NODE_LABEL)}
