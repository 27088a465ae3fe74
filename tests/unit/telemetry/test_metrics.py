"""Metrics: upstream's names, labels, buckets; what each method books."""

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.cycle.metrics import CycleMetrics
from scheduler.framework.metrics import FrameworkMetrics
from scheduler.kube.lease import LeaderMetrics
from scheduler.kube.recorder import EventMetrics
from scheduler.kube.reflector_metrics import ReflectorMetrics
from scheduler.state.queue.metrics import QueueMetrics
from scheduler.telemetry.metrics import Metrics, attempts_label


def exp(start, factor, count):
    return [start * factor**i for i in range(count)]


UPSTREAM = {
    # name: (type, labels, buckets, stability), from spec 7.1
    "scheduler_schedule_attempts_total": ("counter", ("result", "profile"), [], "STABLE"),
    "scheduler_scheduling_attempt_duration_seconds": ("histogram", ("result", "profile"), exp(0.001, 2, 15), "STABLE"),
    "scheduler_scheduling_algorithm_duration_seconds": ("histogram", (), exp(0.001, 2, 15), "ALPHA"),
    "scheduler_event_handling_duration_seconds": ("histogram", ("event",), exp(0.0001, 2, 12), "ALPHA"),
    "scheduler_preemption_victims": ("histogram", (), exp(1, 2, 7), "STABLE"),
    "scheduler_preemption_attempts_total": ("counter", (), [], "STABLE"),
    "scheduler_pending_pods": ("gauge", ("queue",), [], "STABLE"),
    "scheduler_queue_incoming_pods_total": ("counter", ("queue", "event"), [], "STABLE"),
    "scheduler_pod_scheduling_attempts": ("histogram", (), exp(1, 2, 5), "STABLE"),
    "scheduler_pod_scheduling_sli_duration_seconds": ("histogram", ("attempts",), exp(0.01, 2, 20), "BETA"),
    "scheduler_framework_extension_point_duration_seconds": (
        "histogram",
        ("extension_point", "status", "profile"),
        exp(0.0001, 2, 12),
        "STABLE",
    ),
    "scheduler_plugin_execution_duration_seconds": (
        "histogram",
        ("plugin", "extension_point", "status"),
        exp(0.00001, 1.5, 20),
        "ALPHA",
    ),
    "scheduler_plugin_evaluation_total": ("counter", ("plugin", "extension_point", "profile"), [], "BETA"),
    "scheduler_permit_wait_duration_seconds": ("histogram", ("result",), exp(0.001, 2, 15), "BETA"),
    "scheduler_unschedulable_pods": ("gauge", ("plugin", "profile"), [], "BETA"),
    "scheduler_goroutines": ("gauge", ("operation",), [], "BETA"),
    "scheduler_cache_size": ("gauge", ("type",), [], "ALPHA"),
    "scheduler_queueing_hint_execution_duration_seconds": (
        "histogram",
        ("plugin", "event", "hint"),
        exp(0.00001, 1.5, 20),
        "ALPHA",
    ),
    "scheduler_inflight_events": ("gauge", ("event",), [], "ALPHA"),
    "scheduler_pod_scheduled_after_flush_total": ("counter", (), [], "ALPHA"),
    "scheduler_preemption_goroutines_duration_seconds": ("histogram", ("result",), exp(0.01, 2, 20), "ALPHA"),
    "scheduler_preemption_goroutines_execution_total": ("counter", ("result",), [], "ALPHA"),
    "leader_election_master_status": ("gauge", ("name",), [], "ALPHA"),
    "leader_election_slowpath_total": ("counter", ("name",), [], "ALPHA"),
    "rest_client_requests_total": ("counter", ("code", "method", "host"), [], "ALPHA"),
    "rest_client_request_duration_seconds": (
        "histogram",
        ("verb", "host"),
        [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
        "ALPHA",
    ),
    "kubernetes_healthcheck": ("gauge", ("name", "type"), [], "STABLE"),
    "kubernetes_healthchecks_total": ("counter", ("name", "type", "status"), [], "STABLE"),
    "kubernetes_feature_enabled": ("gauge", ("name", "stage"), [], "BETA"),
}


@pytest.fixture
def metrics():
    return Metrics(version="1.2.3", with_process=False)


@pytest.mark.parametrize("name", UPSTREAM)
def test_family_is_upstreams(metrics, name):
    kind, labels, buckets, stability = UPSTREAM[name]
    [family] = [f for f in (*metrics.families.main, *metrics.families.slis) if f.description.name == name]
    description = family.description
    assert (family.kind, description.labels, description.stability) == (kind, labels, stability)
    assert list(description.buckets) == pytest.approx(buckets)
    assert description.help


def test_only_upstreams_and_our_own_prefix_are_used(metrics):
    """Names under scheduler_ that upstream does not have would mislead; ours are podium_."""
    ours = {f.description.name for f in metrics.families.main} - set(UPSTREAM)
    foreign = {name for name in ours if not name.startswith(("podium_", "rest_client_"))}
    assert foreign == {
        "kubernetes_build_info",
        "version_info",
        "registered_metrics_total",
        "disabled_metrics_total",
        "hidden_metrics_total",
        "cardinality_enforcement_unexpected_categorizations_total",
    }


def test_counters_end_in_total_and_names_are_unique(metrics):
    families = [*metrics.families.main, *metrics.families.slis]
    assert len({f.description.name for f in families}) == len(families)
    assert all(f.description.name.endswith("_total") == (f.kind == "counter") for f in families)


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (1_000, "15+")])
def test_attempts_are_capped(attempts, label):
    assert attempts_label(attempts) == label


def value(metrics, name, labels):
    for family in text_string_to_metric_families(metrics.registry.render().decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


CALLS = [
    pytest.param(
        lambda m: m.expect_extender_calls("http://e", ["filter"]),
        "podium_extender_calls_total",
        {"extender": "http://e", "verb": "filter", "result": "skipped"},
        0,
        id="an extender was not called yet",
    ),
    pytest.param(
        lambda m: m.watch_staleness("Pod", lambda: 1.0),
        "podium_watch_relists_total",
        {"kind": "Pod", "cause": "expired"},
        0,
        id="nothing has happened to a watch yet",
    ),
    pytest.param(
        lambda m: m.expect_bind_outcomes(["lost"]),
        "podium_bind_outcomes_total",
        {"outcome": "unknown_lost"},
        0,
        id="no bind has ended yet",
    ),
    pytest.param(
        lambda m: m.bind_outcome("lost", was_unknown=True),
        "podium_bind_outcomes_total",
        {"outcome": "unknown_lost"},
        1,
        id="a bind ended that was unknown",
    ),
    pytest.param(
        lambda m: None,
        "podium_cache_drift_total",
        {"kind": "Pod", "difference": "missed"},
        0,
        id="there was no drift yet",
    ),
    pytest.param(
        lambda m: m.compared("Node", "drift"),
        "podium_comparisons_total",
        {"kind": "Node", "result": "drift"},
        1,
        id="a comparison found something",
    ),
    pytest.param(
        lambda m: m.attempt("scheduled", "p", 0.003),
        "scheduler_schedule_attempts_total",
        {"result": "scheduled", "profile": "p"},
        1,
        id="an attempt is counted",
    ),
    pytest.param(
        lambda m: m.attempt("error", "p", 0.003),
        "scheduler_scheduling_attempt_duration_seconds_bucket",
        {"result": "error", "profile": "p", "le": "0.004"},
        1,
        id="an attempt is timed",
    ),
    pytest.param(
        lambda m: m.pod_scheduled(20, 0.5, after_flush=True),
        "scheduler_pod_scheduling_sli_duration_seconds_count",
        {"attempts": "15+"},
        1,
        id="a scheduled pod tells its sli under the capped number of attempts",
    ),
    pytest.param(
        lambda m: m.pod_scheduled(2, None, after_flush=True),
        "scheduler_pod_scheduled_after_flush_total",
        {},
        1,
        id="a flushed pod is counted",
    ),
    pytest.param(
        lambda m: m.pending("gated", 2), "scheduler_pending_pods", {"queue": "gated"}, 2, id="pods come into a queue"
    ),
    pytest.param(
        lambda m: (m.pending("active", 2), m.pending("active", -1)),
        "scheduler_pending_pods",
        {"queue": "active"},
        1,
        id="pods leave a queue",
    ),
    pytest.param(
        lambda m: m.incoming("backoff", "NodeAdd"),
        "scheduler_queue_incoming_pods_total",
        {"queue": "backoff", "event": "NodeAdd"},
        1,
        id="a pod entered a queue",
    ),
    pytest.param(
        lambda m: m.pre_enqueue_duration("p", 0.1),
        "scheduler_framework_extension_point_duration_seconds_count",
        {"extension_point": "PreEnqueue", "status": "Success", "profile": "p"},
        1,
        id="pre-enqueue is always a success",
    ),
    pytest.param(
        lambda m: m.plugin_duration("Filter", "NodeName", "Success", 0.1),
        "scheduler_plugin_execution_duration_seconds_count",
        {"plugin": "NodeName", "extension_point": "Filter", "status": "Success"},
        1,
        id="a plugin is timed",
    ),
    pytest.param(
        lambda m: m.evaluation_counter("NodeName", "Filter", "p")(3),
        "scheduler_plugin_evaluation_total",
        {"plugin": "NodeName", "extension_point": "Filter", "profile": "p"},
        3,
        id="evaluations are counted through a bound function",
    ),
    pytest.param(
        lambda m: m.in_flight("binding", lambda: 3),
        "scheduler_goroutines",
        {"operation": "binding"},
        3,
        id="operations in flight",
    ),
    pytest.param(
        lambda m: m.extender_call("http://e", "filter", "skipped"),
        "podium_extender_calls_total",
        {"extender": "http://e", "verb": "filter", "result": "skipped"},
        1,
        id="an extender is left alone",
    ),
    pytest.param(
        lambda m: (m.plugin_quarantine("p", "Gpu", lambda: True), m.registry.refresh()),
        "podium_plugin_quarantined",
        {"profile": "p", "plugin": "Gpu"},
        1,
        id="a plugin is left out",
    ),
    pytest.param(
        lambda m: m.certificate_expiry("serving", lambda: 1.5e9),
        "podium_certificate_expiry_timestamp_seconds",
        {"certificate": "serving"},
        1.5e9,
        id="a certificate expires",
    ),
    pytest.param(
        lambda m: m.certificate_expiry("client", lambda: None),
        "podium_certificate_expiry_timestamp_seconds",
        {"certificate": "client"},
        None,
        id="there is no certificate",
    ),
    pytest.param(
        lambda m: m.memory_limit(lambda: None), "podium_memory_limit_bytes", {}, None, id="memory is not limited"
    ),
    pytest.param(
        lambda m: m.memory_limit(lambda: 2**29), "podium_memory_limit_bytes", {}, 2**29, id="memory is limited"
    ),
    pytest.param(
        lambda m: m.rest_request("POST", "api:443", "201", 0.01, waited_s=0.3, sent_bytes=70, received_bytes=700),
        "rest_client_requests_total",
        {"code": "201", "method": "POST", "host": "api:443"},
        1,
        id="a request is counted",
    ),
    pytest.param(
        lambda m: m.rest_request("POST", "api:443", "201", 0.01, waited_s=0.3, sent_bytes=70, received_bytes=700),
        "rest_client_rate_limiter_duration_seconds_sum",
        {"verb": "POST", "host": "api:443"},
        0.3,
        id="a request was held back",
    ),
    pytest.param(
        lambda m: m.rest_request("POST", "api:443", "201", 0.01, waited_s=0.0, sent_bytes=70, received_bytes=700),
        "rest_client_request_size_bytes_bucket",
        {"verb": "POST", "host": "api:443", "le": "64"},
        0,
        id="a request has a size",
    ),
    pytest.param(
        lambda m: m.rest_request("GET", "api:443", "<error>", 0.01, waited_s=0.0, sent_bytes=0, received_bytes=None),
        "rest_client_response_size_bytes_count",
        {"verb": "GET", "host": "api:443"},
        None,
        id="without an answer there is no size",
    ),
    pytest.param(
        lambda m: m.leader_validity("podium", lambda: 3.0),
        "leader_election_master_status",
        {"name": "podium"},
        1,
        id="who may write leads",
    ),
    pytest.param(
        lambda m: m.leader_validity("podium", lambda: 0.0),
        "leader_election_master_status",
        {"name": "podium"},
        0,
        id="whose lease has run out does not lead, whatever it was before",
    ),
    pytest.param(
        lambda m: m.watch_staleness("Pod", lambda: 1.0),
        "podium_watch_relists_total",
        {"kind": "Pod", "cause": "drift"},
        0,
        id="every cause of a new list is counted from 0",
    ),
    pytest.param(
        lambda _metrics: None,
        "scheduler_pod_scheduling_sli_duration_seconds_count",
        {"attempts": "1"},
        0,
        id="pods of the first attempt are counted from 0, or the alert cannot see what a new leader finds",
    ),
    pytest.param(
        lambda m: m.leads_alone("kube-scheduler"),
        "leader_election_master_status",
        {"name": "kube-scheduler"},
        1,
        id="we lead",
    ),
    pytest.param(
        lambda m: m.cache_sizes(lambda: 3, lambda: 5, lambda: 1),
        "scheduler_cache_size",
        {"type": "assumed_pods"},
        1,
        id="cache sizes are read at scrape time",
    ),
    pytest.param(
        lambda m: m.log_lines_dropped(lambda: 4), "podium_log_lines_dropped_total", {}, 4, id="lost log lines"
    ),
    pytest.param(
        lambda m: m.watches.events("Pod", 7), "podium_watch_events_total", {"kind": "Pod"}, 7, id="watch events"
    ),
    pytest.param(
        lambda m: m.feature("SomeGate", "", is_enabled=True),
        "kubernetes_feature_enabled",
        {"name": "SomeGate", "stage": ""},
        1,
        id="a gate is on",
    ),
]


@pytest.mark.parametrize(("call", "name", "labels", "expected"), CALLS)
def test_method_books_into_its_series(metrics, call, name, labels, expected):
    call(metrics)
    assert value(metrics, name, labels) == expected


def test_health_checks_go_to_slis_only(metrics):
    metrics.healthcheck("ping", "livez", is_healthy=False)
    text = metrics.slis.render().decode()
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 0.0' in text
    assert 'kubernetes_healthchecks_total{name="ping",status="error",type="livez"} 1.0' in text
    assert "kubernetes_healthcheck" not in metrics.registry.render().decode()


def test_build_and_process_are_described():
    text = Metrics(version="1.2.3").registry.render().decode()
    assert 'git_version="v1.2.3"' in text
    assert 'version_info{binary="1.2.3",component="podium",emulation="1.36",min_compat="1.36"} 1' in text
    assert "python_gc_collections_total" in text
    assert "process_resident_memory_bytes" in text
    assert 'registered_metrics_total{deprecated_version="",stability_level="STABLE"}' in text


def test_metrics_satisfies_the_protocols_of_the_measuring_parts(metrics):
    """mypy checks the signatures; this keeps the assignment in sight."""
    queue: QueueMetrics = metrics
    framework: FrameworkMetrics = metrics
    cycle: CycleMetrics = metrics
    leader: LeaderMetrics = metrics
    events: EventMetrics = metrics
    watches: ReflectorMetrics = metrics.watches
    assert all((queue, framework, cycle, leader, events, watches))


def test_series_stay_bounded_with_five_profiles(metrics):
    """Closed label sets: five profiles, every plugin at every point, stay below 5,000 lines."""
    points = [
        "PreFilter",
        "Filter",
        "PostFilter",
        "PreScore",
        "Score",
        "Reserve",
        "Permit",
        "PreBind",
        "Bind",
        "PostBind",
    ]
    for profile in "abcde":
        for point in points:
            for status in ("Success", "Unschedulable", "Error", "Skip"):
                metrics.extension_point(point, status, profile, 0.001)
        for result in ("scheduled", "unschedulable", "error"):
            metrics.attempt(result, profile, 0.1)
    assert metrics.registry.render().count(b"\n") < 5_000


def test_metrics_may_be_disabled_and_labels_restricted(metrics):
    """--disabled-metrics hides a family, --allow-metric-labels folds other values; unknown names do no harm."""
    metrics.restrict(
        {"scheduler_preemption_victims", "nothing"}, {"scheduler_pending_pods,queue": "active,gated", "x,y": "z"}
    )
    metrics.pending("active", 1)
    metrics.pending("backoff", 2)
    metrics.pending("unschedulable", 3)
    assert value(metrics, "scheduler_pending_pods", {"queue": "unexpected"}) == 5
    assert value(metrics, "scheduler_pending_pods", {"queue": "active"}) == 1
    assert value(metrics, "disabled_metrics_total", {}) == 2
    assert value(metrics, "cardinality_enforcement_unexpected_categorizations_total", {}) == 2
    assert "scheduler_preemption_victims" not in metrics.registry.render().decode()


def test_quarantine_is_read_at_each_scrape(metrics):
    """A plugin comes back by the clock, without anything happening to it; a new instance takes the old one's row."""
    out = {"old": True, "new": False}

    def shown():
        text = metrics.registry.render().decode()
        return [line for line in text.splitlines() if line.startswith("podium_plugin_quarantined{")]

    metrics.plugin_quarantine("green", "Carbon", lambda: out["old"])
    assert shown() == ['podium_plugin_quarantined{plugin="Carbon",profile="green"} 1.0']
    out["old"] = False
    assert shown() == ['podium_plugin_quarantined{plugin="Carbon",profile="green"} 0.0']
    out["new"] = True
    metrics.plugin_quarantine("green", "Carbon", lambda: out["new"])
    assert shown() == ['podium_plugin_quarantined{plugin="Carbon",profile="green"} 1.0']


def test_requests_of_two_threads_are_all_counted(metrics):
    """Service and scheduling thread call the same server."""

    def call():
        for _ in range(5_000):
            metrics.rest_request("POST", "h", "201", 0.01, waited_s=0.0, sent_bytes=1, received_bytes=1)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    where = {"verb": "POST", "host": "h"}
    assert value(metrics, "rest_client_requests_total", {"code": "201", "method": "POST", "host": "h"}) == 10_000
    assert value(metrics, "rest_client_request_duration_seconds_count", where) == 10_000
    assert value(metrics, "rest_client_response_size_bytes_count", where) == 10_000
