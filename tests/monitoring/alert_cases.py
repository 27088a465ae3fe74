"""What the alerts are tried with: a healthy installation, and one thing after another that is wrong with it.

Each case lists series in promtool's notation (one sample a minute) that replace or join the healthy ones, the minute at
which one looks, and exactly the alerts that must fire then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TARGET = 'namespace="podium",job="podium",instance="10.0.0.1:10259"'
BACKUP = 'namespace="podium",job="podium",instance="10.0.0.2:10259"'
OTHER = 'namespace="kube-system",job="kube-scheduler",instance="10.0.0.9:10259"'
"""kube-scheduler under the same names: nothing that it shows may ever fire one of our alerts."""

SLI = "scheduler_pod_scheduling_sli_duration_seconds"
WEEK_S = 7 * 86400


def of(name: str, labels: str = "", target: str = TARGET) -> str:
    """Return a series."""
    return f"{name}{{{target}{',' if labels else ''}{labels}}}"


HEALTHY: Mapping[str, str] = {
    of("podium_inbox_depth"): "0x400",
    of("podium_inbox_depth", target=BACKUP): "0x400",
    of("leader_election_master_status", 'name="podium"'): "1x400",
    of("leader_election_master_status", 'name="podium"', BACKUP): "0x400",
    of("podium_leader_changes_total"): "1x400",
    of("podium_watch_staleness_seconds", 'kind="Pod"'): "30x400",
    of("podium_watch_lists_total", 'kind="Pod"'): "1x400",
    of("podium_cache_drift_total", 'kind="Pod",difference="missed"'): "0x60 1x400",
    of("podium_bind_outcomes_total", 'outcome="bound"'): "0+600x400",
    of("podium_bind_outcomes_total", 'outcome="unknown_bound"'): "0+1x400",
    of("podium_bind_outcomes_total", 'outcome="lost"'): "0+5x400",
    of("podium_oldest_pending_pod_age_seconds"): "60x400",
    of("scheduler_schedule_attempts_total", 'result="scheduled",profile="podium"'): "0+600x400",
    of("scheduler_schedule_attempts_total", 'result="error",profile="podium"'): "0+1x400",
    of(f"{SLI}_bucket", 'le="5.12",attempts="1"'): "0+598x400",
    of(f"{SLI}_count", 'attempts="1"'): "0+600x400",
    of("podium_extender_calls_total", 'extender="http://gpu",verb="filter",result="ok"'): "0+600x400",
    of("podium_extender_calls_total", 'extender="http://gpu",verb="filter",result="failed"'): "0+10x400",
    of("rest_client_requests_total", 'code="201",method="POST",host="api"'): "0+600x400",
    of("rest_client_requests_total", 'code="429",method="POST",host="api"'): "0+2x400",
    of("rest_client_rate_limiter_duration_seconds_sum", 'verb="POST",host="api"'): "0+1x400",
    of("rest_client_rate_limiter_duration_seconds_count", 'verb="POST",host="api"'): "0+600x400",
    of("process_resident_memory_bytes"): "200000000x400",
    of("podium_memory_limit_bytes"): "536870912x400",
    of("podium_certificate_expiry_timestamp_seconds", 'certificate="serving"'): f"{WEEK_S + 90_000}x400",
    of("podium_plugin_quarantined", 'profile="podium",plugin="Gpu"'): "0x400",
    of("leader_election_master_status", 'name="kube-scheduler"', OTHER): "0x400",
    of("scheduler_schedule_attempts_total", 'result="error",profile="default"', OTHER): "0+100x400",
    of(f"{SLI}_bucket", 'le="5.12",attempts="1"', OTHER): "0+1x400",
    of(f"{SLI}_count", 'attempts="1"', OTHER): "0+600x400",
    of("rest_client_requests_total", 'code="429",method="POST",host="api"', OTHER): "0+100x400",
}
"""Two instances that run well, some noise included, and a kube-scheduler that does not."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is wrong.

    Attributes:
        name: what.
        series: that replace or join the healthy ones.
        minute: when one looks.
        firing: the alerts that must fire, with their severity; no others may.
        gone: healthy series that are not there.
    """

    name: str
    series: Mapping[str, str]
    minute: int
    firing: Mapping[str, str]
    gone: Sequence[str] = field(default=())


LEADS = of("leader_election_master_status", 'name="podium"')
CASES = (
    Case("all is well", {}, 120, {}),
    Case("nobody leads, not yet for two minutes", {LEADS: "1x60 0x400"}, 62, {}),
    Case("nobody leads", {LEADS: "1x60 0x400"}, 64, {"NoLeader": "critical"}),
    Case("no instance is scraped", {}, 5, {"NoLeader": "critical"}, gone=[key for key in HEALTHY if OTHER not in key]),
    Case(
        "the leader changes again and again",
        {of("podium_leader_changes_total"): "1x60 2x5 3x5 4x5 5x5 6x400"},
        85,
        {"LeaderFlapping": "warning"},
    ),
    Case("two changes are an upgrade", {of("podium_leader_changes_total"): "1x60 2x5 3x400"}, 70, {}),
    Case(
        "a watch is silent",
        {of("podium_watch_staleness_seconds", 'kind="Pod"'): "30x60 60+60x100"},
        67,
        {"WatchStale": "critical"},
    ),
    Case(
        "a kind that was never listed, because there are no rights to it",
        {of("podium_watch_staleness_seconds", 'kind="ResourceSlice"'): "0+60x400"},
        100,
        {},
    ),
    Case(
        "the cache stays wrong",
        {of("podium_cache_drift_total", 'kind="Pod",difference="missed"'): "0x60 1x4 2x4 3x4 4x4 5x400"},
        85,
        {"CacheDrift": "warning"},
    ),
    Case(
        "binds without an answer",
        {of("podium_bind_outcomes_total", 'outcome="unknown_bound"'): "0+30x400"},
        60,
        {"BindUnknownRate": "warning"},
    ),
    Case(
        "someone else binds our pods",
        {
            of("podium_bind_outcomes_total", 'outcome="conflict"'): "0+30x400",
            of("podium_bind_outcomes_total", 'outcome="lost"'): "0+30x400",
        },
        60,
        {"BindConflictRate": "warning"},
    ),
    Case(
        "a pod has waited for hours",
        {of("podium_oldest_pending_pod_age_seconds"): "0+60x400"},
        80,
        {"OldestPendingPod": "info"},
    ),
    Case("a pod has waited for an hour", {of("podium_oldest_pending_pod_age_seconds"): "0+60x400"}, 70, {}),
    Case(
        "attempts end in errors",
        {of("scheduler_schedule_attempts_total", 'result="error",profile="podium"'): "0+30x400"},
        60,
        {"ErrorAttempts": "warning"},
    ),
    Case(
        "every fifth pod is late, for an hour",
        {of(f"{SLI}_bucket", 'le="5.12",attempts="1"'): "0+600x300 180120+480x400"},
        375,
        {"SchedulingSLOBurn": "critical"},
    ),
    Case(
        "every tenth pod is late, for hours",
        {of(f"{SLI}_bucket", 'le="5.12",attempts="1"'): "0+540x400"},
        150,
        {"SchedulingSLOBurn": "warning"},
    ),
    Case(
        "late pods, but no longer",
        {of(f"{SLI}_bucket", 'le="5.12",attempts="1"'): "0+480x60 28920+600x400"},
        100,
        {},
    ),
    Case(
        "a plugin is in quarantine",
        {of("podium_plugin_quarantined", 'profile="podium",plugin="Gpu"'): "0x60 1x400"},
        62,
        {"PluginQuarantined": "warning"},
    ),
    Case(
        "an extender does not answer, and is left alone",
        {of("podium_extender_calls_total", 'extender="http://gpu",verb="filter",result="skipped"'): "0+100x400"},
        60,
        {"ExtenderFailing": "warning"},
    ),
    Case(
        "the API server says 429",
        {of("rest_client_requests_total", 'code="429",method="POST",host="api"'): "0+60x400"},
        60,
        {"ApiThrottled": "warning"},
    ),
    Case(
        "our own rate limit is too low",
        {of("rest_client_rate_limiter_duration_seconds_sum", 'verb="POST",host="api"'): "0+300x400"},
        60,
        {"ApiThrottled": "warning"},
    ),
    Case(
        "memory runs out",
        {of("process_resident_memory_bytes"): "200000000x60 500000000x400"},
        75,
        {"MemoryNearLimit": "warning"},
    ),
    Case("there is no limit", {}, 75, {}, gone=[of("podium_memory_limit_bytes")]),
    Case(
        "a certificate ends in less than a week",
        {of("podium_certificate_expiry_timestamp_seconds", 'certificate="serving"'): f"{WEEK_S}x400"},
        120,
        {"CertificateExpiring": "warning"},
    ),
)
