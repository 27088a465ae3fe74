"""The example packages in the real daemon, on the real API server, as pip has installed them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.testing.pod_builder import PodBuilder
from tests.examples.install import install_all
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.third_party.install import install as install_gatekeepers
from tests.integration.third_party.install import profile_with
from tests.monitoring.build import Programs
from tests.monitoring.server import PrometheusServer

pytestmark = pytest.mark.timeout(180)

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the examples are installed."""
    environment = install_all(tmp_path_factory.mktemp("site"))
    return {"PYTHONPATH": environment["PYTHONPATH"]}


def test_carbon_aware_follows_its_file(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str], tmp_path: Path
) -> None:
    """Pods go to the clean zone, and to another one once the file says so; metrics name the package."""
    figures = tmp_path / "zones.json"
    figures.write_text(json.dumps({"north": 20, "south": 500}))
    for zone in ("north", "south"):
        cluster.create(cluster.node(zone, cpu="8").labels({ZONE: zone, **cluster.label}))
    profile = profile_with(cluster.scheduler, "CarbonAware", {"source": str(figures), "refreshSeconds": 0.2})
    profile["plugins"] = {"multiPoint": {"enabled": [{"name": "CarbonAware", "weight": 50}]}}
    daemon = start_daemon(profile, environment=site)
    daemon.wait_ready()
    eventually(lambda: daemon.metrics().total("podium_plugin_carbon_aware_reads_total", result="ok") > 0, "figures")
    cluster.create(*(cluster.pod(f"a{number}") for number in range(3)))
    assert set(cluster.wait_bound("a0", "a1", "a2").values()) == {f"{cluster.namespace}-north"}
    figures.write_text(json.dumps({"north": 600, "south": 500}))
    reads = daemon.counting()
    eventually(lambda: reads("podium_plugin_carbon_aware_reads_total", result="ok") >= 2, "new figures")
    cluster.create(cluster.pod("b0"))
    assert cluster.wait_bound("b0")["b0"] == f"{cluster.namespace}-south"
    metrics = daemon.metrics()
    assert metrics.total("podium_plugin_carbon_aware_stale", profile=cluster.scheduler) == 0
    package = {"distribution": "podium-example-carbon-aware", "version": "0.1.0", "api_version": "1"}
    assert metrics.total("podium_plugin_info", plugin="CarbonAware", **package) == 1
    assert "podium-example-carbon-aware" in daemon.log()


def test_gangs_that_fit_only_one_after_the_other(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str]
) -> None:
    """Members come in turns. One gang is placed as a whole, the other holds nothing, and follows when there is room."""
    cluster.create(cluster.node(cpu="3"))
    daemon = start_daemon(profile_with(cluster.scheduler, "Gang", {"waitSeconds": 20}), environment=site)
    daemon.wait_ready()

    def member(gang: str, number: int) -> PodBuilder:
        labels = {"gang.podium.dev/name": gang, "gang.podium.dev/size": "3"}
        return cluster.pod(f"{gang}{number}").labels(labels).requests(cpu="1")

    for number in range(3):
        cluster.create(member("a", number), member("b", number))
    names = {gang: [f"{gang}{number}" for number in range(3)] for gang in ("a", "b")}
    eventually(lambda: len(cluster.bound()) == 3, "one gang to be bound")
    (first,) = {name[0] for name in cluster.bound()}
    other = {"a": "b", "b": "a"}[first]
    eventually(lambda: daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 0, "nobody on hold")
    cluster.delete(*names[first])
    cluster.wait_bound(*names[other], timeout_s=60)
    assert daemon.metrics().total("podium_plugin_gang_completed_total") == 2


class _Exporter(BaseHTTPRequestHandler):
    """Shows what node_exporter would, as far as the query of the test goes."""

    text = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def exporter() -> Iterator[str]:
    """The address of a server that says how much of each node is in use."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Exporter) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_usage_aware_asks_a_real_prometheus(
    cluster: Cluster,
    start_daemon: StartDaemon,
    site: dict[str, str],
    exporter: str,
    prometheus_programs: Programs,
) -> None:
    """What is measured decides, against what is requested: the busy node has fewer pods."""
    del prometheus_programs
    busy, idle = (f"{cluster.namespace}-{name}" for name in ("busy", "idle"))
    _Exporter.text = f'node_cpu_use{{node="{busy}"}} 0.95\nnode_cpu_use{{node="{idle}"}} 0.05\n'
    cluster.create(cluster.node("busy", cpu="8"), cluster.node("idle", cpu="8"))
    scrape = {"job_name": "nodes", "static_configs": [{"targets": [exporter]}]}
    with PrometheusServer({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}) as prometheus:
        eventually(lambda: len(prometheus.query("node_cpu_use")) == 2, "the first scrape", timeout_s=60)
        arguments = {"prometheusUrl": prometheus.url, "query": "max by (node) (node_cpu_use)", "refreshSeconds": 0.5}
        profile = profile_with(cluster.scheduler, "UsageAware", arguments)
        profile["plugins"] = {"multiPoint": {"enabled": [{"name": "UsageAware", "weight": 50}]}}
        daemon = start_daemon(profile, environment=site)
        daemon.wait_ready()
        eventually(lambda: daemon.metrics().total("podium_plugin_usage_aware_nodes") == 2, "figures of both nodes")
        cluster.create(cluster.pod("a").requests(cpu="2"))
        assert cluster.wait_bound("a")["a"] == idle
    failed = daemon.counting()
    eventually(lambda: failed("podium_plugin_usage_aware_queries_total", result="failed") >= 1, "a failed query")
    cluster.create(cluster.pod("b"))
    assert cluster.wait_bound("b")["b"] == idle, "with the server gone the last figures hold for a while"


def test_a_faulty_plugin_is_skipped_where_the_profile_says_so(
    cluster: Cluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    """Its pods are bound, events and metrics name it; after three of them it is in quarantine."""
    options = tmp_path / "options.yaml"
    faults = {"policy": "SkipPlugin", "quarantineAfter": 3, "quarantineSeconds": 600}
    header = {"apiVersion": "podium.dev/v1alpha1", "kind": "SchedulerOptions"}
    options.write_text(yaml.safe_dump({**header, "profiles": {cluster.scheduler: {"pluginFaults": faults}}}))
    cluster.create(cluster.node())
    environment = install_gatekeepers(tmp_path / "site")
    profile = profile_with(cluster.scheduler, "Faulty")
    daemon = start_daemon(profile, environment=environment, flags=["--options", str(options)])
    daemon.wait_ready()
    names = [f"p{number}" for number in range(5)]
    for name in names:
        cluster.create(cluster.pod(name).label("poison", "yes"))
        cluster.wait_bound(name)
    told = eventually(lambda: [e for e in cluster.events("p0") if e["reason"] == "PluginSkipped"], "the event")
    assert told[0]["note"] == 'went on without plugin "Faulty": RuntimeError: poisoned pod at Filter'
    eventually(lambda: [e for e in cluster.events("p2") if e["reason"] == "PluginQuarantined"], "the other event")
    metrics = daemon.metrics()
    faulty = {"plugin": "Faulty"}
    assert metrics.total("podium_plugin_faults_total", extension_point="Filter", kind="exception", **faulty) == 3
    assert metrics.total("podium_plugin_quarantined", profile=cluster.scheduler, **faulty) == 1
    assert "plugin raised an exception" in daemon.log()
