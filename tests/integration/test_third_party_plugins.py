"""Plugins of somebody else, in the real daemon: found by entry point, waited for, and kept from doing harm."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from scheduler.testing.pod_builder import PodBuilder
from tests.controlplane.cluster import rbac_documents
from tests.integration.api import Cluster, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.third_party.install import install, profile_with

REDUCED = "podium-reduced"
"""The user, role and binding of a daemon that lacks a right."""


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """The environment in which the plugins are installed."""
    return install(tmp_path / "site")


def _member(cluster: Cluster, name: str, gang: str, size: int) -> PodBuilder:
    return cluster.pod(name).label("gang", gang).label("gang-size", str(size)).requests(cpu="1")


def test_gang_waits_in_permit_until_it_is_complete(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str]
) -> None:
    """Members hold their places without being bound; the last one lets all go. A gang that cannot complete times out."""
    cluster.create(cluster.node(cpu="4"))
    profile = profile_with(cluster.scheduler, "GangPermit", {"waitSeconds": 4})
    daemon = start_daemon(profile, environment=site)
    daemon.wait_ready()
    cluster.create(_member(cluster, "a1", "a", 3), _member(cluster, "a2", "a", 3))
    eventually(lambda: daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 2, "two pods on hold")
    cluster.create(cluster.pod("plain").requests(cpu="1"))
    assert cluster.wait_bound("plain").keys() == {"plain"}, "those on hold are not bound, and hold nobody up"
    cluster.create(_member(cluster, "a3", "a", 3))
    cluster.wait_bound("a1", "a2", "a3")
    cluster.delete("a1", "a2", "a3")
    cluster.create(_member(cluster, "b1", "b", 3))
    eventually(lambda: cluster.events("b1", "FailedScheduling"), "the word about the time-out", timeout_s=15)
    told = cluster.wait_unschedulable("b1")
    assert "rejected due to timeout after waiting 4s at plugin GangPermit" in told["message"]
    assert "b1" not in cluster.bound()
    eventually(lambda: daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 0, "the place given back")


def test_pod_deleted_on_hold_frees_its_place_at_once(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str]
) -> None:
    """Permit would have waited for a minute; the deletion ends the wait within a moment."""
    cluster.create(cluster.node(cpu="1"))
    daemon = start_daemon(profile_with(cluster.scheduler, "GangPermit", {"waitSeconds": 60}), environment=site)
    daemon.wait_ready()
    cluster.create(_member(cluster, "lonely", "g", 2))
    eventually(lambda: daemon.metrics().total("scheduler_cache_size", type="assumed_pods") == 1, "the pod on hold")
    cluster.create(cluster.pod("next").requests(cpu="1"))
    cluster.wait_unschedulable("next")
    deleted_s = time.monotonic()
    cluster.delete("lonely")
    cluster.wait_bound("next")
    print(f"place used {time.monotonic() - deleted_s:.2f} s after the deletion")


def test_faulty_plugin_costs_only_the_pod_it_fails_on(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str]
) -> None:
    """Its exception names plugin and point on that pod, which is retried with a growing back-off; others are bound."""
    cluster.create(cluster.node())
    daemon = start_daemon(profile_with(cluster.scheduler, "Faulty"), environment=site)
    daemon.wait_ready()
    started_s = time.monotonic()
    cluster.create(cluster.pod("poisoned").label("poison", "yes"))
    cluster.create(*(cluster.pod(f"p{i}") for i in range(20)))
    cluster.wait_bound(*(f"p{i}" for i in range(20)))
    told = cluster.wait_unschedulable("poisoned")
    assert told["reason"] == "SchedulerError"
    assert 'running "Faulty" filter plugin' in told["message"]
    assert "poisoned pod" in told["message"]

    def attempts() -> float:
        return daemon.metrics().total("scheduler_schedule_attempts_total", result="error")

    eventually(lambda: attempts() >= 3, "the third attempt")
    elapsed_s = time.monotonic() - started_s
    print(f"third attempt after {elapsed_s:.1f} s")
    assert elapsed_s >= 2, "back-off of 1 s, then 2 s, counted in whole seconds"
    assert daemon.health("/livez")[0] == 200


def test_daemon_ends_although_a_decision_hangs(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str]
) -> None:
    """A Filter that never returns stops all decisions; probes are answered still, and SIGTERM ends the process."""
    cluster.create(cluster.node())
    daemon = start_daemon(profile_with(cluster.scheduler, "HangingFilter"), environment=site)
    daemon.wait_ready()
    cluster.create(cluster.pod().label("hang", "yes"))
    eventually(lambda: daemon.metrics().total("scheduler_pending_pods", queue="active") == 0, "the pod to be popped")
    assert daemon.health("/healthz")[0] == 200
    code, seconds = daemon.terminate()
    print(f"ended after {seconds:.1f} s")
    assert code == 0
    assert seconds < 20
    assert "scheduling thread does not answer" in daemon.log()


def test_kind_that_may_not_be_read_degrades_only_its_plugin(
    cluster: Cluster, start_daemon: StartDaemon, site: dict[str, str], tmp_path: Path
) -> None:
    """Without the right to watch persistent volumes the daemon says what is missing, and schedules."""
    reduced = _rbac_without(tmp_path, "persistentvolumes")
    kubeconfig = cluster.plane.scheduler_identity(REDUCED, reduced)
    try:
        cluster.create(cluster.node())
        daemon = start_daemon(profile_with(cluster.scheduler, "WantsVolumes"), environment=site, kubeconfig=kubeconfig)
        daemon.wait_ready()
        cluster.create(cluster.pod())
        cluster.wait_bound()
        why = "not allowed to list and watch PersistentVolume: grant the verbs list and watch on persistentvolumes"
        assert why in daemon.log()
        assert f"watch PersistentVolume: {why}" in daemon.health("/readyz?verbose")[1]
    finally:
        _remove_reduced(cluster)


def test_core_kind_that_may_not_be_read_keeps_the_daemon_unready(
    cluster: Cluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    """Without nodes there is nothing to decide: alive, not ready, and the log names the missing right."""
    reduced = _rbac_without(tmp_path, "nodes")
    kubeconfig = cluster.plane.scheduler_identity(REDUCED, reduced)
    try:
        daemon = start_daemon(cluster.scheduler, kubeconfig=kubeconfig)
        eventually(lambda: "grant the verbs list and watch on nodes" in daemon.log(), "the missing right to be named")
        eventually(lambda: daemon.health("/livez")[0] == 200, "serving to begin")  # watches begin before it
        assert daemon.health("/readyz")[0] == 500
        cluster.plane.scheduler_identity(REDUCED, _rbac_without(tmp_path, ""))
        daemon.wait_ready()
    finally:
        _remove_reduced(cluster)


def _rbac_without(directory: Path, resource: str) -> Path:
    """Write the deployed RBAC file under names of its own, without one resource; returns the file."""
    documents = rbac_documents()
    for document in documents:
        if document["kind"] == "ClusterRole":
            document["metadata"]["name"] = REDUCED
            for rule in document["rules"]:
                rule["resources"] = [r for r in rule["resources"] if r != resource]
            document["rules"] = [rule for rule in document["rules"] if rule["resources"]]
        if document["kind"] == "ClusterRoleBinding":
            document["metadata"]["name"] = document["roleRef"]["name"] = REDUCED
    path = directory / "rbac.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def _remove_reduced(cluster: Cluster) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    cluster.client.call("DELETE", f"{rbac}/clusterroles/{REDUCED}")
    cluster.client.call("DELETE", f"{rbac}/clusterrolebindings/{REDUCED}-{REDUCED}")
