"""Metrics of plugins' own: names, labels, and what is exposed."""

import pytest

from scheduler.framework.plugin_metrics import ProfileMetrics
from scheduler.telemetry.metrics import Metrics
from scheduler.telemetry.plugin_families import PluginFamilies


def exposed(metrics):
    text = metrics.registry.render().decode()
    return [line for line in text.splitlines() if "podium_plugin_carbon" in line]


def test_they_are_exposed_under_a_prefix_with_the_profile_as_label():
    """A metric without labels of its own is there from the beginning, at zero."""
    metrics = Metrics(with_process=False)
    mine = ProfileMetrics("green", metrics.plugin_families)
    age = mine.gauge("carbon_age_seconds", "Age of the data.")
    reads = mine.counter("carbon_reads_total", "Reads, by result.", ("result",))
    mine.histogram("carbon_read_seconds", "Time of reads.", buckets=(0.5,)).observe(0.1)
    reads.labels("ok").inc()
    assert exposed(metrics) == [
        "# HELP podium_plugin_carbon_age_seconds [ALPHA] Age of the data.",
        "# TYPE podium_plugin_carbon_age_seconds gauge",
        'podium_plugin_carbon_age_seconds{profile="green"} 0.0',
        "# HELP podium_plugin_carbon_reads_total [ALPHA] Reads, by result.",
        "# TYPE podium_plugin_carbon_reads_total counter",
        'podium_plugin_carbon_reads_total{profile="green",result="ok"} 1.0',
        "# HELP podium_plugin_carbon_read_seconds [ALPHA] Time of reads.",
        "# TYPE podium_plugin_carbon_read_seconds histogram",
        'podium_plugin_carbon_read_seconds_bucket{le="0.5",profile="green"} 1.0',
        'podium_plugin_carbon_read_seconds_bucket{le="+Inf",profile="green"} 1.0',
        'podium_plugin_carbon_read_seconds_sum{profile="green"} 0.1',
        'podium_plugin_carbon_read_seconds_count{profile="green"} 1.0',
    ]
    age.set(3)
    age.add(-1)
    assert exposed(metrics)[2].endswith(" 2.0")


def test_profiles_share_a_metric_and_not_its_values():
    """Two instances of a plugin do not disturb each other."""
    families = PluginFamilies()
    one, two = (ProfileMetrics(name, families).gauge("age", "Age.") for name in ("one", "two"))
    one.set(1)
    two.set(2)
    assert {values: child.value for values, child in families.by_name["podium_plugin_age"].children()} == {
        ("one",): 1,
        ("two",): 2,
    }


def test_flags_about_metrics_hold_for_them_too():
    """Disabled ones are not shown, labels can be restricted."""
    metrics = Metrics(with_process=False)
    metrics.restrict({"podium_plugin_carbon_age"}, {"podium_plugin_carbon_reads_total,result": "ok"})
    mine = ProfileMetrics("green", metrics.plugin_families)
    mine.gauge("carbon_age", "Age.")
    mine.counter("carbon_reads_total", "Reads.", ("result",)).labels("user input").inc()
    assert exposed(metrics)[2:] == ['podium_plugin_carbon_reads_total{profile="green",result="unexpected"} 1.0']


@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(lambda m: m.gauge("Age", ""), "must be snake case", id="capitals"),
        pytest.param(lambda m: m.gauge("podium_plugin_age", ""), "without podium_plugin_", id="prefix twice"),
        pytest.param(lambda m: m.counter("reads", ""), "counters, and only they, end in _total", id="counter"),
        pytest.param(lambda m: m.gauge("reads_total", ""), "counters, and only they, end in _total", id="gauge"),
        pytest.param(lambda m: m.counter("faults_total", ""), "taken by the scheduler", id="ours"),
        pytest.param(lambda m: m.gauge("age", "", ("profile",)), "must be snake case and differ", id="label twice"),
        pytest.param(lambda m: m.histogram("age", "", ("le",)), "must be snake case and differ", id="reserved label"),
        pytest.param(lambda m: (m.gauge("age", ""), m.histogram("age", "")), "made before in another way", id="kind"),
        pytest.param(lambda m: (m.gauge("age", ""), m.gauge("age", "", ("a",))), "made before", id="labels"),
        pytest.param(lambda m: [m.gauge(f"age{i}", "") for i in range(201)], "plugins may make 200", id="too many"),
    ],
)
def test_refusals(make, text):
    """A mistake shows when the plugin is made."""
    with pytest.raises(ValueError, match=text):
        make(ProfileMetrics("green", PluginFamilies()))
