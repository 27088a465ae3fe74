"""The exposition: texts exactly as client_golang would write names, labels and buckets."""

import math

import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from scheduler.telemetry.exposition import MetricsRegistry, go_float, render_rows
from scheduler.telemetry.recorders import CounterFamily, Description, GaugeFamily, HistogramFamily


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (0.00001, "1e-05"),
        (0.000015, "1.5e-05"),
        (0.0001, "0.0001"),
        (16384.0, "16384"),
        (5242.88, "5242.88"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1048576.0, "1.048576e+06"),
        (16777216.0, "1.6777216e+07"),
        (123456.5, "123456.5"),
        (1234567.5, "1.2345675e+06"),
        (-2.5, "-2.5"),
        (2e20, "2e+20"),
        (-1e-7, "-1e-07"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_look_as_go_writes_them(value, text):
    """Expected texts were printed by strconv.FormatFloat(v, 'g', -1, 64)."""
    assert go_float(value) == text


def lines(registry):
    return registry.render().decode().splitlines()


def test_counter_keeps_its_name_and_shows_its_stability():
    """prometheus_client would otherwise add or strip _total."""
    family = CounterFamily(Description("x_total", "Things.", ("b", "a"), "STABLE"))
    family.labels("2", "1").inc(3)
    assert lines(MetricsRegistry([family])) == [
        "# HELP x_total [STABLE] Things.",
        "# TYPE x_total counter",
        'x_total{a="1",b="2"} 3.0',
    ]


def test_histogram_is_cumulative_and_has_no_created_series():
    family = HistogramFamily(Description("h_seconds", "Time.", buckets=(1.0, 2.0)))
    for value in (0.5, 1.5, 9.0):
        family.labels().observe(value)
    assert lines(MetricsRegistry([family])) == [
        "# HELP h_seconds [ALPHA] Time.",
        "# TYPE h_seconds histogram",
        'h_seconds_bucket{le="1"} 1.0',
        'h_seconds_bucket{le="2"} 2.0',
        'h_seconds_bucket{le="+Inf"} 3.0',
        "h_seconds_sum 11.0",
        "h_seconds_count 3.0",
    ]


def test_family_without_children_is_not_shown():
    """client_golang shows nothing of a vector that was never used."""
    assert lines(MetricsRegistry([GaugeFamily(Description("g", "", ("x",)))])) == []


def test_scrape_refreshes_values_that_others_hold():
    """A callback runs once for each scrape, before the values are read, and not at registration."""
    family = GaugeFamily(Description("g", ""))
    registry = MetricsRegistry([family])
    runs = iter(range(1, 10))
    registry.on_scrape(lambda: family.labels().set(next(runs)))
    assert lines(registry)[-1] == "g 1.0"
    assert lines(registry)[-1] == "g 2.0"


def test_collectors_of_plugins_are_shown_too():
    """A plugin may bring ordinary prometheus_client metrics."""
    registry = MetricsRegistry([])
    Counter("mine", "Own.", registry=registry.registry).inc()
    assert "mine_total 1.0" in lines(registry)


def test_hostile_label_values_stay_inside_their_quotes():
    family = CounterFamily(Description("x_total", "", ("a",)))
    family.labels('q"\n\\').inc()
    [parsed] = list(text_string_to_metric_families(MetricsRegistry([family]).render().decode()))
    assert parsed.samples[0].labels == {"a": 'q"\n\\'}


def test_rows_become_gauges_and_empty_ones_vanish():
    rows = {
        "kube_pod_resource_request": ("[STABLE] Requests.", [({"pod": "a", "unit": "cores"}, 0.5)]),
        "kube_pod_resource_limit": ("[STABLE] Limits.", []),
    }
    assert render_rows(rows).decode().splitlines() == [
        "# HELP kube_pod_resource_request [STABLE] Requests.",
        "# TYPE kube_pod_resource_request gauge",
        'kube_pod_resource_request{pod="a",unit="cores"} 0.5',
    ]
