"""Alert rules and dashboard are what the table of metrics makes them, and Grafana can read the dashboard."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from deploy.monitoring.generate.dashboard import ROWS, expressions
from deploy.monitoring.generate.files import REPOSITORY, files

FILES = files()
DASHBOARD = REPOSITORY / "deploy/monitoring/dashboard.json"


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_file_is_current(path):
    """`make monitoring` would change nothing."""
    assert path.read_text() == FILES[path], f"{path.relative_to(REPOSITORY)}: run `make monitoring`"


def test_every_panel_has_a_place_and_queries_of_the_chosen_source():
    """Panels stand side by side without overlap, three in a row, under their headings."""
    shown = json.loads(DASHBOARD.read_text())
    graphs = [panel for panel in shown["panels"] if panel["type"] == "timeseries"]
    rows = [panel["title"] for panel in shown["panels"] if panel["type"] == "row"]
    assert rows == list(ROWS)
    assert len(graphs) == sum(map(len, ROWS.values()))
    taken = Counter(
        (x, y)
        for panel in shown["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    )
    assert set(taken.values()) == {1}
    assert max(x for x, _ in taken) < 24
    for panel in graphs:
        assert panel["datasource"] == {"type": "prometheus", "uid": "$datasource"}
        assert [target["refId"] for target in panel["targets"]] == [chr(65 + i) for i in range(len(panel["targets"]))]
    assert tuple(target["expr"] for panel in graphs for target in panel["targets"]) == expressions()


def test_every_query_obeys_the_dashboards_variables():
    """Which installation is shown is chosen above the panels."""
    shown = json.loads(DASHBOARD.read_text())
    assert [variable["name"] for variable in shown["templating"]["list"]] == ["datasource", "namespace", "job"]
    assert all('namespace=~"$namespace",job=~"$job"' in expression for expression in expressions())
