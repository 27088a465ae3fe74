"""The alerts: what each says, when it fires, and the page that tells what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from deploy.monitoring.generate.promql import RELEASE, TARGET, Queries, series

RUNBOOKS: Final = "https://podium.dev/docs/runbooks/"
SLO_SECONDS: Final = 5.12
"""The bucket next to the five seconds in which Kubernetes promises to start a pod that fits."""
SLO_PART: Final = 0.99
_ON: Final = f"on ({', '.join(RELEASE)})"
_WHERE: Final = "{{ $labels.namespace }}/{{ $labels.job }}"
_q: Final = Queries()

_AT_ONCE: Final = 'attempts="1"'
_UNKNOWN: Final = 'outcome=~"unknown.*"'
_COLLIDED: Final = 'outcome=~"conflict|lost"'
_ERROR: Final = 'result="error"'
_NOT_OK: Final = 'result!="ok"'
_THROTTLED: Final = 'code="429"'


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert rule.

    Attributes:
        name: of the alert and of its runbook.
        expression: PromQL; fires while it has a result.
        for_: how long it must have had one.
        severity: critical: somebody must look now; warning: today; info: when there is time.
        summary: one line.
        description: what it means, with the value.
    """

    name: str
    expression: str
    for_: str
    severity: str
    summary: str
    description: str

    def rule(self) -> Mapping[str, Any]:
        """Return it as a rule of a Prometheus rule file."""
        return {
            "alert": self.name,
            "expr": self.expression,
            **({"for": self.for_} if self.for_ else {}),
            "labels": {"severity": self.severity, "component": "podium"},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{RUNBOOKS}{self.name}.html",
            },
        }


def _burn(factor: float, long: str, short: str) -> str:
    """Return an expression for "the error budget is used up `factor` times too fast", now and for some time."""
    limit = f"{factor:g} * {1 - SLO_PART:.2f}"
    parts = (
        f"({_q.slower_than(SLO_SECONDS, 'scheduler_pod_scheduling_sli_duration_seconds', window, _AT_ONCE)})"
        for window in (long, short)
    )
    return " and ".join(f"{part} > {limit}" for part in parts)


def _slo(factor: float, long: str, short: str, for_: str, severity: str) -> Alert:
    return Alert(
        "SchedulingSLOBurn",
        _burn(factor, long, short),
        for_,
        severity,
        f"Podium {_WHERE} schedules too slowly",
        f"Over {long}, {{{{ $value | humanizePercentage }}}} of the pods that fitted at once waited longer than 5 s "
        f"for their node; 1 % is allowed. At this rate a month's allowance is gone in {30 / factor:.3g} days.",
    )


ALERTS: Final = (
    Alert(
        "NoLeader",
        f"{_q.highest('leader_election_master_status')} == 0 or absent({_q.value('leader_election_master_status')})",
        "2m",
        "critical",
        "No Podium leads",
        f"No instance of {_WHERE} has led for two minutes, or none is scraped any more. Pods that name this scheduler "
        "stay pending.",
    ),
    Alert(
        "LeaderFlapping",
        f"max by ({', '.join(RELEASE)}) (increase({series('podium_leader_changes_total')}[30m])) > 3",
        "",
        "warning",
        f"The leader of Podium {_WHERE} changes again and again",
        "An instance has seen {{ $value | humanize }} changes of leader in 30 minutes. Each one costs a new list of "
        "the cluster and some seconds without decisions.",
    ),
    Alert(
        "WatchStale",
        f"{_q.highest('podium_watch_staleness_seconds', ('instance', 'kind'))} > 180 "
        f"and on ({', '.join(TARGET)}, kind) {_q.value('podium_watch_lists_total')}",
        "2m",
        "critical",
        "Podium {{ $labels.instance }} hears nothing about {{ $labels.kind }}",
        "The watch of {{ $labels.kind }} has been silent for {{ $value | humanizeDuration }}; the API server sends a "
        "bookmark a minute. Decisions rest on an old picture of the cluster, or are not made.",
    ),
    Alert(
        "CacheDrift",
        f"{_q.increase('podium_cache_drift_total', '1h', ('instance', 'kind', 'difference'))} > 2",
        "",
        "warning",
        "Podium {{ $labels.instance }} keeps a wrong picture of {{ $labels.kind }}",
        "In the last hour a {{ $labels.kind }} was found {{ $labels.difference }} {{ $value | humanize }} times: "
        "either watch events get lost on the way from the API server (which is repaired), or the cache is not what "
        "the watches delivered (a bug).",
    ),
    Alert(
        "BindUnknownRate",
        f"{_q.ratio('podium_bind_outcomes_total', '10m', _UNKNOWN)} > 0.01",
        "10m",
        "warning",
        f"Podium {_WHERE} often does not learn how a bind ended",
        "{{ $value | humanizePercentage }} of the binds got no answer, so that Podium had to look what became of "
        "the pod.",
    ),
    Alert(
        "BindConflictRate",
        f"{_q.ratio('podium_bind_outcomes_total', '10m', _COLLIDED)} > 0.05",
        "10m",
        "warning",
        f"Binds of Podium {_WHERE} collide with others' writes",
        "{{ $value | humanizePercentage }} of the binds found the pod changed or bound by someone else.",
    ),
    Alert(
        "OldestPendingPod",
        f"{_q.highest('podium_oldest_pending_pod_age_seconds')} > 3600",
        "15m",
        "info",
        f"A pod of Podium {_WHERE} has been pending for more than an hour",
        "The pod that has waited longest has waited for {{ $value | humanizeDuration }}. Mostly the cluster has no "
        "room for it.",
    ),
    Alert(
        "ErrorAttempts",
        f"{_q.ratio('scheduler_schedule_attempts_total', '10m', _ERROR, ('profile',))} > 0.01",
        "10m",
        "warning",
        f"Attempts of Podium {_WHERE} end in errors",
        "{{ $value | humanizePercentage }} of the attempts of profile {{ $labels.profile }} ended in an error: not for "
        "lack of room, but because something failed.",
    ),
    _slo(14.4, "1h", "5m", "2m", "critical"),
    _slo(6, "6h", "30m", "15m", "warning"),
    Alert(
        "PluginQuarantined",
        f"{_q.highest('podium_plugin_quarantined', ('profile', 'plugin'))} == 1",
        "",
        "warning",
        "Plugin {{ $labels.plugin }} is left out of profile {{ $labels.profile }}",
        f"Podium {_WHERE} has put {{{{ $labels.plugin }}}} into quarantine, because it failed again and again.",
    ),
    Alert(
        "ExtenderFailing",
        f"{_q.ratio('podium_extender_calls_total', '10m', _NOT_OK, ('extender',))} > 0.1",
        "10m",
        "warning",
        "Extender {{ $labels.extender }} does not answer",
        f"{{{{ $value | humanizePercentage }}}} of the calls that Podium {_WHERE} makes to it fail, or are left out "
        "because it was too slow before.",
    ),
    Alert(
        "ApiThrottled",
        f"{_q.ratio('rest_client_requests_total', '10m', _THROTTLED)} > 0.02 "
        f"or {_q.mean('rest_client_rate_limiter_duration_seconds', '10m')} > 0.1",
        "10m",
        "warning",
        f"Podium {_WHERE} is held back",
        "Requests to the API server are refused with 429, or wait for Podium's own rate limit (clientConnection.qps): "
        "{{ $value | humanize }} (part refused, or seconds of waiting).",
    ),
    Alert(
        "MemoryNearLimit",
        f"max by ({', '.join(TARGET)}) ({_q.value('process_resident_memory_bytes')}) "
        f"/ max by ({', '.join(TARGET)}) ({_q.value('podium_memory_limit_bytes')}) > 0.9",
        "10m",
        "warning",
        "Podium {{ $labels.instance }} is about to run out of memory",
        "It uses {{ $value | humanizePercentage }} of its limit. At 100 % it is killed, and the standby takes over "
        "with the same need.",
    ),
    Alert(
        "CertificateExpiring",
        f"min by ({', '.join(TARGET)}, certificate) ({_q.value('podium_certificate_expiry_timestamp_seconds')}) "
        "- time() < 7 * 86400",
        "1h",
        "warning",
        "The {{ $labels.certificate }} certificate of Podium {{ $labels.instance }} is about to expire",
        "It expires in {{ $value | humanizeDuration }}.",
    ),
)


def rule_file() -> Mapping[str, Any]:
    """Return the rule file's content."""
    return {"groups": [{"name": "podium", "rules": [alert.rule() for alert in ALERTS]}]}
