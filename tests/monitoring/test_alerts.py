"""The alert rules in promtool: what each fires on, and that nothing else does; and the pages that they point to."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.monitoring.generate.alerts import ALERTS, RUNBOOKS
from deploy.monitoring.generate.promql import Queries, series
from tests.monitoring.alert_cases import CASES, HEALTHY
from tests.monitoring.build import Programs

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = REPOSITORY / "deploy/monitoring/alerts.yaml"
PAGES = REPOSITORY / "docs/runbooks"
SECTIONS = ["## What it means", "## What to look at", "## What to do", "## How it clears"]


def promtool(programs: Programs, *words: str) -> str:
    """Run promtool; fails with what it says if it is not content."""
    result = subprocess.run([programs.promtool, *words], check=False, capture_output=True, text=True, timeout=150)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_rules_are_valid_and_without_a_lint(prometheus_programs: Programs) -> None:
    """Syntax, duplicates, templates."""
    assert f"{len(ALERTS)} rules found" in promtool(prometheus_programs, "check", "rules", "--lint-fatal", str(RULES))


@pytest.mark.timeout(180)
def test_each_alert_fires_on_what_it_is_for_and_on_nothing_else(prometheus_programs: Programs, tmp_path: Path) -> None:
    """All cases in one run; each says exactly which alerts fire."""
    tests = []
    for case in CASES:
        shown = {**{key: values for key, values in HEALTHY.items() if key not in case.gone}, **case.series}
        fired = [
            {"labels": f'{{alertname="{name}",severity="{severity}"}}', "value": 1}
            for name, severity in case.firing.items()
        ]
        look = {
            "expr": 'count by (alertname, severity) (ALERTS{alertstate="firing"})',
            "eval_time": f"{case.minute}m",
            "exp_samples": fired,
        }
        inputs = [{"series": key, "values": values} for key, values in shown.items()]
        tests.append({"name": case.name, "interval": "1m", "input_series": inputs, "promql_expr_test": [look]})
    file = tmp_path / "alerts_test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    promtool(prometheus_programs, "test", "rules", str(file))


def test_every_alert_has_a_case() -> None:
    assert {name for case in CASES for name in case.firing} == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("name", sorted({alert.name for alert in ALERTS}))
def test_the_runbook_answers_the_four_questions(name: str) -> None:
    """What it means, what to look at, what to do, how it clears; it says when the alert fires."""
    text = (PAGES / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## .*$", text, re.MULTILINE) == SECTIONS
    for alert in ALERTS:
        if alert.name == name:
            assert alert.rule()["annotations"]["runbook_url"] == f"{RUNBOOKS}{name}.html"
            assert alert.severity in text


def test_no_runbook_is_left_without_its_alert() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {alert.name for alert in ALERTS}


@pytest.mark.parametrize(
    ("name", "where", "suffix", "text"),
    [
        ("podium_nothing", "", "", "there is no metric"),
        ("podium_inbox_depth", 'kind="Pod"', "", "has no label kind"),
        ("podium_inbox_depth", "", "_bucket", "is a gauge"),
        ("podium_leader_renew_duration_seconds", "", "", "is a histogram"),
    ],
)
def test_an_expression_cannot_name_what_does_not_exist(name: str, where: str, suffix: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        series(name, where, suffix=suffix)


def test_an_expression_cannot_group_by_or_compare_with_what_does_not_exist() -> None:
    with pytest.raises(ValueError, match="has no label kind"):
        Queries().highest("podium_inbox_depth", ("kind",))
    with pytest.raises(ValueError, match="no bucket that ends at 5"):
        Queries().slower_than(5.0, "scheduler_pod_scheduling_sli_duration_seconds", "1h")
