"""Idle nodes first, pods placed lately counted in; a server in trouble does no harm.

The server here answers as Prometheus does; tests/integration of Podium asks a real one.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from podium_usage_aware import UsageAware

from scheduler.testing import Harness, node, pod


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(parse_qs(urlsplit(self.path).query)["query"][0])
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Answers every query with the same use of nodes."""

    daemon_threads = True

    def __init__(self):
        self.status, self.body, self.asked = 200, b"", []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.say(n0="0.10", n1="0.50", n2="0.90")

    def say(self, **usage):
        result = [{"metric": {"node": name}, "value": [1700000000.1, text]} for name, text in usage.items()]
        self.body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@pytest.fixture
def server():
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def cluster_with(server, **args):
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "UsageAware", "weight": 10}]}},
        "pluginConfig": [{"name": "UsageAware", "args": {"prometheusUrl": server.url, **args}}],
    }
    cluster = Harness(plugins={"UsageAware": UsageAware}, profile=profile)
    for number in range(4):
        cluster.put(node(f"n{number}").capacity(cpu="10", memory="32Gi", pods="110").obj())
    return cluster


def scores(cluster, name="p", **requests):
    """Schedule a pod; return UsageAware's scores by node, None if it stepped aside."""
    cluster.schedule(pod(name).requests(**requests).obj())
    for plugin, _, column in cluster.last.scores.by_plugin:
        if plugin == "UsageAware":
            return dict(zip(cluster.last.scores.nodes.names, column.tolist(), strict=True))
    return None


def test_nodes_score_by_what_is_free(server):
    """A node without a figure gets the middle."""
    with cluster_with(server, query="node_use") as cluster:
        assert scores(cluster) == {"n0": 90, "n1": 50, "n2": 10, "n3": 50}
        assert server.asked == ["node_use"]
        assert cluster.metric("podium_plugin_usage_aware_nodes") == 3


def test_a_burst_does_not_go_to_the_one_idle_node(server):
    """Requests count until the figures can show them."""
    server.say(n0="0.0", n1="0.1", n2="0.2", n3="0.3")
    with cluster_with(server, settleSeconds=60) as cluster:
        burst = [cluster.schedule(pod(f"p{number}").requests(cpu="2").obj()) for number in range(8)]
        assert max(burst.count(name) for name in set(burst)) <= 3
        assert scores(cluster, "q1")["n0"] < 100
        cluster.advance(61)
        assert scores(cluster, "q2")["n0"] == 100, "the figures are believed again"


def test_a_pod_that_was_not_bound_counts_no_more(server):
    with cluster_with(server) as cluster:
        plugin = cluster.core.profiles["default-scheduler"].plugins["UsageAware"]
        waiting = pod("p").requests(cpu="5").obj()
        plugin.reserve(None, waiting, "n0")
        assert scores(cluster, "q1")["n0"] == 40
        plugin.unreserve(None, waiting, "n0")
        plugin.unreserve(None, waiting, "n0")
        assert scores(cluster, "q2")["n0"] == 90


def test_figures_beyond_0_and_1_are_cut(server):
    server.say(n0="-0.5", n1="7", n2="NaN", n3="+Inf")
    with cluster_with(server) as cluster:
        assert scores(cluster) == {"n0": 100, "n1": 0, "n2": 50, "n3": 50}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', id="query refused"),
        pytest.param(503, b"", id="not ready"),
        pytest.param(200, b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', id="a scalar"),
        pytest.param(200, b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"n0"},"value":[1,"x"]}]}}', id="no number"),
        pytest.param(200, b"<html>", id="no Prometheus"),
    ],
)  # fmt: skip
def test_a_server_in_trouble_changes_nothing_until_figures_are_old(server, status, body):
    with cluster_with(server, staleAfterSeconds=300, refreshSeconds=15) as cluster:
        server.status, server.body = status, body
        cluster.advance(299)
        assert scores(cluster, "before")["n1"] == 50
        assert cluster.metric("podium_plugin_usage_aware_queries_total", result="failed") == 1
        cluster.advance(15)
        assert scores(cluster, "after") is None
        assert cluster.metric("podium_plugin_usage_aware_nodes") == 0
        assert cluster.pod("default/after").node_name != ""
