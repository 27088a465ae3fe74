"""Health, metrics and configuration over HTTPS, for those who may see them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, eventually
from tests.integration.daemon import Daemon

STABLE = {
    "scheduler_framework_extension_point_duration_seconds": "histogram",
    "scheduler_pending_pods": "gauge",
    "scheduler_pod_scheduling_attempts": "histogram",
    "scheduler_preemption_attempts_total": "counter",
    "scheduler_preemption_victims": "histogram",
    "scheduler_queue_incoming_pods_total": "counter",
    "scheduler_schedule_attempts_total": "counter",
    "scheduler_scheduling_attempt_duration_seconds": "histogram",
}
"""kube-scheduler's stable metrics (1.36), with their types."""

WELL_KNOWN = {
    "leader_election_master_status",
    "rest_client_requests_total",
    "scheduler_cache_size",
    "scheduler_event_handling_duration_seconds",
    "scheduler_pod_scheduling_sli_duration_seconds",
    "scheduler_plugin_execution_duration_seconds",
    "scheduler_scheduling_algorithm_duration_seconds",
    "scheduler_unschedulable_pods",
}
"""Metrics that dashboards use although upstream does not call them stable."""


@pytest.fixture
def nobody(control_plane: ControlPlane) -> Iterator[str]:
    """A user of the cluster without any right."""
    control_plane.client_kubeconfig("nobody-in-particular")
    yield "nobody-in-particular"  # noqa: PT022  its files go with the control plane


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/ping"])
def test_health_is_for_everyone(path: str, daemon: Daemon) -> None:
    """Probes have no credentials; the paths themselves are open, single checks are not."""
    expected = 200 if path.count("/") == 1 else 403
    assert daemon.get(path, anonymous=True)[0] == expected


def test_ready_says_what_it_knows_about_each_watch(daemon: Daemon) -> None:
    """The verbose answer lists the checks, and one line a watch."""
    status, text = daemon.get("/readyz?verbose", anonymous=True)
    assert status == 200
    assert "[+]sched-handler-sync ok" in text
    assert "[+]shutdown ok" in text
    assert re.search(r"^watch Pod: synced, last heard \d+s ago$", text, re.MULTILINE)
    assert text.endswith("readyz check passed\n")


@pytest.mark.parametrize("path", ["/metrics", "/metrics/resources", "/metrics/slis", "/configz", "/flagz", "/statusz"])
def test_pages_are_for_those_who_may_see_them(path: str, daemon: Daemon, nobody: str) -> None:
    """A right on the nonResourceURL opens the page; without one it is 403, and a wrong token is 401."""
    assert daemon.get(path)[0] == 200
    assert daemon.get(path, user=nobody)[0] == 403
    assert daemon.get(path, anonymous=True)[0] == 403
    assert daemon.get(path, anonymous=True, headers={"Authorization": "Bearer nonsense"})[0] == 401


def test_metrics_have_kube_schedulers_names(cluster: Cluster, daemon: Daemon) -> None:
    """After a bound and an unschedulable pod every stable metric is there, of the right type, and counts."""
    grown = daemon.counting()
    cluster.create(cluster.node())
    cluster.create(*(cluster.pod(f"p{i}") for i in range(20)))
    cluster.create(cluster.pod("big").requests(cpu="64"))
    cluster.wait_bound(*(f"p{i}" for i in range(20)))
    cluster.wait_unschedulable("big")
    metrics = daemon.metrics()
    assert {name: metrics.families.get(name) for name in STABLE} == STABLE
    assert metrics.families.keys() >= WELL_KNOWN
    profile = {"profile": cluster.scheduler}
    assert grown("scheduler_schedule_attempts_total", result="scheduled", **profile) == 20
    eventually(lambda: grown("scheduler_pending_pods", queue="unschedulable") == 1, "the gauge of waiting pods")
    assert grown("scheduler_pod_scheduling_sli_duration_seconds_count") == 20
    assert grown("scheduler_scheduling_attempt_duration_seconds_count", result="unschedulable", **profile) >= 1
    assert metrics.total("scheduler_unschedulable_pods", plugin="NodeResourcesFit", **profile) == 1
    assert len(metrics.names) < 5_000
    assert cluster.namespace not in metrics.text.replace(cluster.scheduler, ""), "names of objects are no labels"


def test_resource_metrics_show_every_pod(cluster: Cluster, daemon: Daemon) -> None:
    """One series a pod and resource."""
    cluster.create(cluster.node())
    cluster.create(cluster.pod().requests(cpu="500m", memory="1Gi"))
    node_name = cluster.wait_bound()["p"]
    text = eventually(
        lambda: page if node_name in (page := daemon.get("/metrics/resources")[1]) else "", "the pod's series"
    )
    lines = [line for line in text.splitlines() if f'namespace="{cluster.namespace}"' in line]
    values = {re.search(r'resource="(\w+)"', line)[1]: float(line.rsplit(" ", 1)[1]) for line in lines}
    assert values == {"cpu": 0.5, "memory": 2.0**30}


def test_configz_is_the_completed_configuration(daemon: Daemon) -> None:
    """Defaults are filled in; nothing secret is shown."""
    shown = daemon.configz()["componentconfig"]
    assert [p["schedulerName"] for p in shown["profiles"]] == daemon.schedulers
    assert shown["podMaxBackoffSeconds"] == 10
    text = daemon.get("/configz")[1]
    assert "BEGIN" not in text
