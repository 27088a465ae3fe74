"""An HTTPS extender beside the engine: good calls, and twelve kinds of bad ones that harm only the extender's own pods."""

import resource
import ssl
import time
from base64 import b64encode

import pytest
import trustme
from aiohttp import web

from scheduler.app.extenders import extender_call
from scheduler.config.errors import ConfigError
from scheduler.testing import node, pod
from scheduler.testing.harness import Harness, configuration_of
from tests.contract.extender.server import MISBEHAVIOURS, ExtenderServer

GPU = "example.com/gpu"
TIMEOUT_S = 0.6


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def server(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    made = ExtenderServer(context)
    yield made
    made.close()


@pytest.fixture
def world(server, authority, tmp_path):
    """Two nodes with devices, and an extender that minds pods that want one."""
    server.asked.clear()
    server.behave()
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))

    def make(**settings):
        extender = {
            "urlPrefix": server.url,
            "filterVerb": "filter",
            "prioritizeVerb": "rank",
            "weight": 2,
            "enableHTTPS": True,
            "tlsConfig": {"caFile": str(ca_file)},
            "httpTimeout": f"{int(TIMEOUT_S * 1000)}ms",
            "nodeCacheCapable": True,
            "managedResources": [{"name": GPU}],
            **settings,
        }
        call = extender_call(configuration_of(None, [extender]).extenders[0])
        harness = Harness(extenders=[extender], extender_call=call)
        for name in ("n1", "n2"):
            harness.put(node(name).capacity({"cpu": "8", "memory": "8Gi", "pods": "110", GPU: "8"}).obj())
        made.append(harness)
        return harness

    made = []
    yield make
    for harness in made:
        harness.close()


def wants_gpu(name="gpu"):
    return pod(name).requests({"cpu": "1", GPU: "1"}).obj()


def test_good_extender(server, world):
    """It filters and ranks over HTTPS; pods that are not its business never meet it."""
    harness = world()
    assert harness.schedule(wants_gpu()) in ("n1", "n2")
    assert [path for path, _ in server.asked] == ["/ext/filter", "/ext/rank"]
    assert {name: dict(scores) for name, scores in harness.last.scores.weighted()}[server.url] == {"n1": 20, "n2": 20}
    server.asked.clear()
    assert harness.schedule(pod("plain").requests(cpu="1").obj())
    assert server.asked == []


def test_questions_hold_whole_objects(server, world):
    """Without originals from the API server: what the engine knows, with kind and version."""
    harness = world(nodeCacheCapable=False)

    async def keep_all(request, question):
        if request.path.endswith("rank"):
            return web.json_response([])
        return web.json_response({"Nodes": question["Nodes"], "Error": ""})

    server.behaviour = keep_all
    assert harness.schedule(wants_gpu())
    question = server.asked[0][1]
    assert question["NodeNames"] is None
    assert (question["Pod"]["kind"], question["Pod"]["apiVersion"]) == ("Pod", "v1")
    assert question["Pod"]["spec"]["containers"][0]["resources"]["requests"][GPU] == "1"
    assert [item["kind"] for item in question["Nodes"]["items"]] == ["Node", "Node"]


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_misbehaviour(server, world, name):
    """Upstream's verdict for its own pod, in bounded time and memory; the next pod is scheduled as ever."""
    harness = world()
    server.behave(name)
    before_kb, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    placed = harness.schedule(wants_gpu())
    took_s = time.perf_counter() - began_s
    assert took_s < 2 * TIMEOUT_S + 1.0, "a filter and a rank call at most"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 200 * 1024
    if name == "score out of range":
        assert placed, "scores that make no sense are left out"
    else:
        assert placed == ""
        assert not harness.last.status.is_rejected, "an error, which is retried, not a verdict about nodes"
    assert "/trap" not in [path for path, _ in server.asked]
    assert harness.schedule(pod("plain").requests(cpu="1").obj())
    server.behave()
    assert harness.schedule(wants_gpu("later")), "once the extender is well, so are its pods"


def test_nobody_listens(world):
    """Refused connections fail at once."""
    harness = world(urlPrefix="https://127.0.0.1:9/ext")
    assert harness.schedule(wants_gpu()) == ""
    assert harness.last.status.message.startswith('Post "https://127.0.0.1:9/ext/filter": ')
    assert harness.schedule(pod("plain").requests(cpu="1").obj())


def test_ignorable_extender_is_done_without(server, world):
    """Its pods are scheduled as if it were not there."""
    harness = world(ignorable=True)
    server.behave("status 500")
    assert harness.schedule(wants_gpu())


def test_extender_that_keeps_timing_out_is_left_alone(server, world):
    """After three time-outs its pods fail at once, so that they hold up nobody."""
    harness = world(httpTimeout="510ms")
    server.behave("ten seconds slow")
    for i in range(3):
        harness.schedule(wants_gpu(f"gpu-{i}"))
    asked, began_s = len(server.asked), time.perf_counter()
    harness.schedule(wants_gpu("gpu-3"))
    assert time.perf_counter() - began_s < 0.4
    assert len(server.asked) == asked
    assert "is left alone" in harness.last.status.message


@pytest.mark.parametrize(
    ("tls", "works"),
    [
        pytest.param(None, True, id="no CA: not verified, as upstream"),
        pytest.param({"insecure": True}, True, id="insecure"),
        pytest.param("another CA", False, id="signed by somebody else"),
        pytest.param("another name", False, id="for another host"),
    ],
)
def test_verification(server, world, tmp_path, authority, tls, works):
    """Whom the extender's certificate convinces."""
    if tls == "another CA":
        trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
        tls = {"caFile": str(tmp_path / "other.pem")}
    elif tls == "another name":
        tls = {"caData": b64encode(authority.cert_pem.bytes()).decode(), "serverName": "gpu.example"}
    harness = world(tlsConfig=tls)
    assert bool(harness.schedule(wants_gpu())) is works


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        pytest.param({"caFile": "/nowhere/ca.pem"}, "No such file", id="missing file"),
        pytest.param({"insecure": True, "caData": "eA=="}, "insecure flag is not allowed", id="contradiction"),
    ],
)
def test_bad_tls_settings_stop_the_start(tls, text):
    """All problems with certificates are known before the first pod."""
    extender = {"urlPrefix": "https://x", "filterVerb": "f", "enableHTTPS": True, "tlsConfig": tls}
    with pytest.raises(ConfigError, match=text):
        extender_call(configuration_of(None, [extender]).extenders[0])


def test_lie_about_a_binding(server, world):
    """The pod is bound when it is bound, not when the extender says so; its room is given back."""
    harness = world(bindVerb="bind")
    harness.schedule(wants_gpu())
    assert server.asked[-1] == ("/ext/bind", {**server.asked[-1][1], "PodName": "gpu", "Node": harness.last.node_name})
    assert harness.pod("default/gpu").node_name == ""
    assert harness.core.cache.num_assumed == 0
    assert harness.schedule(pod("plain").requests(cpu="1").obj()), "the default binder binds all others"
