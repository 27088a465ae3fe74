"""The same pods before kube-scheduler and before Podium, at the same time, on one API server: the same metrics.

Both schedule alike namespaces side by side, so both see the same events. What kube-scheduler then shows, Podium must
show with the same type, labels, buckets and, where labels are enumerations, the same values. What differs is named
here, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.integration.api import Cluster, condition, eventually
from tests.integration.conftest import StartDaemon
from tests.integration.daemon import Daemon
from tests.monitoring.exposition import ScrapedFamily, families

MERGE = "application/merge-patch+json"
PODS = 40
PROFILE = "PROFILE"

ABSENT = {
    r"go_.*": "Go's runtime; ours is under python_*",
    r"workqueue_.*": "work queues of Go's certificate and request-header controllers",
    r"(aggregator|apiextensions|apiserver|node_collector)_.*": "of libraries that are linked into kube-scheduler",
    r"rest_client_(exec_plugin|transport)_.*": "client-go's internals",
    r"rest_client_request_retries_total": "what is sent again is decided by who asked, not by a client library",
    r"process_(network_(receive|transmit)_bytes_total|virtual_memory_max_bytes)": "prometheus_client has them not",
    r"scheduler_(batch_(attempts|cache_flushed)_total|(get_node_hint|store_schedule_results)_duration_seconds)": (
        "kube-scheduler's batching; the class cache works without hints"
    ),
}
"""Families of kube-scheduler that Podium has not, as patterns, with the reasons."""

OPEN_LABELS = {
    ("kubernetes_build_info", None): "another program",
    ("version_info", None): "another program",
    ("kubernetes_feature_enabled", "name"): "only gates that change something are shown",
    ("kubernetes_feature_enabled", "stage"): "only gates that change something are shown",
    ("registered_metrics_total", "stability_level"): "there are no INTERNAL metrics",
    ("leader_election_master_status", "name"): "each has a lease of its own",
    ("rest_client_requests_total", "code"): "depends on when what is written",
    ("scheduler_goroutines", "operation"): "there are no parallel loops: only `binding` runs beside the decisions",
    ("scheduler_pod_scheduling_sli_duration_seconds", "attempts"): "depends on when what comes",
    ("scheduler_plugin_execution_duration_seconds", None): "a sample of one in ten",
    ("scheduler_queueing_hint_execution_duration_seconds", None): "depends on which pods wait when an event comes",
    ("scheduler_inflight_events", "event"): "depends on which pods are in flight when an event comes",
}
"""Labels whose values differ, or may; None stands for all labels of the family."""

ONLY_THEIRS = {
    ("scheduler_framework_extension_point_duration_seconds", "extension_point", "Sign"): (
        "signatures are part of the batching"
    ),
}
"""Values that only kube-scheduler shows."""

TIMING = {
    ("scheduler_unschedulable_pods", "plugin", "DefaultPreemption"): (
        "the preemptor is gated if a victim's end is seen before its removal has returned"
    ),
    ("scheduler_framework_extension_point_duration_seconds", "status", "Error"): (
        "PostFilter of the pod whose claim is not there, repeated when an event comes"
    ),
    ("kubernetes_healthcheck", "name", "watchdog"): "a check of ours: the scheduling thread turns",
    ("kubernetes_healthchecks_total", "name", "watchdog"): "a check of ours: the scheduling thread turns",
    ("kubernetes_healthchecks_total", "status", "error"): "depends on whether one asks before it is ready",
}
"""Values that either may show or not."""


@pytest.fixture
def theirs(control_plane: ControlPlane) -> Iterator[Cluster]:
    """kube-scheduler's namespace and nodes."""
    made = Cluster(control_plane, "theirs")
    try:
        yield made
    finally:
        made.close()


def play(cluster: Cluster) -> None:
    """Bound, gated, unschedulable, preempting and preempted pods; nodes that come and change; a missing claim."""
    low, high = (cluster.priority_class(name, value, preempts=True) for name, value in (("low", 10), ("high", 1000)))
    here = {"test": cluster.namespace}
    cluster.create(cluster.node("n", cpu="8", pods="200"))
    cluster.create(*(cluster.pod(f"p{i}").node_selector(here).requests(cpu="50m") for i in range(PODS)))
    cluster.create(cluster.pod("gated").node_selector(here).gate("example.com/wait"))
    cluster.create(cluster.pod("claimless").node_selector(here).claim("later"))
    cluster.create(cluster.pod("big").node_selector(here).requests(cpu="64").set("spec.priorityClassName", low))
    cluster.wait_bound(*(f"p{i}" for i in range(PODS)))
    cluster.wait_unschedulable("big")
    cluster.wait_unschedulable("claimless")
    cluster.client.ok("PATCH", cluster.pod_path("gated"), {"spec": {"schedulingGates": None}}, content_type=MERGE)
    cluster.wait_bound("gated")
    victim = cluster.pod("low").node_selector(here).requests(cpu="5").set("spec.priorityClassName", low)
    cluster.create(victim.set("spec.terminationGracePeriodSeconds", 0))
    cluster.wait_bound("low")
    cluster.create(cluster.pod("high").node_selector(here).requests(cpu="5").set("spec.priorityClassName", high))
    cluster.wait_bound("high")
    cluster.delete("p0", "gated")
    cluster.create(cluster.node("big", cpu="65").taint("example.com/not-yet"))
    wait_message(cluster, "big", "untolerated taint")
    cluster.patch(f"/api/v1/nodes/{cluster.namespace}-big", {"spec": {"taints": []}})
    cluster.wait_bound("big")


def wait_message(cluster: Cluster, pod: str, words: str) -> None:
    """Wait until the pod's condition says this."""
    eventually(lambda: words in (condition(cluster.get(pod)) or {}).get("message", ""), f"{pod} told of {words}")


def get(daemon: Daemon, port: int, path: str) -> tuple[int, str]:
    """GET as administrator from either of the two."""
    own, daemon.port = daemon.port, port
    try:
        return daemon.get(path, user="admin")
    finally:
        daemon.port = own


def scrape(daemon: Daemon, port: int, scheduler: str = "", path: str = "/metrics") -> dict[str, ScrapedFamily]:
    """Scrape as administrator; both show their profile under the same name."""
    status, text = get(daemon, port, path)
    assert status == 200, text
    return families(text.replace(scheduler, PROFILE) if scheduler else text)


def absent(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in ABSENT)


def label_differences(ours: ScrapedFamily, theirs: ScrapedFamily) -> list[str]:
    """Return the label values that one shows and the other should."""
    found = []
    for label, values in theirs.values.items():
        if {(theirs.name, None), (theirs.name, label)} & OPEN_LABELS.keys():
            continue
        allowed = {v for (name, of, v) in TIMING if (name, of) == (theirs.name, label)}
        theirs_only = {v for (name, of, v) in ONLY_THEIRS if (name, of) == (theirs.name, label)}
        more, less = ours.values[label] - values - allowed, values - ours.values[label] - allowed - theirs_only
        if more or less:
            found.append(f"{theirs.name}{{{label}}}: only ours {sorted(more)}, only theirs {sorted(less)}")
    return found


def differences(ours: dict[str, ScrapedFamily], theirs: dict[str, ScrapedFamily]) -> list[str]:
    """Return what kube-scheduler shows and we do not, or otherwise, and no list above explains."""
    found = []
    for name, expected in theirs.items():
        have = ours.get(name)
        if have is None:
            if not absent(name):
                found.append(f"{name} ({expected.stability} {expected.kind}) is missing")
            continue
        if absent(name):
            found.append(f"{name} is said to be absent, but is there")
        for what in ("kind", "stability", "help", "buckets"):
            if getattr(have, what) != getattr(expected, what):
                found.append(f"{name}: {what} is {getattr(have, what)!r}, not {getattr(expected, what)!r}")
        if have.values.keys() != expected.values.keys():
            found.append(f"{name}: labels are {list(have.values)}, not {list(expected.values)}")
            continue
        found += label_differences(have, expected)
    return found


@pytest.mark.timeout(180)
def test_metrics_are_kube_schedulers(
    control_plane: ControlPlane, cluster: Cluster, theirs: Cluster, start_daemon: StartDaemon
) -> None:
    """All families, types, stabilities, help texts, labels and buckets; label values where they are enumerations."""
    daemon = start_daemon(cluster.scheduler, elect=True)
    lease = {"leaderElect": True, "resourceName": theirs.namespace, "resourceNamespace": "kube-system"}
    real = control_plane.start_kube_scheduler(
        {"profiles": [{"schedulerName": theirs.scheduler}], "leaderElection": lease}
    )
    daemon.wait_ready()
    with ThreadPoolExecutor(2) as both:
        list(both.map(play, (cluster, theirs)))
    port = int(real.arguments[real.arguments.index("--secure-port") + 1])
    told = scrape(daemon, port, theirs.scheduler)
    assert differences(scrape(daemon, daemon.port, cluster.scheduler), told) == []
    gates = {tuple(labels.items()): value for labels, value in told["kubernetes_feature_enabled"].series}
    for labels, value in scrape(daemon, daemon.port)["kubernetes_feature_enabled"].series:
        assert gates[tuple(labels.items())] == value
    assert pod_resources(scrape(daemon, daemon.port, path="/metrics/resources")) == pod_resources(
        scrape(daemon, port, path="/metrics/resources")
    )
    for path in ("/healthz", "/livez", "/readyz"):
        assert get(daemon, port, path)[0] == get(daemon, daemon.port, path)[0] == 200
    told_slis, our_slis = (scrape(daemon, p, path="/metrics/slis") for p in (port, daemon.port))
    assert differences(our_slis, told_slis) == []


def pod_resources(scraped: dict[str, ScrapedFamily]) -> dict[str, object]:
    """Return everything that /metrics/resources says, in comparable form."""
    return {
        name: (f.kind, f.stability, f.help, sorted((sorted(labels.items()), value) for labels, value in f.series))
        for name, f in scraped.items()
    }
