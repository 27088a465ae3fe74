"""Which fault shows what each alert is about, and so tries its runbook on something real.

Of each entry the test checks, on what was recorded meanwhile: the alert's condition came true; every query of the runbook
about our metrics has a result; every `grep` of our log, and of events, finds something; what the runbook says one sees
was seen. `docs/reliability.md` has the table made from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sight:
    """One alert in one fault.

    Attributes:
        alert: its name, and the runbook's.
        number: of the fault.
        test: the function's name.
        short_of: why the alert's condition does not come true; "" if it does.
        unseen: pieces of code of the runbook that are about other reasons for the same alert.
        shows: PromQL that must come true, beside the runbook's own.
        logs: words of the log that the runbook names.
        pages: words that `/readyz?verbose` must have shown.
        names: what stands for the runbook's words in capitals.
    """

    alert: str
    number: int
    test: str
    short_of: str = ""
    unseen: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


SIGHTS = (
    Sight(
        "NoLeader",
        2,
        "test_outage_beyond_the_lease",
        logs=("attempting to acquire leader lease", "lease call failed"),
    ),
    Sight(
        "LeaderFlapping",
        30,
        "test_lease_edited_by_hand",
        shows=("podium_leader_validity_seconds > 0", "podium_leader_validity_seconds == 0"),
    ),
    Sight(
        "WatchStale",
        11,
        "test_silent_pod_watch",
        short_of="the watch is opened anew after 90 s, and the alert waits for 180 s and two minutes more",
        shows=(
            'podium_watch_relists_total{kind="Pod",cause="unconfirmed"} > 0',
            'podium_watch_staleness_seconds{kind="Pod"} > 5',
        ),
        logs=("does not show our binds", "unconfirmed"),
        pages=("last heard",),
    ),
    Sight(
        "WatchStale",
        11,
        "test_watches_silent_for_an_hour",
        shows=('podium_watch_streams_ended_total{cause="silent"} > 0',),
        pages=("last heard",),
    ),
    Sight(
        "CacheDrift",
        12,
        "test_lost_lines",
        shows=('podium_watch_relists_total{cause="drift"} > 0', "podium_cache_drift_total > 0"),
        logs=("object differs from the api server", '"known":', '"listed":'),
        unseen=("cache mismatched",),
    ),
    Sight(
        "BindUnknownRate",
        16,
        "test_answers_lost_and_watch_late",
        shows=(
            'podium_bind_outcomes_total{outcome="unknown_bound"} > 0',
            'rest_client_requests_total{method="POST",code="<error>"} > 0',
        ),
    ),
    Sight(
        "BindConflictRate",
        23,
        "test_rival_binds_first",
        shows=('podium_bind_outcomes_total{outcome="lost"} > 0',),
    ),
    Sight(
        "ErrorAttempts",
        33,
        "test_raising_plugin",
        shows=('podium_plugin_faults_total{plugin="Raising",kind="exception"} > 0',),
        unseen=("sum by (extender, result) (rate(podium_extender_calls_total[10m]))",),
    ),
    Sight(
        "PluginQuarantined",
        33,
        "test_raising_plugin",
        shows=('podium_plugin_quarantined{plugin="Raising"} == 1', 'podium_plugin_info{plugin="Raising"} == 1'),
        logs=("Traceback",),
        names={"PLUGIN": "Raising"},
    ),
    Sight(
        "SchedulingSLOBurn",
        27,
        "test_partitioned_leader",
    ),
    Sight(
        "ExtenderFailing",
        36,
        "test_misbehaving_extender",
        shows=('podium_extender_calls_total{result="failed"} > 0',),
    ),
    Sight(
        "ApiThrottled",
        21,
        "test_too_many_requests",
        shows=('rest_client_requests_total{code="429"} > 0',),
    ),
    Sight(
        "CertificateExpiring",
        47,
        "test_certificate_rotation",
        shows=(
            'podium_certificate_expiry_timestamp_seconds{certificate="serving"} - time() < 7 * 86400',
            'podium_certificate_expiry_timestamp_seconds{certificate="client"} - time() < 7 * 86400',
        ),
    ),
    Sight(
        "OldestPendingPod",
        29,
        "test_hour_that_passes_at_once",
        shows=(
            'scheduler_unschedulable_pods{plugin="NodeResourcesFit"} == 1',
            'scheduler_pending_pods{queue="unschedulable"} == 1',
            "podium_oldest_pending_pod_age_seconds == 0",
        ),
    ),
    Sight(
        "MemoryNearLimit",
        45,
        "test_memory_limit",
        unseen=("podium_plugin_info",),
        shows=("python_gc_objects_uncollectable_total == 0",),
    ),
)

SILENT = 'podium_watch_staleness_seconds{kind="Pod"} > 3'
"""Under load a pod is heard of many times a second."""

SHOWN: Mapping[str, tuple[str, ...]] = {
    "test_crash_of_10_seconds": (SILENT,),
    "test_outage_beyond_the_lease": (SILENT,),
    "test_ten_crashes": ('sum(podium_watch_streams_ended_total{cause=~"cut|error|closed"}) >= 10',),
    "test_etcd_hangs_for_30_seconds": ("podium_binds_unknown > 0",),
    "test_watches_cut_mid_line": ('sum(podium_watch_streams_ended_total{cause="cut"}) >= 100',),
    "test_gone_after_compaction": ('podium_watch_relists_total{kind="Pod",cause="expired"} >= 1',),
    "test_no_bookmarks": ('sum(podium_watch_streams_ended_total{cause="silent"}) >= 1',),
    "test_frozen_leader": ("podium_leader_changes_total >= 2",),
    "test_partitioned_leader": (SILENT, "podium_leader_changes_total >= 2"),
    "test_hostile_quantities": ("podium_rejected_objects_total > 0",),
}
"""What the metrics must have shown at some moment of a fault, by the test's function: PromQL that came true."""


def metrics_show(test: str) -> tuple[str, ...]:
    """Return what the metrics must have shown in a test, by its id."""
    return SHOWN.get(_function(test), ())


def sights_of(test: str) -> list[Sight]:
    """Return the entries of a test, by its id."""
    return [sight for sight in SIGHTS if sight.test == _function(test)]


def _function(test: str) -> str:
    return test.rpartition("::")[2].partition("[")[0]
