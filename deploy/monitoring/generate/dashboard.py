"""The Grafana dashboard: is it scheduling, what waits, how long things take, what it is connected to, what it uses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

from deploy.monitoring.generate.promql import Queries

_DATASOURCE: Final = DataSourceRef("prometheus", "$datasource")
_WINDOW: Final = "$__rate_interval"
_q: Final = Queries('namespace=~"$namespace",job=~"$job"')
_ATTEMPT: Final = "scheduler_scheduling_attempt_duration_seconds"
_WIDTH: Final = 8
_HEIGHT: Final = 7


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph.

    Attributes:
        title: its heading.
        queries: legend → PromQL.
        unit: Grafana's name of the unit.
        text: shown on the mark in its corner.
    """

    title: str
    queries: Mapping[str, str]
    unit: str = "short"
    text: str = ""


def _quantiles(name: str, by: tuple[str, ...] = (), where: str = "", legend: str = "") -> Mapping[str, str]:
    return {f"p{part * 100:g} {legend}".strip(): _q.quantile(part, name, _WINDOW, by, where) for part in (0.5, 0.99)}


ROWS: Final[Mapping[str, tuple[Panel, ...]]] = {
    "Is it scheduling?": (
        Panel(
            "Attempts",
            {"{{profile}} {{result}}": _q.rate("scheduler_schedule_attempts_total", _WINDOW, ("profile", "result"))},
            "reqps",
            "Decisions a second. `unschedulable` means that no node was good enough, `error` that something failed.",
        ),
        Panel(
            "Time until a pod has its node",
            _quantiles("scheduler_pod_scheduling_sli_duration_seconds"),
            "s",
            "From the pod's first way into the queue, over all its attempts.",
        ),
        Panel(
            "Binds",
            {"{{outcome}}": _q.rate("podium_bind_outcomes_total", _WINDOW, ("outcome",))},
            "reqps",
            "How the binds ended that were sent to the API server.",
        ),
        Panel(
            "Leader",
            {"{{instance}}": _q.highest("leader_election_master_status", ("instance",))},
            text="1: leads. Exactly one should.",
        ),
        Panel(
            "Seconds left to lead", {"{{instance}}": _q.highest("podium_leader_validity_seconds", ("instance",))}, "s"
        ),
        Panel(
            "Changes of leader in an hour",
            {"{{instance}}": _q.increase("podium_leader_changes_total", "1h", ("instance",))},
        ),
    ),
    "What is waiting?": (
        Panel("Pending pods", {"{{queue}}": _q.highest("scheduler_pending_pods", ("queue",))}),
        Panel("Pods held back, by plugin", {"{{plugin}}": _q.highest("scheduler_unschedulable_pods", ("plugin",))}),
        Panel("Longest waiting pod", {"{{job}}": _q.highest("podium_oldest_pending_pod_age_seconds")}, "s"),
        Panel(
            "Pods into the queues",
            {"{{event}} {{queue}}": _q.rate("scheduler_queue_incoming_pods_total", _WINDOW, ("event", "queue"))},
            "reqps",
        ),
        Panel("Preemptions", {"attempts": _q.rate("scheduler_preemption_attempts_total", _WINDOW)}, "reqps"),
        Panel("Inputs not yet applied", {"{{instance}}": _q.highest("podium_inbox_depth", ("instance",))}),
    ),
    "How long do things take?": (
        Panel("Attempt", _quantiles(_ATTEMPT, ("result",), legend="{{result}}"), "s"),
        Panel("Algorithm", _quantiles("scheduler_scheduling_algorithm_duration_seconds"), "s"),
        Panel(
            "Extension points, p99",
            {
                "{{extension_point}}": _q.quantile(
                    0.99, "scheduler_framework_extension_point_duration_seconds", _WINDOW, ("extension_point",)
                )
            },
            "s",
        ),
        Panel(
            "Plugins, p99",
            {
                "{{plugin}} {{extension_point}}": _q.quantile(
                    0.99, "scheduler_plugin_execution_duration_seconds", _WINDOW, ("plugin", "extension_point")
                )
            },
            "s",
            "A sample of one attempt in ten.",
        ),
        Panel(
            "Plugin faults",
            {
                "{{plugin}} {{extension_point}} {{kind}}": _q.rate(
                    "podium_plugin_faults_total", _WINDOW, ("plugin", "extension_point", "kind")
                ),
                "quarantined: {{plugin}} in {{profile}}": _q.highest(
                    "podium_plugin_quarantined", ("profile", "plugin")
                ),
            },
        ),
        Panel(
            "Calls of extenders",
            {"{{extender}} {{result}}": _q.rate("podium_extender_calls_total", _WINDOW, ("extender", "result"))},
            "reqps",
        ),
    ),
    "What is it connected to?": (
        Panel(
            "Requests to the API server",
            {"{{method}} {{code}}": _q.rate("rest_client_requests_total", _WINDOW, ("method", "code"))},
            "reqps",
        ),
        Panel(
            "Their duration, p99",
            {"{{verb}}": _q.quantile(0.99, "rest_client_request_duration_seconds", _WINDOW, ("verb",))},
            "s",
        ),
        Panel(
            "Waiting for our own rate limit, mean",
            {"{{verb}}": _q.mean("rest_client_rate_limiter_duration_seconds", _WINDOW, ("verb",))},
            "s",
        ),
        Panel(
            "Silence of the watches",
            {"{{kind}}": _q.highest("podium_watch_staleness_seconds", ("kind",))},
            "s",
            "The API server sends something about once a minute.",
        ),
        Panel(
            "Watches that ended, lists that became necessary",
            {
                "{{kind}} ended: {{cause}}": _q.increase("podium_watch_streams_ended_total", "10m", ("kind", "cause")),
                "{{kind}} listed: {{cause}}": _q.increase("podium_watch_relists_total", "10m", ("kind", "cause")),
            },
        ),
        Panel(
            "Should be zero",
            {
                "cache drift {{kind}} {{difference}}": _q.increase(
                    "podium_cache_drift_total", "1h", ("kind", "difference")
                ),
                "objects not understood {{kind}}": _q.increase("podium_rejected_objects_total", "1h", ("kind",)),
                "events dropped {{reason}}": _q.increase("podium_events_dropped_total", "1h", ("reason",)),
                "log lines dropped": _q.increase("podium_log_lines_dropped_total", "1h"),
            },
        ),
    ),
    "What does it use?": (
        Panel("CPU", {"{{instance}}": _q.rate("process_cpu_seconds_total", _WINDOW, ("instance",))}, "percentunit"),
        Panel(
            "Memory",
            {
                "{{instance}}": _q.highest("process_resident_memory_bytes", ("instance",)),
                "{{instance}} limit": _q.highest("podium_memory_limit_bytes", ("instance",)),
            },
            "bytes",
        ),
        Panel("Cache", {"{{type}}": _q.highest("scheduler_cache_size", ("type",))}),
        Panel(
            "Certificates end in",
            {
                "{{certificate}} {{instance}}": (
                    f"{_q.highest('podium_certificate_expiry_timestamp_seconds', ('instance', 'certificate'))} - time()"
                )
            },
            "s",
        ),
    ),
}
"""Headings and panels, from top to bottom."""


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it."""
    made = (
        build.Dashboard("Podium")
        .uid("podium-scheduler")
        .description("The Podium scheduler. Made by `make monitoring`; change deploy/monitoring/generate instead.")
        .tags(["podium", "kubernetes", "scheduler"])
        .refresh("30s")
        .time("now-1h", "now")
        .timezone("browser")
        .with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for name, label in (("namespace", "Namespace"), ("job", "Job")):
        made = made.with_variable(_label_variable(name, label))
    for heading, panels in ROWS.items():
        made = made.with_row(build.Row(heading))
        for panel in panels:
            made = made.with_panel(_graph(panel))
    return dict(json.loads(JSONEncoder(sort_keys=True).encode(made.build())))


def _label_variable(name: str, label: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .label(label)
        .datasource(_DATASOURCE)
        .query(f"label_values(podium_inbox_depth, {name})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .include_all(True)
        .all_value(".*")
        .multi(True)
    )


def _graph(panel: Panel) -> timeseries.Panel:
    made = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.text)
        .unit(panel.unit)
        .min(0)
        .datasource(_DATASOURCE)
        .span(_WIDTH)
        .height(_HEIGHT)
    )
    for number, (legend, expression) in enumerate(panel.queries.items()):
        query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(chr(ord("A") + number))
        made = made.with_target(query)
    return made


def expressions() -> tuple[str, ...]:
    """Return the PromQL of all panels."""
    return tuple(e for panels in ROWS.values() for panel in panels for e in panel.queries.values())
