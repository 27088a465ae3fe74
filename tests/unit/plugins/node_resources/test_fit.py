"""NodeResourcesFit, filter and hints: facts of upstream's fit_test.go."""

import msgspec
import pytest

from scheduler.api import ActionType, ClusterEvent, Code, EventResource, QueueingHint
from scheduler.config.args import NodeResourcesFitArgs
from scheduler.plugins.node_resources.fit import NAME, REASON_TOO_MANY_PODS, insufficient
from scheduler.state.changes import ASSIGNED_POD_DELETE, NODE_ADD
from scheduler.testing import node, pod

A, B = "example.com/aaa", "example.com/bbb"
KUBERNETES_IO, HUGE = "kubernetes.io/something", "hugepages-2Mi"
CPU, MEMORY, STORAGE = insufficient("cpu"), insufficient("memory"), insufficient("ephemeral-storage")
NODE = node("n").capacity({"cpu": "10m", "memory": "20", "ephemeral-storage": "20", "pods": "32", A: "5", HUGE: "5"})
SCALE_DOWN = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
GROWN = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_ALLOCATABLE)


def asking(cpu="0", memory="0", **more):
    """A pod that asks for these amounts, scalars as ``a=…`` and ``b=…``."""
    names = {"a": A, "b": B, "k": KUBERNETES_IO, "h": HUGE, "storage": "ephemeral-storage"}
    return pod("p").requests({"cpu": cpu, "memory": memory, **{names[key]: value for key, value in more.items()}})


def only(name, amount):
    return pod("p").requests({name: amount})


FITS = []
NOT_NOW, NEVER = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.mark.parametrize(
    ("waiting", "running", "code", "reasons"),
    [
        pytest.param(pod("p"), asking("10m", "20"), None, FITS, id="a pod that asks for nothing always fits"),
        pytest.param(asking("1m", "1"), asking("10m", "20"), NOT_NOW, [CPU, MEMORY], id="two resources are short"),
        pytest.param(
            asking("1m", "1").init_container({"cpu": "3m", "memory": "1"}),
            asking("8m", "19"),
            NOT_NOW,
            [CPU],
            id="init cpu",
        ),
        pytest.param(
            asking("1m", "1").init_container({"cpu": "3m"}).init_container({"cpu": "2m"}),
            asking("8m", "19"),
            NOT_NOW,
            [CPU],
            id="the highest init container counts",
        ),
        pytest.param(
            asking("1m", "1").init_container({"memory": "3"}), asking("9m", "19"), NOT_NOW, [MEMORY], id="init memory"
        ),
        pytest.param(
            asking("1m", "1").init_container({"cpu": "1m", "memory": "1"}).init_container({"cpu": "1m", "memory": "1"}),
            asking("9m", "19"),
            None,
            FITS,
            id="the larger of containers and init containers, not the sum",
        ),
        pytest.param(
            asking("1m", "1").sidecar({"cpu": "1m", "memory": "1"}),
            asking("9m", "19"),
            NOT_NOW,
            [CPU, MEMORY],
            id="sidecars add",
        ),
        pytest.param(asking("1m", "1"), asking("5m", "5"), None, FITS, id="both fit"),
        pytest.param(asking("2m", "1"), asking("9m", "5"), NOT_NOW, [CPU], id="only memory fits"),
        pytest.param(asking("1m", "2"), asking("5m", "19"), NOT_NOW, [MEMORY], id="only cpu fits"),
        pytest.param(asking("5m", "1"), asking("5m", "19"), None, FITS, id="exactly what is left"),
        pytest.param(asking("11m", "1"), pod("r"), NEVER, [CPU], id="more than the node has"),
        pytest.param(asking("1m", "21"), asking("10m"), NEVER, [CPU, MEMORY], id="one resource too large is enough"),
        pytest.param(only("ephemeral-storage", "6"), only("ephemeral-storage", "15"), NOT_NOW, [STORAGE], id="storage"),
        pytest.param(only("ephemeral-storage", "25"), pod("r"), NEVER, [STORAGE], id="more storage than there is"),
        pytest.param(only(A, 1), pod("r"), None, FITS, id="extended resource"),
        pytest.param(
            pod("p").init_container({A: 1}), pod("r"), None, FITS, id="extended resource of an init container"
        ),
        pytest.param(only(A, 10), pod("r"), NEVER, [insufficient(A)], id="extended: more than the node has"),
        pytest.param(only(A, 1), only(A, 5), NOT_NOW, [insufficient(A)], id="extended: nothing left"),
        pytest.param(only(A, 3).container({A: 3}), only(A, 2), NEVER, [insufficient(A)], id="extended: containers add"),
        pytest.param(
            pod("p").init_container({A: 3}).init_container({A: 3}),
            only(A, 2),
            None,
            FITS,
            id="extended: init containers do not",
        ),
        pytest.param(only(B, 1), pod("r"), NEVER, [insufficient(B)], id="extended: the node has none"),
        pytest.param(
            only(KUBERNETES_IO, 10), pod("r"), NEVER, [insufficient(KUBERNETES_IO)], id="a kubernetes.io name"
        ),
        pytest.param(only(HUGE, 10), pod("r"), NEVER, [insufficient(HUGE)], id="huge pages"),
        pytest.param(only(A, 0), only(A, 6), None, FITS, id="a request of 0 is no request"),
        pytest.param(
            asking("1m", "1").overhead(cpu="3m", memory="13"), asking("5m", "5"), None, FITS, id="overhead fits"
        ),
        pytest.param(
            asking("1m", "1").overhead(cpu="1m", memory="15"),
            asking("5m", "5"),
            NOT_NOW,
            [MEMORY],
            id="overhead is added",
        ),
        pytest.param(
            asking("1m", "1").pod_requests(cpu="7m", memory="2"), asking("5m", "5"), NOT_NOW, [CPU], id="pod level"
        ),
        pytest.param(
            asking("9m", "1").pod_requests(cpu="3m", memory="2"), asking("5m", "5"), None, FITS, id="pod level wins"
        ),
        pytest.param(only("example", 9), pod("r"), None, FITS, id="a name that is no resource"),
        pytest.param(
            asking("11m", "21", storage="21", a=6, b=1, h=6),
            pod("r"),
            NEVER,
            [CPU, MEMORY, STORAGE, insufficient(A), insufficient(B), insufficient(HUGE)],
            id="all reasons, natives first",
        ),
    ],
)
def test_filter(bench, waiting, running, code, reasons):
    """All shortages are told; what no eviction can give is final."""
    bench.cluster([NODE], [running.on("n")])
    status = bench.verdict(bench.make(NAME), waiting.obj())
    if code is None:
        assert status is None
    else:
        assert (status.code, list(status.reasons)) == (code, reasons)
    assert bench.verdict(bench.make(NAME), waiting.obj(), pre_filter=False) == status


@pytest.mark.parametrize(
    ("waiting", "running", "code", "reasons"),
    [
        pytest.param(pod("p"), asking("10m", "20"), NOT_NOW, [REASON_TOO_MANY_PODS], id="nothing else is short"),
        pytest.param(
            asking("1m", "1"), asking("10m", "20"), NOT_NOW, [REASON_TOO_MANY_PODS, CPU, MEMORY], id="all is short"
        ),
        pytest.param(asking("20m", "1"), asking("5m"), NEVER, [REASON_TOO_MANY_PODS, CPU], id="too large as well"),
    ],
)
def test_too_many_pods(bench, waiting, running, code, reasons):
    """The number of pods comes first among the reasons, and evicting one helps."""
    bench.cluster([NODE.allocatable(pods="1")], [running.on("n")])
    status = bench.verdict(bench.make(NAME), waiting.obj())
    assert (status.code, list(status.reasons)) == (code, reasons)


def test_node_without_allocatable_takes_nobody(bench):
    """Not even a pod that asks for nothing: it allows no pods."""
    bench.cluster([node("n")])
    assert bench.verdict(bench.make(NAME), pod("p").obj()).reasons == (REASON_TOO_MANY_PODS,)


@pytest.mark.parametrize(
    ("args", "waiting", "reasons"),
    [
        pytest.param({"ignored_resources": (B,)}, only(B, 1), FITS, id="an ignored resource"),
        pytest.param({"ignored_resources": (A,)}, only(B, 1), [insufficient(B)], id="another is ignored"),
        pytest.param({"ignored_resource_groups": ("example.com",)}, only(B, 1), FITS, id="an ignored group"),
        pytest.param(
            {"ignored_resource_groups": ("example.com",)},
            asking(b=1, k=1),
            [insufficient(KUBERNETES_IO)],
            id="of another group",
        ),
        pytest.param(
            {"ignored_resource_groups": ("kubernetes.io",)},
            only(KUBERNETES_IO, 1),
            [insufficient(KUBERNETES_IO)],
            id="native",
        ),
        pytest.param(
            {"ignored_resource_groups": ("hugepages-2Mi",)}, only(HUGE, 9), [insufficient(HUGE)], id="huge pages"
        ),
        pytest.param({"ignored_resources": ("cpu",)}, asking("11m"), [CPU], id="cpu cannot be ignored"),
    ],
)
def test_ignored_resources(bench, args, waiting, reasons):
    """Only extended resources can be ignored, by name or by the part before the slash."""
    bench.cluster([NODE])
    defaults = NodeResourcesFitArgs()
    status = bench.verdict(bench.make(NAME, msgspec.structs.replace(defaults, **args)), waiting.obj())
    assert ([] if status is None else list(status.reasons)) == reasons


def test_nodes_are_explained_one_by_one(bench):
    """Every row gets its own set of reasons, also among many rows."""
    sizes = [("1m", "1"), ("10m", "1"), ("1m", "20"), ("10m", "20")]
    bench.cluster([node(f"n{i}").capacity(cpu=c, memory=m, pods="9") for i, (c, m) in enumerate(sizes)])
    verdicts = bench.verdicts(bench.make(NAME), asking("5m", "5").obj())
    assert [None if s is None else list(s.reasons) for s in verdicts.values()] == [[CPU, MEMORY], [MEMORY], [CPU], None]


def test_any_number_of_resources(bench):
    """More resources than an int64 has bits are still told apart."""
    names = [f"example.com/r{i:03}" for i in range(150)]
    bench.cluster(
        [
            NODE.capacity(dict.fromkeys(names[:100], 1)),
            NODE.set("metadata.name", "m").capacity(dict.fromkeys(names, 1)),
        ]
    )
    verdicts = bench.verdicts(bench.make(NAME), pod("p").requests(dict.fromkeys(names, 1)).obj())
    assert verdicts["m"] is None
    assert list(verdicts["n"].reasons) == [insufficient(name) for name in names[100:]]


HUGE_AMOUNT = "8Ei"  # 2**63, one more than int64 holds


@pytest.mark.parametrize(
    ("capacity", "running", "waiting", "code"),
    [
        pytest.param("1Gi", [HUGE_AMOUNT], "1", NOT_NOW, id="one absurd pod on the node"),
        pytest.param("1Gi", [HUGE_AMOUNT, HUGE_AMOUNT], "1", NOT_NOW, id="their sum is beyond int64"),
        pytest.param("1Gi", ["7Ei", "7Ei"], "1", NOT_NOW, id="large pods whose sum is beyond int64"),
        pytest.param("1Gi", [], HUGE_AMOUNT, NEVER, id="an absurd pod waits"),
        pytest.param("1Gi", [HUGE_AMOUNT] * 3, HUGE_AMOUNT, NEVER, id="absurd pods everywhere"),
        pytest.param(HUGE_AMOUNT, [], HUGE_AMOUNT, None, id="an absurd node takes an absurd pod"),
        pytest.param(HUGE_AMOUNT, ["1"], HUGE_AMOUNT, NOT_NOW, id="but not beside another"),
        pytest.param(HUGE_AMOUNT, ["4Ei", "3Ei"], "1Ei", NOT_NOW, id="an absurd node is full to the last byte"),
        pytest.param("-8Ei", ["1", "8Ei"], "1", NEVER, id="a node that offers less than nothing"),
        pytest.param("-8Ei", ["8Ei", "8Ei"], "8Ei", NEVER, id="less than nothing and absurd pods"),
    ],
)
def test_absurd_amounts(bench, capacity, running, waiting, code):
    """Nothing wraps around: a node that is more than full never looks empty."""
    bench.cluster(
        [node("n").capacity(memory=capacity, pods="110"), node("m").capacity(memory="1Gi", pods="110")],
        [pod("r").requests(memory=amount).on("n") for amount in running],
    )
    status = bench.verdicts(bench.make(NAME), pod("p").requests(memory=waiting).obj())["n"]
    assert (None if status is None else status.code) is code


MEM, MEM_AND_A = asking(memory="2"), asking(memory="2", a=1)


def capable(**more):
    names = {"a": A, "b": B}
    return node("n").capacity({names.get(key, key): value for key, value in {"pods": "10", **more}.items()}).obj()


@pytest.mark.parametrize(
    ("event", "waiting", "old", "new", "answer"),
    [
        pytest.param(NODE_ADD, MEM, None, "not a node", "Queue", id="an object that is no node"),
        pytest.param(NODE_ADD, MEM, None, capable(memory="1"), "QueueSkip", id="a new node that is too small"),
        pytest.param(NODE_ADD, only(A, 1), None, capable(b=1), "QueueSkip", id="a new node without the resource"),
        pytest.param(
            NODE_ADD, MEM_AND_A, None, capable(memory="4", a=2), "Queue", id="a new node that is large enough"
        ),
        pytest.param(NODE_ADD, pod("p"), None, node("n").obj(), "QueueSkip", id="a new node that takes no pods"),
        pytest.param(
            GROWN,
            MEM_AND_A,
            capable(memory="2", a=2),
            capable(memory="2", a=1, b=2),
            "QueueSkip",
            id="something else grew",
        ),
        pytest.param(
            GROWN, MEM_AND_A, capable(memory="2", a=1), capable(memory="2", a=2), "Queue", id="what is asked for grew"
        ),
        pytest.param(
            GROWN, MEM_AND_A, capable(memory="4", a=2), capable(memory="1", a=2), "QueueSkip", id="became too small"
        ),
        pytest.param(
            GROWN, MEM_AND_A, capable(memory="1", a=2), capable(memory="4", a=2), "Queue", id="became large enough"
        ),
        pytest.param(GROWN, MEM, capable(memory="2"), capable(memory="2", pods="11"), "Queue", id="takes more pods"),
        pytest.param(
            GROWN, pod("p"), capable(memory="2"), capable(memory="9"), "QueueSkip", id="the pod asks for nothing"
        ),
    ],
)
def test_node_hints(bench, event, waiting, old, new, answer):
    """A node helps if the pod fits it when empty, and it is new or has more of what the pod asks for."""
    assert bench.hint(bench.make(NAME), event, waiting.obj(), old, new) is QueueingHint(answer)


def test_ignored_resources_do_not_count_in_hints(bench):
    """A pod that waits for something else than the ignored resource hears of the node that has it."""
    ignoring, waiting = bench.make(NAME, NodeResourcesFitArgs(ignored_resources=(B,))), only(B, 1).obj()
    assert bench.hint(ignoring, NODE_ADD, waiting, None, capable()) is QueueingHint.QUEUE
    assert bench.hint(bench.make(NAME), NODE_ADD, waiting, None, capable()) is QueueingHint.SKIP


SMALL, LARGE = only("cpu", "1").on("n"), only("cpu", "2").on("n")
OTHER, OTHER_LARGE = SMALL.uid("other"), LARGE.uid("other")


@pytest.mark.parametrize(
    ("event", "waiting", "old", "new", "answer"),
    [
        pytest.param(ASSIGNED_POD_DELETE, MEM, "not a pod", None, "Queue", id="an object that is no pod"),
        pytest.param(ASSIGNED_POD_DELETE, MEM, OTHER.on("").obj(), None, "QueueSkip", id="deleted, was on no node"),
        pytest.param(ASSIGNED_POD_DELETE, MEM, OTHER.obj(), None, "Queue", id="deleted from a node"),
        pytest.param(
            ASSIGNED_POD_DELETE, MEM, OTHER.on("").nominated("n").obj(), None, "Queue", id="deleted while nominated"
        ),
        pytest.param(SCALE_DOWN, SMALL, OTHER_LARGE.obj(), OTHER.obj(), "Queue", id="another pod asks for less cpu"),
        pytest.param(SCALE_DOWN, MEM, OTHER_LARGE.obj(), OTHER.obj(), "QueueSkip", id="less of something else"),
        pytest.param(SCALE_DOWN, SMALL, OTHER.obj(), OTHER_LARGE.obj(), "QueueSkip", id="more"),
        pytest.param(
            SCALE_DOWN,
            SMALL,
            OTHER_LARGE.on("").obj(),
            OTHER.on("").obj(),
            "QueueSkip",
            id="a pending pod asks for less",
        ),
        pytest.param(
            SCALE_DOWN, MEM, LARGE.on("").obj(), SMALL.on("").obj(), "Queue", id="the pod itself asks for less"
        ),
        pytest.param(
            SCALE_DOWN,
            SMALL,
            OTHER_LARGE.container_status(allocated={"cpu": "2"}, actuated={"cpu": "2"}).obj(),
            OTHER.container_status(allocated={"cpu": "2"}, actuated={"cpu": "2"}).obj(),
            "QueueSkip",
            id="the kubelet has not given it back yet",
        ),
    ],
)
def test_pod_hints(bench, event, waiting, old, new, answer):
    """Room is made by pods that leave their node, and by pods that ask for less of what this one wants."""
    assert bench.hint(bench.make(NAME), event, waiting.obj(), old, new) is QueueingHint(answer)


def test_events(bench):
    """Pods that leave or shrink, nodes that appear or grow."""
    assert bench.registered(bench.make(NAME)) == {
        ("Pod", ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN),
        ("Node", ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
    }
