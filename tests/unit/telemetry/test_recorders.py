"""The light recorders: arithmetic, labels, bounds."""

import threading

import pytest

from scheduler.telemetry.recorders import (
    OVERFLOW,
    CounterFamily,
    Description,
    GaugeFamily,
    HistogramFamily,
    exponential_buckets,
)


@pytest.mark.parametrize(
    ("value", "index"),
    [
        pytest.param(0.0, 0, id="zero falls into the first bucket"),
        pytest.param(1.0, 0, id="a bound belongs to its own bucket"),
        pytest.param(1.5, 1, id="between two bounds"),
        pytest.param(4.0, 2, id="the last bound"),
        pytest.param(4.1, 3, id="above all bounds is +Inf"),
        pytest.param(-1.0, 0, id="below all bounds"),
    ],
)
def test_histogram_puts_each_value_into_the_first_bucket_that_holds_it(value, index):
    histogram = HistogramFamily(Description("h", "", buckets=exponential_buckets(1, 2, 3))).labels()
    histogram.observe(value)
    assert [i for i, count in enumerate(histogram.counts) if count] == [index]
    assert histogram.sum == value


def test_exponential_buckets_are_upstreams():
    """Repeated multiplication, so that even the last digit agrees with Go."""
    bounds = exponential_buckets(0.00001, 1.5, 20)
    assert bounds[:3] == (0.00001, 0.000015000000000000002, 0.000022500000000000005)
    assert bounds[-1] == 0.02216837820053101


def test_children_are_found_again_and_bounded():
    """A family that is full books everything else under "other"."""
    family = CounterFamily(Description("c_total", "", ("a", "b"), max_children=2))
    family.labels("x", "y").inc()
    assert family.labels("x", "y").value == 1
    family.labels("x", "z").inc()
    family.labels("1", "2").inc()
    family.labels("3", "4").inc()
    assert {labels: child.value for labels, child in family.children()} == {
        ("x", "y"): 1,
        ("x", "z"): 1,
        (OVERFLOW, OVERFLOW): 2,
    }


def test_wrong_number_of_labels_is_refused():
    with pytest.raises(ValueError, match="c_total takes the labels"):
        CounterFamily(Description("c_total", "", ("a",))).labels("x", "y")


def test_reset_zeroes_counters_but_keeps_bound_children_and_gauges():
    """Gauges mirror a state; callers hold children for ever."""
    counter, gauge = CounterFamily(Description("c_total", "")), GaugeFamily(Description("g", ""))
    bound = counter.labels()
    bound.inc(5)
    gauge.labels().set(7)
    counter.clear()
    gauge.clear()
    assert (bound.value, gauge.labels().value) == (0, 7)
    bound.inc()
    assert counter.labels().value == 1


def test_shared_families_lose_nothing_between_threads():
    """Two threads count on one child."""
    counter = CounterFamily(Description("c_total", "", shared=True)).labels()
    histogram = HistogramFamily(Description("h", "", buckets=(1.0,), shared=True)).labels()
    gauge = GaugeFamily(Description("g", "", shared=True)).labels()

    def work():
        for _ in range(2_000):
            counter.inc()
            histogram.observe(0.5)
            gauge.add(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.value, histogram.counts[0], gauge.value) == (4_000, 4_000, 4_000)
