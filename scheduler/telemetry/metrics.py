"""Metrics: what the parts of the scheduler measure, as methods named after what happened.

``Metrics`` satisfies the small Protocols that the measuring parts declare (``QueueMetrics``, ``FrameworkMetrics``,
``CycleMetrics``, the reflectors' and the transport's), so none of them knows Prometheus. Values that somebody already
holds (cache sizes, staleness, inbox depth) are not pushed but read at scrape time through callbacks.

Threads: everything is called on the scheduling thread unless the docstring says "any thread".
Cost: 0.3-0.6 µs a call (design record 0004); nothing here allocates after the first use of a label combination.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from scheduler.telemetry.exposition import MetricsRegistry, process_start_s
from scheduler.telemetry.families import Families
from scheduler.telemetry.plugin_families import PluginFamilies
from scheduler.telemetry.recorders import CounterRecorder, Family, GaugeRecorder, HistogramRecorder

__all__ = [
    "ATTEMPTS_CAP",
    "EMULATED_VERSION",
    "ERROR",
    "SCHEDULED",
    "UNSCHEDULABLE",
    "Metrics",
    "WatchMetrics",
    "attempts_label",
]

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
ERROR: Final = "error"

ATTEMPTS_CAP = 15
EMULATED_VERSION: Final = "1.36"
"""The minor version of kube-scheduler whose behaviour and metrics these are."""

_UNKNOWN = "unknown_"
_EVENT_DROPS = ("queue_full", "rejected", "retries", "status_queue_full", "stopped")
_STREAM_ENDS = ("closed", "cut", "silent", "error")
_RELIST_CAUSES = ("requested", "expired", "rewound", "drift", "unconfirmed")
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ATTEMPT_LABELS = (*(str(i) for i in range(ATTEMPTS_CAP)), f"{ATTEMPTS_CAP}+")


def attempts_label(attempts: int) -> str:
    """Return the ``attempts`` label: 1 … 14, then ``15+``."""
    return _ATTEMPT_LABELS[min(attempts, ATTEMPTS_CAP)]


class WatchMetrics:
    """What the reflectors count; ``kind`` is the name in manifests. Any thread."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def begin(self, kind: str) -> None:
        """Show from now on that nothing has happened yet: alerts cannot see a counter that appears with its first 1."""
        for cause in _STREAM_ENDS:
            self._families.watch_restarts.labels(kind, cause)
        for cause in _RELIST_CAUSES:
            self._families.watch_relists.labels(kind, cause)
        self._families.rejected_objects.labels(kind)

    def listed(self, kind: str, objects: int, duration_s: float) -> None:
        """Book a complete list."""
        self._families.watch_lists.labels(kind).inc()
        self._families.watch_list_duration.labels(kind).observe(duration_s)
        self._families.watch_listed_objects.labels(kind).set(objects)

    def relisting(self, kind: str, cause: str) -> None:
        """Count a list that became necessary after the first."""
        self._families.watch_relists.labels(kind, cause).inc()

    def watch_opened(self, kind: str) -> None:
        """Count an accepted stream."""
        self._families.watch_streams.labels(kind).inc()

    def watch_ended(self, kind: str, cause: str) -> None:
        """Count the end of a stream: ``closed``, ``cut``, ``silent`` or ``error``."""
        self._families.watch_restarts.labels(kind, cause).inc()

    def events(self, kind: str, count: int) -> None:
        """Count lines read from a stream."""
        self._families.watch_events.labels(kind).inc(count)

    def rejected(self, kind: str) -> None:
        """Count an object that could not be understood."""
        self._families.rejected_objects.labels(kind).inc()


class _RestSeries(NamedTuple):
    """What is booked for every request of one kind, looked up once."""

    requests: CounterRecorder
    duration: HistogramRecorder
    limiter: HistogramRecorder
    request_size: HistogramRecorder


class Metrics:
    """All metrics of one process.

    Attributes:
        registry: served on /metrics.
        slis: served on /metrics/slis.
        watches: handed to the reflectors (``ReflectorMetrics``).
        families: the table, for tests, dashboards and documentation.
        plugin_families: what plugins add to it.
    """

    def __init__(self, *, version: str = "", with_process: bool = True) -> None:
        self.families = families = Families()
        self.registry = MetricsRegistry(families.main, with_process=with_process)
        self.slis = MetricsRegistry(families.slis)
        self.watches = WatchMetrics(families)
        self._allowed_labels: Mapping[str, str] = {}
        self._quarantines: dict[tuple[str, str], Callable[[], bool]] = {}
        self.plugin_families = PluginFamilies(self._expose)
        self._rest: dict[tuple[str, str, str], _RestSeries] = {}
        self._points = families.extension_point_duration.labels
        self._plugins = families.plugin_duration.labels
        self._incoming = families.incoming_pods.labels
        self._pending = families.pending_pods.labels
        self._describe_build(version)
        self._begin_at_zero()
        if with_process and (started_s := process_start_s()) is not None:
            families.process_start.labels().set(started_s)

    def _describe_build(self, version: str) -> None:
        major, _, rest = version.partition(".")
        minor = rest.partition(".")[0]
        machine = _GO_ARCHITECTURES.get(platform.machine(), platform.machine())
        system = f"{platform.system().lower()}/{machine}"
        compiler = platform.python_implementation()
        self.families.build_info.labels(major, minor, f"v{version}", "", "", "", "", compiler, system).set(1)
        self.families.version_info.labels("podium", version, EMULATED_VERSION, EMULATED_VERSION).set(1)
        for family in (*self.families.main, *self.families.slis):
            self.families.registered_metrics.labels(family.description.stability, "").inc()

    def _begin_at_zero(self) -> None:
        for kind in ("Node", "Pod"):
            for difference in ("missed", "outdated", "redundant"):
                self.families.cache_drift.labels(kind, difference)
            for result in ("same", "drift", "failed"):
                self.families.comparisons.labels(kind, result)
        for reason in _EVENT_DROPS:
            self.families.events_dropped.labels(reason)
        self.families.sli_duration.labels(
            attempts_label(1)
        )  # a new leader's first scrape may show hundreds of late pods

    def expect_bind_outcomes(self, outcomes: Iterable[str]) -> None:
        """Count these ends of a bind from 0, also as ends that were unknown for a while."""
        for outcome in outcomes:
            self.families.bind_outcomes.labels(outcome)
            self.families.bind_outcomes.labels(f"{_UNKNOWN}{outcome}")

    def expect_extender_calls(self, extender: str, verbs: Iterable[str]) -> None:
        """Count calls of these verbs of an extender from 0."""
        for verb in verbs:
            for result in ("ok", "failed", "skipped"):
                self.families.extender_calls.labels(extender, verb, result)

    def restrict(self, disabled: Collection[str], allowed_labels: Mapping[str, str]) -> None:
        """Apply ``--disabled-metrics`` and ``--allow-metric-labels``; call it before anything is recorded.

        Args:
            disabled: full names.
            allowed_labels: "METRIC,LABEL" → allowed values, separated by commas; unknown ones are ignored.
        """
        self.families.disabled_metrics.labels().inc(len(set(disabled)))
        self.registry.disable(disabled)
        self.slis.disable(disabled)
        self._allowed_labels = allowed_labels
        for family in (*self.families.main, *self.families.slis):
            self._allow_labels(family)

    def _allow_labels(self, family: Family[Any]) -> None:
        for key, values in self._allowed_labels.items():
            name, _, label = key.partition(",")
            if family.description.name == name and label in family.description.labels:
                unexpected = self.families.unexpected_labels.labels().inc
                family.allow_only(label, frozenset(values.split(",")), unexpected)

    def _expose(self, family: Family[Any]) -> None:
        """Expose what a plugin made."""
        self._allow_labels(family)
        self.registry.add(family)

    # --- scheduling attempts -----------------------------------------------------------------------------------------

    def attempt(self, result: str, profile: str, duration_s: float) -> None:
        """Book one attempt: ``scheduled``, ``unschedulable`` or ``error``; the time includes binding."""
        self.families.attempt_duration.labels(result, profile).observe(duration_s)
        self.families.schedule_attempts.labels(result, profile).inc()

    def algorithm(self, duration_s: float) -> None:
        """Observe the time from the snapshot to the chosen node."""
        self.families.algorithm_duration.labels().observe(duration_s)

    def pod_scheduled(self, attempts: int, sli_duration_s: float | None, *, after_flush: bool) -> None:
        """Book a pod that got its node.

        Args:
            attempts: attempts it took, this one included.
            sli_duration_s: seconds since the pod first entered the active queue; None if unknown.
            after_flush: its last way out of the unschedulable pods was the 5-minute flush.
        """
        self.families.scheduling_attempts.labels().observe(attempts)
        if sli_duration_s is not None:
            self.families.sli_duration.labels(attempts_label(attempts)).observe(sli_duration_s)
        if after_flush:
            self.families.scheduled_after_flush.labels().inc()

    def binding_dropped(self, outcome: str) -> None:
        """Count a binding that came to nothing because the pod is someone else's or gone: ``lost``, ``gone``."""
        self.families.bindings_dropped.labels(outcome).inc()

    def preemption_attempt(self) -> None:
        """Count one run of preemption's PostFilter."""
        self.families.preemption_attempts.labels().inc()

    def preemption_victims(self, count: int) -> None:
        """Observe how many pods one preemption removes."""
        self.families.preemption_victims.labels().observe(count)

    def preemption_executed(self, result: str, duration_s: float) -> None:
        """Book the removal of victims in the background: ``success`` or ``error``."""
        self.families.preemption_goroutines.labels(result).observe(duration_s)
        self.families.preemption_executions.labels(result).inc()

    def event_handled(self, event: str, duration_s: float) -> None:
        """Observe the time that applying one cluster event took; ``event`` is its label."""
        self.families.event_handling.labels(event).observe(duration_s)

    # --- queue -------------------------------------------------------------------------------------------------------

    def incoming(self, queue: str, event: str) -> None:
        """Count a pod that entered ``active``, ``backoff`` or ``unschedulable`` because of an event."""
        self._incoming(queue, event).inc()

    def pending(self, queue: str, delta: int) -> None:
        """Move the number of pods in one of the queues."""
        self._pending(queue).add(delta)

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        """Move the number of pods that a plugin holds back."""
        self.families.unschedulable_pods.labels(plugin, profile).add(delta)

    def hint_duration(self, plugin: str, event: str, hint: str, duration_s: float) -> None:
        """Observe one call of a queueing hint: ``Queue``, ``QueueSkip`` or ``Error``."""
        self.families.hint_duration.labels(plugin, event, hint).observe(duration_s)

    def inflight_events(self, event: str, delta: int) -> None:
        """Move the number of events kept for the pods in flight."""
        self.families.inflight_events.labels(event).add(delta)

    def pre_enqueue_duration(self, profile: str, duration_s: float) -> None:
        """Observe one run of all PreEnqueue plugins of a profile.

        # parity: the status label always says Success; upstream's status variable is shadowed.
        """
        self._points("PreEnqueue", "Success", profile).observe(duration_s)

    # --- framework ---------------------------------------------------------------------------------------------------

    def extension_point(self, point: str, status: str, profile: str, duration_s: float) -> None:
        """Observe all plugins of one extension point together."""
        self._points(point, status, profile).observe(duration_s)

    def plugin_duration(self, point: str, plugin: str, status: str, duration_s: float) -> None:
        """Observe one plugin at one extension point; callers sample 10 % of the cycles."""
        self._plugins(plugin, point, status).observe(duration_s)

    def evaluation_counter(self, plugin: str, point: str, profile: str) -> Callable[[float], None]:
        """Return the function that counts evaluations; asked for once, called in every attempt."""
        return self.families.plugin_evaluations.labels(plugin, point, profile).inc

    def permit_wait(self, result: str, duration_s: float) -> None:
        """Observe how long a pod waited in Permit; ``result`` is the name of the final status code."""
        self.families.permit_wait.labels(result).observe(duration_s)

    def plugin_fault(self, plugin: str, point: str, kind: str) -> None:
        """Count an exception, a bad answer or an overrun; any thread."""
        self.families.plugin_faults.labels(plugin, point, kind).inc()

    def plugin_info(self, plugin: str, distribution: str, version: str, api_version: int) -> None:
        """Say where a third-party plugin comes from."""
        self.families.plugin_info.labels(plugin, distribution, version, str(api_version)).set(1)

    def plugin_quarantine(self, profile: str, plugin: str, is_out: Callable[[], bool]) -> None:
        """Show at each scrape whether a third-party plugin is in quarantine; a new instance takes the old one's row."""
        if not self._quarantines:
            self.registry.on_scrape(self._show_quarantines)
        self._quarantines[profile, plugin] = is_out

    def _show_quarantines(self) -> None:
        for labels, is_out in list(self._quarantines.items()):
            self.families.plugin_quarantined.labels(*labels).set(int(is_out()))

    def pods_scheduled(self, profile: str) -> float:
        """Return the pods of a profile that got their node; begins again when the metrics are reset; any thread."""
        child = self.families.schedule_attempts.by_labels.get((SCHEDULED, profile))
        return child.value if child is not None else 0.0

    def live_profiles(self, counts: Mapping[str, int]) -> None:
        """Show how many SchedulerProfile objects are ``serving``, ``outdated`` or ``refused``; service thread."""
        for state, count in counts.items():
            self.families.live_profiles.labels(state).set(count)

    def live_profile_error(self, operation: str) -> None:
        """Count a failure in following them: ``list``, ``apply``, ``status`` or ``watch``; any thread."""
        self.families.live_profile_errors.labels(operation).inc()

    # --- binding, intake ---------------------------------------------------------------------------------------------

    def bind_outcome(self, outcome: str, *, was_unknown: bool) -> None:
        """Count how a bind ended: bound, conflict, gone, refused …; after an unknown outcome as unknown_bound …"""
        self.families.bind_outcomes.labels(f"{_UNKNOWN}{outcome}" if was_unknown else outcome).inc()

    def extender_call(self, extender: str, verb: str, result: str) -> None:
        """Count a call of an extender (its URL prefix): ``ok``, ``failed`` or ``skipped``; any thread."""
        self.families.extender_calls.labels(extender, verb, result).inc()

    def cache_drift(self, kind: str, difference: str) -> None:
        """Count an object that a comparer found to differ: ``missed``, ``outdated`` or ``redundant``."""
        self.families.cache_drift.labels(kind, difference).inc()

    def compared(self, kind: str, result: str) -> None:
        """Count a comparison with the API server: ``same``, ``drift`` or ``failed``."""
        self.families.comparisons.labels(kind, result).inc()

    # --- kube: watches, calls, events, lease -------------------------------------------------------------------------

    def watch_staleness(self, kind: str, staleness_s: Callable[[], float]) -> None:
        """Show at each scrape how long ago the kind's stream last proved to be alive, and count for it from 0."""
        self.watches.begin(kind)
        self.gauge_callback(self.families.watch_staleness.labels(kind).set, staleness_s)

    def rest_request(
        self,
        method: str,
        host: str,
        code: str,
        duration_s: float,
        *,
        waited_s: float,
        sent_bytes: int,
        received_bytes: int | None,
    ) -> None:
        """Book one request to the API server; any thread.

        Args:
            method: in capitals.
            host: with port.
            code: HTTP status, or ``<error>`` when there was no answer.
            duration_s: from sending to the end of the answer (of a stream: to its beginning).
            waited_s: how long our own rate limit held it back.
            sent_bytes: body of the request.
            received_bytes: body of the answer; None if there was none to the end (errors, streams).
        """
        series = self._rest.get((code, method, host)) or self._rest_series(code, method, host)
        series.requests.inc()
        series.duration.observe(duration_s)
        series.limiter.observe(waited_s)
        series.request_size.observe(sent_bytes)
        if received_bytes is not None:
            self.families.rest_response_size.labels(method, host).observe(received_bytes)

    def _rest_series(self, code: str, method: str, host: str) -> _RestSeries:
        families = self.families
        series = self._rest[code, method, host] = _RestSeries(
            families.rest_requests.labels(code, method, host),
            families.rest_duration.labels(method, host),
            families.rest_limiter.labels(method, host),
            families.rest_request_size.labels(method, host),
        )
        return series

    def event_posted(self, verb: str) -> None:
        """Count an event written: ``create`` or ``patch``; any thread."""
        self.families.events_posted.labels(verb).inc()

    def event_dropped(self, reason: str) -> None:
        """Count an event given up: ``queue_full``, ``rejected``, ``retries`` or ``stopped``; any thread."""
        self.families.events_dropped.labels(reason).inc()

    def leads_alone(self, name: str) -> None:
        """Say that this process leads, as it takes part in no election."""
        self.families.leader_master.labels(name).set(1)

    def leader_slowpath(self, name: str) -> None:
        """Count a renewal that had to read the lease first; service thread."""
        self.families.leader_slowpath.labels(name).inc()

    def leader_renewed(self, result: str, duration_s: float) -> None:
        """Observe one try to acquire or renew: ``success`` or ``failure``; service thread."""
        self.families.leader_renew_duration.labels(result).observe(duration_s)

    def leader_changed(self) -> None:
        """Count a change of leader; service thread."""
        self.families.leader_changes.labels().inc()

    def healthcheck(self, name: str, kind: str, *, is_healthy: bool) -> None:
        """Book one run of a health check under /healthz, /livez or /readyz; service thread."""
        self.families.healthcheck.labels(name, kind).set(int(is_healthy))
        self.families.healthchecks_total.labels(name, kind, "success" if is_healthy else "error").inc()

    def feature(self, name: str, stage: str, *, is_enabled: bool) -> None:
        """Say that a feature gate is on or off; ``stage`` is ALPHA, BETA or "" for GA."""
        self.families.feature_enabled.labels(name, stage).set(int(is_enabled))

    # --- values read at scrape time ----------------------------------------------------------------------------------

    def cache_sizes(self, nodes: Callable[[], int], pods: Callable[[], int], assumed: Callable[[], int]) -> None:
        """Show the cache's sizes at each scrape; the callbacks read plain ints (they run on the service thread)."""
        for name, read in (("nodes", nodes), ("pods", pods), ("assumed_pods", assumed)):
            self.gauge_callback(self.families.cache_size.labels(name).set, read)

    def in_flight(self, operation: str, read: Callable[[], int]) -> None:
        """Show at each scrape how many operations of a kind are under way (``scheduler_goroutines``).

        # differs: only what really runs beside the decisions is shown, ``binding``. kube-scheduler also counts the
        # workers of its parallel loops (Filter, Score …), which do not exist here.
        """
        self.gauge_callback(self.families.goroutines.labels(operation).set, read)

    def binds_unknown(self, read: Callable[[], int]) -> None:
        """Show at each scrape how many binds have an unknown outcome."""
        self.gauge_callback(self.families.binds_unknown.labels().set, read)

    def certificate_expiry(self, certificate: str, read: Callable[[], float | None]) -> None:
        """Show at each scrape when a certificate in use (``serving``, ``client``) expires; None: there is none."""
        self._optional_callback(lambda: self.families.certificate_expiry.labels(certificate), read)

    def memory_limit(self, read: Callable[[], float | None]) -> None:
        """Show at each scrape how much memory this process may use; None: there is no limit."""
        self._optional_callback(self.families.memory_limit.labels, read)

    def inbox_depth(self, read: Callable[[], int]) -> None:
        """Show at each scrape how many inputs wait."""
        self.gauge_callback(self.families.inbox_depth.labels().set, read)

    def oldest_pending_age(self, read_s: Callable[[], float]) -> None:
        """Show at each scrape the age of the pod that has been pending longest."""
        self.gauge_callback(self.families.oldest_pending.labels().set, read_s)

    def leader_validity(self, name: str, read_s: Callable[[], float]) -> None:
        """Show at each scrape how long this process may still write as leader, and thereby whether it leads.

        # differs: kube-scheduler's status is what its elector noted last. A process that was frozen until after its
        # lease had ended would still call itself the leader when it is asked first.
        """
        validity, master = self.families.leader_validity.labels(), self.families.leader_master.labels(name)

        def refresh() -> None:
            validity_s = read_s()
            validity.set(validity_s)
            master.set(int(validity_s > 0))

        self.registry.on_scrape(refresh)

    def log_lines_dropped(self, read: Callable[[], int]) -> None:
        """Show at each scrape how many log lines were lost."""
        recorder = self.families.log_lines_dropped.labels()

        def refresh() -> None:
            recorder.value = read()

        self.registry.on_scrape(refresh)

    def _optional_callback(self, gauge: Callable[[], GaugeRecorder], read: Callable[[], float | None]) -> None:
        def refresh() -> None:
            value = read()
            if value is not None:
                gauge().set(value)

        self.registry.on_scrape(refresh)

    def gauge_callback(self, write: Callable[[float], None], read: Callable[[], float]) -> None:
        """Refresh one gauge at each scrape."""
        self.registry.on_scrape(lambda: write(read()))
