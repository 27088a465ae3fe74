"""Every metric that Podium exposes: name, help text, labels, buckets and stability, in one table.

Names, labels, buckets and help texts under ``scheduler_``, ``rest_client_``, ``leader_election_`` and ``kubernetes_``
are kube-scheduler's (v1.36, default feature gates), so that dashboards and alerts written for it work unchanged
(``pkg/scheduler/metrics/metrics.go``, ``component-base/metrics/prometheus``). Ours start with ``podium_``.

# differs: what describes Go and its libraries is absent: ``go_*``, ``workqueue_*``, ``rest_client_exec_plugin_*``,
# ``rest_client_transport_*``, ``rest_client_request_retries_total`` (what is sent again is decided by who asked, not by
# a client library); Python's own runtime is under ``python_*``. The four batching metrics (``scheduler_batch_*``,
# ``scheduler_get_node_hint_*``, ``scheduler_store_schedule_results_*``) are absent because the class cache does that
# work without hints. A test compares the rest with a running kube-scheduler.
"""

from __future__ import annotations

from typing import Any

from scheduler.telemetry.recorders import (
    CounterFamily,
    Description,
    Family,
    GaugeFamily,
    HistogramFamily,
    Stability,
    exponential_buckets,
)

__all__ = ["POD_LIMIT", "POD_REQUEST", "POD_RESOURCES", "Families"]

_ATTEMPT = exponential_buckets(0.001, 2, 15)
_POINT = exponential_buckets(0.0001, 2, 12)
_PLUGIN = exponential_buckets(0.00001, 1.5, 20)
_SLI = exponential_buckets(0.01, 2, 20)
_REST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_REST_BYTES = (64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)

_PENDING_HELP = (
    "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of "
    "pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to "
    "schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule "
    "because they are gated."
)
_ATTEMPTS_HELP = (
    "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while "
    "'error' means an internal scheduler problem."
)
_UNSCHEDULABLE_HELP = (
    "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that "
    "caused it to not schedule and so this metric have meaning only when broken down by plugin."
)
_EVALUATION_HELP = (
    "Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, "
    "PreScore, and Score)."
)
_SLI_HELP = (
    "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve "
    "multiple scheduling attempts."
)
_FLUSH_HELP = (
    "Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This "
    "metric helps detect potential queueing hint misconfigurations or event handling issues."
)
_MASTER_HELP = (
    "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' "
    "is the string used to identify the lease. Please make sure to group by name."
)
_SLOWPATH_HELP = (
    "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. "
    "Please make sure to group by name."
)
_BUILD_HELP = (
    "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, "
    "Go version, and compiler from which Kubernetes was built, and platform on which it is running."
)
_VERSION_HELP = (
    "Provides the compatibility version info of the component. The component label is the name of the component, "
    "usually kube, but is relevant for aggregated-apiservers."
)
_BUILD_LABELS = (
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
)

_POD_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_POD_HELP = (
    "Resources {} workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and "
    "kubelet expect per pod for resources along with the unit for the resource if any."
)
POD_REQUEST = Description("kube_pod_resource_request", _POD_HELP.format("requested by"), _POD_LABELS, "STABLE")
POD_LIMIT = Description("kube_pod_resource_limit", _POD_HELP.format("limit for"), _POD_LABELS, "STABLE")
POD_RESOURCES = (POD_REQUEST, POD_LIMIT)
"""What /metrics/resources shows: made anew for every scrape, from the pods."""


class Families:
    """The table; ``main`` is served on /metrics, ``slis`` on /metrics/slis."""

    def __init__(self) -> None:
        self.main: list[Family[Any]] = []
        self.slis: list[Family[Any]] = []
        self._attempts()
        self._queue()
        self._framework()
        self._generic()
        self._podium_pipeline()
        self._podium_live_profiles()
        self._podium_watch()
        self._health()

    def _counter(self, name: str, text: str, *labels: str, level: Stability = "ALPHA", shared: bool = False) -> Any:
        family = CounterFamily(Description(name, text, labels, level, shared=shared))
        self.main.append(family)
        return family

    def _gauge(self, name: str, text: str, *labels: str, level: Stability = "ALPHA", optional: bool = False) -> Any:
        family = GaugeFamily(Description(name, text, labels, level, optional=optional))
        self.main.append(family)
        return family

    def _histogram(
        self,
        name: str,
        text: str,
        buckets: tuple[float, ...],
        *labels: str,
        level: Stability = "ALPHA",
        shared: bool = False,
    ) -> Any:
        family = HistogramFamily(Description(name, text, labels, level, buckets, shared=shared))
        self.main.append(family)
        return family

    def _attempts(self) -> None:
        self.schedule_attempts: CounterFamily = self._counter(
            "scheduler_schedule_attempts_total", _ATTEMPTS_HELP, "result", "profile", level="STABLE"
        )
        self.attempt_duration: HistogramFamily = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            _ATTEMPT,
            "result",
            "profile",
            level="STABLE",
        )
        self.algorithm_duration: HistogramFamily = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds", _ATTEMPT
        )
        self.event_handling: HistogramFamily = self._histogram(
            "scheduler_event_handling_duration_seconds", "Event handling latency in seconds.", _POINT, "event"
        )
        self.preemption_victims: HistogramFamily = self._histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            exponential_buckets(1, 2, 7),
            level="STABLE",
        )
        self.preemption_attempts: CounterFamily = self._counter(
            "scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now", level="STABLE"
        )
        self.preemption_goroutines: HistogramFamily = self._histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Duration in seconds for running goroutines for the preemption.",
            _SLI,
            "result",
        )
        self.preemption_executions: CounterFamily = self._counter(
            "scheduler_preemption_goroutines_execution_total", "Number of preemption goroutines executed.", "result"
        )
        self.sli_duration: HistogramFamily = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds", _SLI_HELP, _SLI, "attempts", level="BETA"
        )
        self.scheduling_attempts: HistogramFamily = self._histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential_buckets(1, 2, 5),
            level="STABLE",
        )
        self.scheduled_after_flush: CounterFamily = self._counter(
            "scheduler_pod_scheduled_after_flush_total", _FLUSH_HELP
        )

    def _queue(self) -> None:
        self.pending_pods: GaugeFamily = self._gauge("scheduler_pending_pods", _PENDING_HELP, "queue", level="STABLE")
        self.incoming_pods: CounterFamily = self._counter(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            "queue",
            "event",
            level="STABLE",
        )
        self.unschedulable_pods: GaugeFamily = self._gauge(
            "scheduler_unschedulable_pods", _UNSCHEDULABLE_HELP, "plugin", "profile", level="BETA"
        )
        self.hint_duration: HistogramFamily = self._histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Duration for running a queueing hint function of a plugin.",
            _PLUGIN,
            "plugin",
            "event",
            "hint",
        )
        self.inflight_events: GaugeFamily = self._gauge(
            "scheduler_inflight_events", "Number of events currently tracked in the scheduling queue.", "event"
        )

    def _framework(self) -> None:
        self.extension_point_duration: HistogramFamily = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            _POINT,
            "extension_point",
            "status",
            "profile",
            level="STABLE",
        )
        self.plugin_duration: HistogramFamily = self._histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            _PLUGIN,
            "plugin",
            "extension_point",
            "status",
        )
        self.plugin_evaluations: CounterFamily = self._counter(
            "scheduler_plugin_evaluation_total", _EVALUATION_HELP, "plugin", "extension_point", "profile", level="BETA"
        )
        self.permit_wait: HistogramFamily = self._histogram(
            "scheduler_permit_wait_duration_seconds", "Duration of waiting on permit.", _ATTEMPT, "result", level="BETA"
        )
        self.goroutines: GaugeFamily = self._gauge(
            "scheduler_goroutines",
            "Number of running goroutines split by the work they do such as binding.",
            "operation",
            level="BETA",
        )
        self.cache_size: GaugeFamily = self._gauge(
            "scheduler_cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", "type"
        )

    def _generic(self) -> None:
        self.rest_requests: CounterFamily = self._counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            "code",
            "method",
            "host",
            shared=True,
        )
        self.rest_duration = self._rest("request_duration_seconds", "Request latency in seconds", _REST_SECONDS, ",")
        self.rest_limiter = self._rest(
            "rate_limiter_duration_seconds", "Client side rate limiter latency in seconds", _REST_SECONDS, ","
        )
        self.rest_request_size = self._rest("request_size_bytes", "Request size in bytes", _REST_BYTES)
        self.rest_response_size = self._rest("response_size_bytes", "Response size in bytes", _REST_BYTES)
        self._election_and_build()
        self._about_metrics()

    def _election_and_build(self) -> None:
        self.leader_master: GaugeFamily = self._gauge("leader_election_master_status", _MASTER_HELP, "name")
        self.leader_slowpath: CounterFamily = self._counter("leader_election_slowpath_total", _SLOWPATH_HELP, "name")
        self.build_info: GaugeFamily = self._gauge("kubernetes_build_info", _BUILD_HELP, *_BUILD_LABELS, level="BETA")
        self.feature_enabled: GaugeFamily = self._gauge(
            "kubernetes_feature_enabled",
            "This metric records the data about the stage and enablement of a k8s feature.",
            "name",
            "stage",
            level="BETA",
        )
        self.version_info: GaugeFamily = self._gauge(
            "version_info", _VERSION_HELP, "component", "binary", "emulation", "min_compat"
        )

    def _about_metrics(self) -> None:
        self.registered_metrics: CounterFamily = self._counter(
            "registered_metrics_total",
            "The count of registered metrics broken by stability level and deprecation version.",
            "stability_level",
            "deprecated_version",
            level="BETA",
        )
        self.disabled_metrics: CounterFamily = self._counter(
            "disabled_metrics_total", "The count of disabled metrics.", level="BETA"
        )
        self.hidden_metrics: CounterFamily = self._counter(
            "hidden_metrics_total", "The count of hidden metrics.", level="BETA"
        )
        self.unexpected_labels: CounterFamily = self._counter(
            "cardinality_enforcement_unexpected_categorizations_total",
            "The count of unexpected categorizations during cardinality enforcement.",
            shared=True,
        )

    def _rest(self, name: str, text: str, buckets: tuple[float, ...], comma: str = "") -> HistogramFamily:
        help_text = f"{text}. Broken down by verb{comma} and host."
        family: HistogramFamily = self._histogram(
            f"rest_client_{name}", help_text, buckets, "verb", "host", shared=True
        )
        return family

    def _podium_pipeline(self) -> None:
        self.bind_outcomes: CounterFamily = self._counter(
            "podium_bind_outcomes_total", "How the binds ended that were sent to the API server.", "outcome"
        )
        self.binds_unknown: GaugeFamily = self._gauge(
            "podium_binds_unknown",
            "Binds of which nobody knows yet whether they were carried out; they keep their places.",
        )
        self.bindings_dropped: CounterFamily = self._counter(
            "podium_bindings_dropped_total", "Bindings whose pod turned out to be someone else's or gone.", "outcome"
        )
        self.plugin_faults: CounterFamily = self._counter(
            "podium_plugin_faults_total",
            "Exceptions, bad answers and overruns of plugins, caught by the guard.",
            "plugin",
            "extension_point",
            "kind",
            shared=True,
        )
        self.plugin_info: GaugeFamily = self._gauge(
            "podium_plugin_info",
            "Third-party plugins in use: which distribution and version, and the version of scheduler.api.",
            "plugin",
            "distribution",
            "version",
            "api_version",
        )
        self.oldest_pending: GaugeFamily = self._gauge(
            "podium_oldest_pending_pod_age_seconds", "Age in the queue of the pod that has been pending longest."
        )
        self.plugin_quarantined: GaugeFamily = self._gauge(
            "podium_plugin_quarantined",
            "1 while a third-party plugin is not called because of its faults, else 0.",
            "profile",
            "plugin",
        )
        self.extender_calls: CounterFamily = self._counter(
            "podium_extender_calls_total",
            "Calls of extenders, by how they ended: ok, failed, skipped (left alone after failures).",
            "extender",
            "verb",
            "result",
            shared=True,
        )
        self.inbox_depth: GaugeFamily = self._gauge(
            "podium_inbox_depth", "Inputs that wait to be applied to the scheduler's state."
        )
        self.events_posted: CounterFamily = self._counter(
            "podium_events_posted_total", "Kubernetes events written, by how.", "verb", shared=True
        )
        self.events_dropped: CounterFamily = self._counter(
            "podium_events_dropped_total", "Kubernetes events given up, by reason.", "reason", shared=True
        )
        self.log_lines_dropped: CounterFamily = self._counter(
            "podium_log_lines_dropped_total", "Log lines lost because the output did not take them."
        )
        self.leader_validity: GaugeFamily = self._gauge(
            "podium_leader_validity_seconds", "Seconds for which this process may still write as leader; 0 in standby."
        )
        self.leader_renew_duration: HistogramFamily = self._histogram(
            "podium_leader_renew_duration_seconds", "Time that the renewals of the lease took.", _ATTEMPT, "result"
        )
        self.leader_changes: CounterFamily = self._counter(
            "podium_leader_changes_total", "Changes of leader that this process has seen."
        )
        self.certificate_expiry: GaugeFamily = self._gauge(
            "podium_certificate_expiry_timestamp_seconds",
            "When a certificate in use expires, in seconds since 1970: the one we serve with, the one we call with.",
            "certificate",
        )
        self.memory_limit: GaugeFamily = self._gauge(
            "podium_memory_limit_bytes",
            "Memory that the control group of this process may use; absent without a limit.",
            optional=True,
        )

    def _podium_live_profiles(self) -> None:
        self.live_profiles: GaugeFamily = self._gauge(
            "podium_live_profiles", "SchedulerProfile objects, by what became of them.", "state"
        )
        self.live_profile_errors: CounterFamily = self._counter(
            "podium_live_profile_errors_total",
            "Failures in following the SchedulerProfile objects, by what failed.",
            "operation",
            shared=True,
        )

    def _podium_watch(self) -> None:
        self.watch_staleness: GaugeFamily = self._gauge(
            "podium_watch_staleness_seconds", "Seconds since the watch of a kind last proved to be alive.", "kind"
        )
        self.watch_lists: CounterFamily = self._counter(
            "podium_watch_lists_total", "Complete lists of a kind.", "kind", shared=True
        )
        self.watch_list_duration: HistogramFamily = self._histogram(
            "podium_watch_list_duration_seconds", "Time that complete lists took.", _REST_SECONDS, "kind", shared=True
        )
        self.watch_listed_objects: GaugeFamily = self._gauge(
            "podium_watch_listed_objects", "Objects in the last complete list of a kind.", "kind"
        )
        self.watch_relists: CounterFamily = self._counter(
            "podium_watch_relists_total",
            "Lists of a kind that became necessary after the first, by why.",
            "kind",
            "cause",
            shared=True,
        )
        self.watch_streams: CounterFamily = self._counter(
            "podium_watch_streams_total", "Watch streams of a kind that the server accepted.", "kind", shared=True
        )
        self.watch_restarts: CounterFamily = self._counter(
            "podium_watch_streams_ended_total",
            "Watch streams of a kind that ended, by why.",
            "kind",
            "cause",
            shared=True,
        )
        self.watch_events: CounterFamily = self._counter(
            "podium_watch_events_total", "Lines read from the watch streams of a kind.", "kind", shared=True
        )
        self.rejected_objects: CounterFamily = self._counter(
            "podium_rejected_objects_total", "Objects that could not be understood.", "kind", shared=True
        )
        self.cache_drift: CounterFamily = self._counter(
            "podium_cache_drift_total",
            "Objects of a kind that differed from the API server, by how.",
            "kind",
            "difference",
        )
        self.comparisons: CounterFamily = self._counter(
            "podium_comparisons_total",
            "Comparisons with a list of the API server, by what they found.",
            "kind",
            "result",
        )

    def _health(self) -> None:
        self.healthcheck = GaugeFamily(
            Description(
                "kubernetes_healthcheck",
                "This metric records the result of a single healthcheck.",
                ("name", "type"),
                "STABLE",
            )
        )
        self.healthchecks_total = CounterFamily(
            Description(
                "kubernetes_healthchecks_total",
                "This metric records the results of all healthcheck.",
                ("name", "type", "status"),
                "STABLE",
            )
        )
        self.process_start = GaugeFamily(
            Description(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                optional=True,
            )
        )
        self.slis += [self.healthcheck, self.healthchecks_total, self.process_start]
