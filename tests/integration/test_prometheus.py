"""A real Prometheus scrapes the daemon as one in a cluster does: HTTPS it can verify, a ServiceAccount's own token.

What it then knows must be enough for every panel of the dashboard and every alert; and the alerts must tell a daemon
that works from one that does not.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.monitoring.generate.alerts import ALERTS, rule_file
from deploy.monitoring.generate.dashboard import expressions
from deploy.monitoring.generate.promql import METRICS
from tests.controlplane.cluster import HOST, ControlPlane
from tests.controlplane.pki import Authority, write_pair
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon
from tests.integration.third_party.install import install, profile_with
from tests.monitoring.build import Programs
from tests.monitoring.server import PrometheusServer

SCRAPE_S = 20.0
RBAC = "rbac.authorization.k8s.io"
NAME = re.compile(r"\b(?:scheduler|podium|rest_client|leader_election|process|python)_[a-z_]+")
ONLY_WITH_A_LIMIT = {"podium_memory_limit_bytes"}
"""Shown where the control group has a limit, which nothing on a developer's machine sets."""


@pytest.fixture
def token(control_plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The token of a ServiceAccount that may read metrics, in a file."""
    account = {"name": "prometheus", "namespace": cluster.namespace}
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts"
    cluster.client.ok("POST", path, {"metadata": {"name": "prometheus"}})
    rules = [{"nonResourceURLs": ["/metrics", "/metrics/slis", "/metrics/resources"], "verbs": ["get"]}]
    group = f"/apis/{RBAC}/v1"
    named = {"metadata": {"name": cluster.namespace}}
    cluster.client.ok("POST", f"{group}/clusterroles", {**named, "rules": rules})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": cluster.namespace}
    binding = {**named, "roleRef": role, "subjects": [{"kind": "ServiceAccount", **account}]}
    cluster.client.ok("POST", f"{group}/clusterrolebindings", binding)
    granted = cluster.client.ok("POST", f"{path}/prometheus/token", {"spec": {"expirationSeconds": 3600}})
    file = tmp_path / "token"
    file.write_text(granted["status"]["token"])
    yield file
    for kind in ("clusterroles", "clusterrolebindings"):
        cluster.client.ok("DELETE", f"{group}/{kind}/{cluster.namespace}")


@pytest.fixture
def daemon(control_plane: ControlPlane, cluster: Cluster, start_daemon: StartDaemon, tmp_path: Path) -> Daemon:
    """A daemon with a certificate of its own authority, a plugin that fails, and an extender that is not there."""
    authority = Authority()
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    certificate, key = write_pair(authority.server([HOST]), tmp_path, "serving")
    options = tmp_path / "options.yaml"
    faults = {"policy": "SkipPlugin", "quarantineAfter": 1, "quarantineSeconds": 600}
    options.write_text(
        yaml.safe_dump({"apiVersion": "podium.dev/v1alpha1", "kind": "SchedulerOptions", "pluginFaults": faults})
    )
    extender = {"urlPrefix": f"http://{HOST}:1/", "filterVerb": "filter", "ignorable": True}
    return start_daemon(
        profile_with(cluster.scheduler, "Faulty"),
        elect=True,
        configuration={"extenders": [extender]},
        flags=["--tls-cert-file", str(certificate), "--tls-private-key-file", str(key), "--options", str(options)],
        environment=install(tmp_path / "plugins"),
    )


def configuration(daemon: Daemon, token: Path, rules: Path) -> Mapping[str, Any]:
    """Return prometheus.yml."""
    job = {
        "scheme": "https",
        "authorization": {"credentials_file": str(token)},
        "tls_config": {"ca_file": str(token.parent / "ca.crt")},
        "static_configs": [{"targets": [f"{HOST}:{daemon.port}"], "labels": {"namespace": "test"}}],
    }
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": "podium", **job},
            {"job_name": "podium-resources", "metrics_path": "/metrics/resources", **job},
        ],
    }


def impatient_rules(directory: Path) -> Path:
    """Write the alert rules without their waiting times."""
    rules = rule_file()
    for rule in rules["groups"][0]["rules"]:
        rule.pop("for", None)
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump(rules))
    return file


def firing(prometheus: PrometheusServer) -> set[str]:
    """Return the names of the alerts that fire now."""
    return {a["labels"]["alertname"] for a in prometheus.api("alerts")["alerts"] if a["state"] == "firing"}


def play(cluster: Cluster) -> None:
    """Bound pods, one that fits nowhere, one that meets the plugin's fault, and a preemption."""
    low, high = (cluster.priority_class(name, value, preempts=True) for name, value in (("low", -10), ("high", 1000)))
    cluster.create(cluster.node(cpu="4"))
    cluster.create(*(cluster.pod(f"p{i}").requests(cpu="100m") for i in range(30)))
    cluster.wait_bound(*(f"p{i}" for i in range(30)))
    cluster.create(cluster.pod("big").requests(cpu="64"))
    cluster.create(cluster.pod("poisoned").labels(poison="yes"))
    victim = cluster.pod("low").requests(cpu="1").set("spec.priorityClassName", low)
    cluster.create(victim.set("spec.terminationGracePeriodSeconds", 0))
    cluster.wait_bound("low", "poisoned")
    cluster.create(cluster.pod("high").requests(cpu="1").set("spec.priorityClassName", high))
    cluster.wait_bound("high")
    cluster.wait_unschedulable("big")


@pytest.mark.timeout(240)
def test_prometheus_knows_what_dashboard_and_alerts_ask_for(
    cluster: Cluster, daemon: Daemon, token: Path, prometheus_programs: Programs, tmp_path: Path
) -> None:
    """Scrapes, series, panels, rules; which alerts fire while it works, and once it is gone."""
    daemon.wait_ready()
    with PrometheusServer(configuration(daemon, token, impatient_rules(tmp_path))) as prometheus:
        eventually(lambda: len(prometheus.query("up == 1")) == 2, "both pages scraped", timeout_s=SCRAPE_S)
        play(cluster)
        bound = 'scheduler_schedule_attempts_total{result="scheduled",job="podium"}'
        eventually(lambda: prometheus.query(f"{bound} == 33"), "33 bound pods in Prometheus", timeout_s=SCRAPE_S)
        requested = f'kube_pod_resource_request{{scheduler="{cluster.scheduler}",resource="cpu"}}'
        eventually(
            lambda: {labels["pod"] for labels, _ in prometheus.query(requested)} >= {"p0", "high", "big"},
            "the requests of the pods",
            timeout_s=SCRAPE_S,
        )

        shown = set(prometheus.api("label/__name__/values"))
        for expression in (*expressions(), *(alert.expression for alert in ALERTS)):
            for name in NAME.findall(expression):
                assert name in shown | ONLY_WITH_A_LIMIT, f"{name} is asked for by {expression}"
        # A rate is there after two scrapes; ratios of what has not happened are empty, everything else has a value.
        for expression in expressions():
            asked = re.sub(r"\$__rate_interval", "10s", expression).replace("$namespace", ".*").replace("$job", ".*")
            if not ONLY_WITH_A_LIMIT & set(NAME.findall(asked)):
                eventually(lambda asked=asked: prometheus.query(asked), f"a value of {asked}", timeout_s=SCRAPE_S)

        # The certificates of the tests are good for a day or so, and the plugin has been put into quarantine.
        expected = {"CertificateExpiring", "PluginQuarantined", "ExtenderFailing"}
        eventually(lambda: firing(prometheus) >= expected, f"{expected} to fire", timeout_s=SCRAPE_S)
        assert firing(prometheus) == expected
        text = daemon.metrics().text
        daemon.process.stop()
        eventually(lambda: "NoLeader" in firing(prometheus), "NoLeader to fire", timeout_s=SCRAPE_S)

    told = {name for name, _ in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)}
    assert told <= METRICS.keys()
    lint = subprocess.run(
        [prometheus_programs.promtool, "check", "metrics"], input=text, check=False, capture_output=True, text=True
    )
    complaints = [line for line in (lint.stdout + lint.stderr).splitlines() if line.startswith("podium_")]
    assert complaints == []
    assert "error while linting" not in lint.stdout + lint.stderr
