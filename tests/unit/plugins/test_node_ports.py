"""NodePorts: facts of upstream's node_ports_test.go."""

import pytest

from scheduler.api import ActionType, Code, QueueingHint
from scheduler.plugins.node_ports import NAME, REASON_NO_FREE_PORTS
from scheduler.state.changes import ASSIGNED_POD_DELETE, NODE_ADD
from scheduler.testing import node, pod

PORT = [{"containerPort": 8001, "hostPort": 8001, "protocol": "TCP"}]


def with_ports(*ports):
    made = pod("p")
    for port in ports:
        protocol, ip, number = port.split("/")
        made = made.host_port(int(number), protocol=protocol, ip=ip)
    return made


@pytest.mark.parametrize(
    ("wanted", "used", "fits"),
    [
        pytest.param(["UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/9090"], True, id="another port"),
        pytest.param(["UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/8080"], False, id="same udp port"),
        pytest.param(["TCP/127.0.0.1/8080"], ["TCP/127.0.0.1/8080"], False, id="same tcp port"),
        pytest.param(["TCP/127.0.0.1/8080"], ["TCP/127.0.0.2/8080"], True, id="different host ip"),
        pytest.param(["UDP/127.0.0.1/8080"], ["TCP/127.0.0.1/8080"], True, id="different protocol"),
        pytest.param(["UDP/127.0.0.1/8000", "UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/8080"], False, id="second port"),
        pytest.param(
            ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8080"],
            ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8081"],
            False,
            id="first port",
        ),
        pytest.param(["TCP/0.0.0.0/8001"], ["TCP/127.0.0.1/8001"], False, id="wanted on every address"),
        pytest.param(["TCP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], False, id="taken on every address"),
        pytest.param(["TCP//8001"], ["TCP/127.0.0.1/8001"], False, id="no address means every address"),
        pytest.param(["UDP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], True, id="every address of another protocol"),
        pytest.param(["SCTP/127.0.0.1/8001"], ["SCTP//8001"], False, id="sctp"),
    ],
)
def test_filter(bench, wanted, used, fits):
    """Two ports collide if protocol and number are equal and the addresses overlap; evicting helps."""
    bench.cluster([node("free"), node("taken")], [with_ports(*used).on("taken")])
    verdicts = bench.verdicts(bench.make(NAME), with_ports(*wanted).obj())
    assert verdicts["free"] is None
    if fits:
        assert verdicts["taken"] is None
    else:
        assert verdicts["taken"].code is Code.UNSCHEDULABLE
        assert verdicts["taken"].reasons == (REASON_NO_FREE_PORTS,)


@pytest.mark.parametrize(
    ("waiting", "answer"),
    [
        pytest.param(pod("p"), "Skip", id="no ports"),
        pytest.param(pod("p").init_container(ports=PORT), "Skip", id="ports of init containers do not count"),
        pytest.param(pod("p").sidecar(ports=PORT), None, id="ports of sidecars do"),
    ],
)
def test_pre_filter(bench, waiting, answer):
    """Pods without host ports are none of its business."""
    bench.cluster([node("n")])
    assert bench.verdict(bench.make(NAME), waiting.obj()) == answer


def test_sidecar_conflicts(bench):
    """A sidecar's port is taken like any other."""
    bench.cluster([node("n")], [with_ports("TCP//8001").on("n")])
    assert bench.verdict(bench.make(NAME), pod("p").sidecar(ports=PORT).obj()).code is Code.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("deleted", "answer"),
    [
        pytest.param("not a pod", "Queue", id="an object that is no pod"),
        pytest.param(pod("d").host_port(8080).obj(), "QueueSkip", id="was on no node"),
        pytest.param(pod("d").on("n").obj(), "QueueSkip", id="had no host port"),
        pytest.param(pod("d").on("n").host_port(8081).obj(), "QueueSkip", id="had another port"),
        pytest.param(pod("d").on("n").host_port(8080).obj(), "Queue", id="released the port"),
        pytest.param(pod("d").nominated("n").host_port(8080).obj(), "Queue", id="was nominated"),
        pytest.param(pod("d").on("n").host_port(8080, ip="10.0.0.1").obj(), "Queue", id="released it on one address"),
    ],
)
def test_pod_hints(bench, deleted, answer):
    """Only a pod that held one of the wanted ports helps by leaving."""
    waiting = pod("p").host_port(8080).obj()
    assert bench.hint(bench.make(NAME), ASSIGNED_POD_DELETE, waiting, deleted, None) is QueueingHint(answer)


def test_events(bench):
    """Deleted pods, and new nodes always."""
    plugin = bench.make(NAME)
    assert bench.registered(plugin) == {("Pod", ActionType.DELETE), ("Node", ActionType.ADD)}
    assert bench.hint(plugin, NODE_ADD, pod("p").obj(), None, node("n").obj()) is QueueingHint.QUEUE
