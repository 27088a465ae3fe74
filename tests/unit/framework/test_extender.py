"""The extender protocol, as JSON on the wire."""

import json

import pytest

from scheduler.config.types import Extender as Configuration
from scheduler.config.types import ExtenderManagedResource
from scheduler.framework.extender import Extender, ExtenderError, ExtenderVerdict, Victims, in_calling_order
from scheduler.framework.extender_wire import MAX_LOOSE_BYTES
from scheduler.testing.builders import node, pod

URL = "http://gpu.example/ext/"
WEB = pod("web").in_ns("shop").obj()


class Server:
    """Answers each verb with what it is told; remembers the questions."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def __call__(self, url, verb, body):
        self.asked.append((url, verb, json.loads(body)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()


def extender(answer=None, **settings):
    server = Server(answer)
    verbs = {"filter_verb": "filter", "prioritize_verb": "rank", "bind_verb": "bind", "preempt_verb": "preempt"}
    made = Extender(Configuration(url_prefix=URL, weight=3, **(verbs | settings)), server)
    return made, server


@pytest.mark.parametrize(
    ("cached", "answer", "expected"),
    [
        pytest.param(True, {"NodeNames": ["b", "a"]}, ("b", "a"), id="names"),
        pytest.param(True, {"nodenames": ["a"]}, ("a",), id="keys in any case, as Go reads them"),
        pytest.param(True, {"NodeNames": []}, (), id="none"),
        pytest.param(
            True, {"Nodes": {"items": [{"metadata": {"name": "a"}}]}}, ("a",), id="objects though names asked"
        ),
        pytest.param(True, {}, (), id="neither"),
        pytest.param(False, {"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ("b",), id="objects"),
        pytest.param(False, {"NodeNames": ["a"]}, (), id="names do not count if objects were asked"),
        pytest.param(False, {"Nodes": {"items": None}, "Error": None}, (), id="nulls"),
    ],
)
def test_filter_answers(snapshot_of, cached, answer, expected):
    """The kept nodes come as names or objects."""
    made, _ = extender(answer, node_cache_capable=cached)
    assert made.filter(WEB, snapshot_of("a", "b")) == ExtenderVerdict(expected, {}, {})


def test_filter_reasons(snapshot_of):
    """Node names keep their letter case."""
    answer = {"NodeNames": [], "FailedNodes": {"a": "full"}, "FailedAndUnresolvableNodes": {"B": "broken"}}
    made, _ = extender(answer, node_cache_capable=True)
    assert made.filter(WEB, snapshot_of("a", "B")) == ExtenderVerdict((), {"a": "full"}, {"B": "broken"})


def test_filter_questions(snapshot_of):
    """One of Nodes and NodeNames is set; the keys are Go's field names."""
    nodes = snapshot_of(node("a").label("x", "y"))
    made, server = extender({}, node_cache_capable=True)
    made.filter(WEB, nodes)
    url, verb, body = server.asked[0]
    assert (url, verb, list(body)) == ("http://gpu.example/ext/filter", "filter", ["Pod", "Nodes", "NodeNames"])
    assert (body["Nodes"], body["NodeNames"], body["Pod"]["metadata"]["name"]) == (None, ["a"], "web")
    made, server = extender({})
    made.filter(WEB, nodes)
    body = server.asked[0][2]
    assert body["NodeNames"] is None
    assert [item["metadata"]["labels"] for item in body["Nodes"]["items"]] == [{"x": "y"}]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "no gpu"}, "no gpu", id="reported error"),
        pytest.param(ExtenderError("failed filter with extender"), "failed filter with extender", id="call fails"),
        pytest.param(
            {"NodeNames": ["z"]},
            f'extender "{URL}" claims a filtered node "z" which is not found in the input node list',
            id="unknown node",
        ),
        pytest.param(b"<html>", f'extender "{URL}" answered no JSON', id="no JSON"),
        pytest.param([1], f'extender "{URL}" answered nonsense: Expected `object`, got `array`', id="wrong shape"),
        pytest.param({"NodeNames": "a"}, f'extender "{URL}" answered nonsense', id="wrong type"),
    ],
)
def test_filter_failures(snapshot_of, answer, text):
    """Everything that goes wrong is one kind of error."""
    made, _ = extender(answer, node_cache_capable=True)
    with pytest.raises(ExtenderError) as caught:
        made.filter(WEB, snapshot_of("a"))
    assert str(caught.value).startswith(text)


def test_missing_verbs(snapshot_of):
    """An extender without a verb has no say there, and is not called."""
    made, server = extender(filter_verb="", prioritize_verb="", bind_verb="", preempt_verb="")
    nodes = snapshot_of("a")
    assert made.filter(WEB, nodes).kept == ("a",)
    assert made.prioritize(WEB, nodes) == ({"a": 0}, 0)
    assert (made.is_filter, made.is_prioritizer, made.is_binder, made.supports_preemption) == (False,) * 4
    with pytest.raises(ExtenderError, match="preempt verb is not defined for extender"):
        made.preempt(WEB, {}, nodes)
    assert server.asked == []


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        pytest.param([{"Host": "a", "Score": 7}, {"host": "b", "score": 1}], {"a": 7, "b": 1}, id="scores"),
        pytest.param(None, {}, id="null"),
    ],
)
def test_prioritize(snapshot_of, answer, scores):
    """Scores come with the configured weight."""
    made, _ = extender(answer)
    assert made.prioritize(WEB, snapshot_of("a", "b")) == (scores, 3)


def test_bind():
    """The pod is named with its UID; an error in the answer is a failure."""
    made, server = extender({"Error": ""})
    made.bind(WEB, "a")
    body = {"PodName": "web", "PodNamespace": "shop", "PodUID": WEB.uid, "Node": "a"}
    assert server.asked == [("http://gpu.example/ext/bind", "bind", body)]
    made, _ = extender({"error": "taken"})
    with pytest.raises(ExtenderError, match="taken"):
        made.bind(WEB, "a")


@pytest.mark.parametrize("cached", [True, False])
def test_preempt(cached):
    """Victims go out as objects or UIDs and always come back as UIDs."""
    from scheduler.state.cache.cache import Cache
    from scheduler.state.cache.snapshot import Snapshot

    victim = pod("old").on("a").obj()
    cache, nodes = Cache(), Snapshot()
    cache.add_node(node("a").obj())
    cache.add_pod(victim)
    cache.update_snapshot(nodes)
    answer = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": victim.uid}], "NumPDBViolations": 2}}}
    made, server = extender(answer, node_cache_capable=cached)
    assert made.preempt(WEB, {"a": Victims((victim,), 1)}, nodes) == {"a": Victims((victim,), 2)}
    body = server.asked[0][2]
    if cached:
        assert body["NodeNameToMetaVictims"] == {"a": {"Pods": [{"UID": victim.uid}], "NumPDBViolations": 1}}
        assert body["NodeNameToVictims"] is None
    else:
        assert body["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["uid"] == victim.uid
        assert body["NodeNameToMetaVictims"] is None
    made, _ = extender({"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "nobody"}]}}})
    with pytest.raises(ExtenderError, match=r"claims to preempt pod \(UID: nobody\) on node: a"):
        made.preempt(WEB, {}, nodes)
    made, _ = extender({"NodeNameToMetaVictims": {"z": {}}})
    with pytest.raises(ExtenderError, match='nodeinfo not found for node name "z"'):
        made.preempt(WEB, {}, nodes)


@pytest.mark.parametrize(
    ("managed", "asking", "expected"),
    [
        pytest.param([], pod("p"), True, id="no managed resources: every pod"),
        pytest.param(["a.example/gpu"], pod("p").requests(cpu="1"), False, id="other resources"),
        pytest.param(["a.example/gpu"], pod("p").requests({"a.example/gpu": 1}), True, id="a request"),
        pytest.param(["a.example/gpu"], pod("p").limits({"a.example/gpu": 1}), True, id="a limit"),
        pytest.param(["a.example/gpu"], pod("p").init_container({"a.example/gpu": 1}), True, id="an init container"),
    ],
)
def test_interest(managed, asking, expected):
    """An extender with managed resources minds only pods that name one."""
    made, _ = extender(managed_resources=tuple(ExtenderManagedResource(name) for name in managed))
    assert made.is_interested(asking.obj()) is expected


def test_ignorable_extenders_are_asked_last():
    """Each group keeps the order of the configuration."""
    made = [
        Extender(Configuration(url_prefix=u, ignorable=i), Server(None))
        for u, i in [("a", True), ("b", False), ("c", True), ("d", False)]
    ]
    assert [each.name for each in in_calling_order(made)] == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(b'{"NodeNames":["\xff"]}', "answered no JSON", id="invalid UTF-8"),
        pytest.param(b'{"NodeNames":' + b"[" * 100_000, "answered no JSON", id="nested too deeply"),
        pytest.param(b" " * (MAX_LOOSE_BYTES + 1) + b"{}", "none of the fields", id="large and empty"),
        pytest.param(
            b'{"nodenames":["a"]}' + b" " * MAX_LOOSE_BYTES, "none of the fields", id="large, spelled otherwise"
        ),
        pytest.param(b"<" * (MAX_LOOSE_BYTES + 1), "answered no JSON", id="large and no JSON"),
    ],
)
def test_hostile_answers(snapshot_of, answer, text):
    """None of them raises anything else."""
    made, _ = extender(answer, node_cache_capable=True)
    with pytest.raises(ExtenderError, match=text):
        made.filter(WEB, snapshot_of("a"))


def test_large_answer(snapshot_of):
    """Read field by field; what else is in it is passed over."""
    answer = {"NodeNames": ["a"], "FailedNodes": {"b": "x" * MAX_LOOSE_BYTES}, "Extra": [1]}
    made, _ = extender(answer, node_cache_capable=True)
    assert made.filter(WEB, snapshot_of("a", "b")).kept == ("a",)


@pytest.mark.parametrize("score", [2**63, -(2**63) - 1, 1.5, "7"])
def test_scores_that_are_no_int64(snapshot_of, score):
    """Go could not read them either."""
    made, _ = extender([{"Host": "a", "Score": score}])
    with pytest.raises(ExtenderError, match="answered nonsense"):
        made.prioritize(WEB, snapshot_of("a"))


def test_nodes_named_twice_count_once(snapshot_of):
    """A node cannot be more than feasible."""
    made, _ = extender({"NodeNames": ["b", "a", "b"]}, node_cache_capable=True)
    assert made.filter(WEB, snapshot_of("a", "b")).kept == ("b", "a")


def test_originals_go_out_where_they_were_kept(snapshot_of):
    """Whole objects, with fields that scheduling does not read; else what we know, with kind and version."""
    whole, nodes = pod("web").obj(), snapshot_of("a", "b")
    whole.__dict__["original_json"] = b'{"kind":"Pod","spec":{"dnsPolicy":"Default"}}'
    nodes.infos[0].node.__dict__["original_json"] = b'{"kind":"Node","status":{"daemonEndpoints":{}}}'
    made, server = extender({})
    made.filter(whole, nodes)
    question = server.asked[0][2]
    assert question["Pod"] == {"kind": "Pod", "spec": {"dnsPolicy": "Default"}}
    first, second = question["Nodes"]["items"]
    assert first == {"kind": "Node", "status": {"daemonEndpoints": {}}}
    assert (second["apiVersion"], second["kind"], second["metadata"]["name"]) == ("v1", "Node", "b")
