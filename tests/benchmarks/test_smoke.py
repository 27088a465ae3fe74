"""The harness works: every contestant binds a small workload, validly, and all figures are there. No time is asserted."""

from __future__ import annotations

import pytest

from tests.benchmarks import (
    core_budgets,
    core_hostile,
    core_only,
    core_preemption,
    plugin_cost,
    report,
    side_by_side,
    steady,
)
from tests.benchmarks.core_cases import CASES
from tests.benchmarks.documents import PLUGINS, PREEMPTION, STEADY, Document
from tests.benchmarks.stats import first_to_last_rate, histogram_percentile, percentile, sampled_rate

FIGURES = ("pods_per_s", "cpu_ms_per_pod", "cpu_ms_per_pod_settled", "requests_per_pod", "events_posted")


@pytest.mark.integration
@pytest.mark.bench
def test_side_by_side_harness_compares_valid_runs(tmp_path):
    """Twenty nodes, forty plain pods, one run of each: placements are checked inside, so no problem means valid."""
    arguments = ["--workloads", "W1", "--quick", "--runs", "1", "--nodes", "20", "--pods", "40", "--init", "10"]

    code = side_by_side.main([*arguments, "--output", str(tmp_path)])

    document = Document.read(tmp_path / "side-by-side.json")
    assert [(r["contestant"], r.get("problem")) for r in document.results][:2] == [
        ("kube-scheduler", None),
        ("podium", None),
    ]
    assert code == 0
    for result in document.results:
        assert all(result[name] is not None for name in FIGURES), result
        assert result["num_bound"] == 40
        assert result["requests_per_pod"] >= 1
    podium = document.results[1]
    assert podium["events_posted"] >= 40  # one a pod; one more says who leads
    assert podium["events_dropped"] == 0


@pytest.mark.bench
def test_core_benchmark_runs_every_built_case(tmp_path):
    """Each case whose plugins exist places its pods on a small cluster."""
    code = core_only.main(["--nodes", "30", "--pods", "20", "--output", str(tmp_path)])

    results = Document.read(tmp_path / "core.json").results
    assert code == 0
    assert {r["case"] for r in results} == {c.letter for c in CASES if not c.missing}


@pytest.mark.bench
def test_other_measurements_end_and_report(tmp_path):
    """Preemption, steady state and the plugin's cost, as small as can be; each writes a document that can be read."""
    output = ["--output", str(tmp_path)]
    core_preemption.main(["--nodes", "20", "--pods", "5", *output])
    steady.main(["--nodes", "30", "--pods", "5000", *output])
    plugin_cost.main(["--nodes", "30", "--pods", "20", *output])

    documents = [Document.read(path) for path in sorted(tmp_path.glob("*.json"))]
    assert {d.kind for d in documents} == {PREEMPTION, STEADY, PLUGINS}
    page = report.page(documents, {}, "By hand.")
    assert "hopeless, Never" in page
    assert "one node at a time" in page
    assert "% over 5,000 pods (the core alone)" in page


@pytest.mark.bench
def test_hostile_input_is_measured_beside_a_quiet_cluster(capsys):
    """One kind on a small cluster: a row for it, with all figures."""
    assert core_hostile.main(["--nodes", "9", "--pods", "6", "--only", "waiting pods, invalid"]) == 0

    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| 30 waiting pods")]
    assert len(rows) == 2
    assert all(len(row.split("|")) == 10 for row in rows)


@pytest.mark.bench
def test_preemption_is_measured_around_budgets(capsys):
    """A row for each number of budgets; two of them are what the others are compared with."""
    assert core_budgets.main(["--nodes", "4", "--pods", "2"]) == 0

    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 5
    assert rows[2][3].strip() == "1.00"
    assert rows[4][4].strip() == "1.00"


def test_rates_follow_scheduler_perf():
    """First sample sets the baseline, empty ticks share the next one's rate, the last partial tick is not seen."""
    times_s = [0.1, 0.2, 1.1, 1.2, 1.3, 3.1, 3.2, 4.1]

    assert sampled_rate(times_s, 0.0) == pytest.approx((3 + 1 + 1) / 3)
    assert first_to_last_rate(times_s) == pytest.approx(7 / 4)
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.0
    assert histogram_percentile({1.0: 0, 2.0: 0}, {1.0: 50, 2.0: 100}, 75) == pytest.approx(1.5)


def test_growth_exponent_is_the_slope_in_log_log():
    """A cost that grows tenfold with tenfold nodes has exponent 1; sizes below 1,000 do not count."""
    assert core_only.growth_exponent([(100, 5.0), (1_000, 10.0), (10_000, 100.0)]) == pytest.approx(1.0)
    assert core_only.growth_exponent([(1_000, 10.0)]) is None
