"""Clean zones first; old, bad and missing figures do no harm."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from podium_carbon_aware import CarbonAware

from scheduler.testing import Harness, node, pod

ZONE = "topology.kubernetes.io/zone"
ZONES = {"north": 30, "south": 400, "west": 200}


@pytest.fixture
def source(tmp_path):
    """Return a file with figures."""
    path = tmp_path / "zones.json"
    path.write_text(json.dumps(ZONES))
    return path


def cluster_with(source, **args):
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "CarbonAware", "weight": 10}]}},
        "pluginConfig": [{"name": "CarbonAware", "args": {"source": str(source), **args}}],
    }
    cluster = Harness(plugins={"CarbonAware": CarbonAware}, profile=profile)
    for zone in (*ZONES, "unknown"):
        cluster.put(node(zone).labels({ZONE: zone}).capacity(cpu="4", memory="8Gi", pods="110").obj())
    return cluster


def scores(cluster, name="p"):
    """Schedule a pod; return CarbonAware's scores by node, None if it stepped aside."""
    cluster.schedule(pod(name).obj())
    for plugin, _, column in cluster.last.scores.by_plugin:
        if plugin == "CarbonAware":
            return dict(zip(cluster.last.scores.nodes.names, column.tolist(), strict=True))
    return None


def test_clean_zones_score_high(source):
    with cluster_with(source) as cluster:
        assert scores(cluster) == {"north": 100, "south": 0, "west": 54, "unknown": 50}
        assert cluster.pod("default/p").node_name == "north"
        assert cluster.metric("podium_plugin_carbon_aware_stale") == 0


def test_new_figures_are_taken_when_they_come(source):
    """Pods that are alike share a ranking; it ends with the figures that it was made of."""
    with cluster_with(source) as cluster:
        assert [cluster.schedule(pod(f"p{number}").obj()) for number in range(4)] == ["north"] * 4
        source.write_text(json.dumps({**ZONES, "south": 1}))
        cluster.advance(60)
        assert cluster.schedule(pod("later").obj()) == "south"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty file"),
        pytest.param("{", id="broken JSON"),
        pytest.param("[1]", id="no object"),
        pytest.param("{}", id="no zone"),
        pytest.param('{"north": "30"}', id="a text"),
        pytest.param('{"north": -30}', id="below zero"),
        pytest.param('{"north": 1e999}', id="endless"),
        pytest.param(json.dumps({"north": 1, "x" * 1_000_000: 2}), id="too long"),
    ],
)
def test_bad_figures_change_nothing_until_the_last_good_ones_are_old(source, content):
    with cluster_with(source, staleAfterSeconds=600) as cluster:
        source.write_text(content)
        cluster.advance(599)
        assert scores(cluster, "before")["north"] == 100
        assert cluster.metric("podium_plugin_carbon_aware_reads_total", result="failed") == 1
        cluster.advance(61)
        assert scores(cluster, "after") is None
        assert cluster.metric("podium_plugin_carbon_aware_stale") == 1
        source.write_text(json.dumps(ZONES))
        cluster.advance(61)
        assert scores(cluster, "again")["north"] == 100
        assert cluster.metric("podium_plugin_carbon_aware_stale") == 0


def test_no_file_at_all(tmp_path):
    """Pods are scheduled all the same."""
    with cluster_with(tmp_path / "nothing.json") as cluster:
        assert scores(cluster) is None
        assert cluster.pod("default/p").node_name != ""
        assert cluster.metric("podium_plugin_carbon_aware_stale") == 1


class Server(ThreadingHTTPServer):
    """Answers as told: a status and a body, or not at all."""

    daemon_threads = True

    def __init__(self):
        self.status, self.body = 200, json.dumps(ZONES).encode()
        self.hangs = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/zones.json"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.server.hangs.is_set():
            self.server.over.wait(30)
            return
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as made:
        made.over = threading.Event()
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.over.set()
        made.shutdown()
        thread.join()


def test_figures_from_a_server(server):
    with cluster_with(server.url) as cluster:
        assert scores(cluster)["north"] == 100


@pytest.mark.parametrize("trouble", ["error", "silence", "gone"])
def test_a_server_in_trouble(server, trouble):
    """An error, no answer within the time limit, nobody there: the read counts as failed."""
    with cluster_with(server.url, timeoutSeconds=0.2) as cluster:
        if trouble == "error":
            server.status = 503
        elif trouble == "silence":
            server.hangs.set()
        else:
            server.socket.close()
        cluster.advance(60)
        assert cluster.metric("podium_plugin_carbon_aware_reads_total", result="failed") == 1
        assert scores(cluster)["north"] == 100, "the last good figures still hold"
