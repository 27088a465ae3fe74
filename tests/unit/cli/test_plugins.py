"""``podium plugins``: what is on offer, where it comes from."""

import json
from importlib.metadata import EntryPoint

import pytest

from scheduler.api import FilterPlugin, PermitPlugin
from scheduler.cli.plugins import plugins
from scheduler.framework.registry import ENTRY_POINT_GROUP, Registry
from scheduler.plugins import IN_TREE


class Mine(FilterPlugin, PermitPlugin):
    name = "Mine"

    def filter(self, state, pod, node):
        return None

    def permit(self, state, pod, node_name):
        return None, 0.0


def registry(*targets):
    return Registry(IN_TREE, [EntryPoint(target, f"{__name__}:{target}", ENTRY_POINT_GROUP) for target in targets])


def test_table_says_who_offers_what(capsys):
    """In-tree plugins are part of it."""
    assert plugins([], registry("Mine")) == 0
    lines = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["NAME"] == ["DISTRIBUTION", "VERSION", "API", "EXTENSION", "POINTS"]
    assert lines["Mine"] == ["unknown", "-", "1", "filter", "permit"]
    assert lines["NodePorts"] == ["podium", "(in-tree)", "-", "1", "preFilter", "filter"]
    assert set(IN_TREE) < lines.keys()


def test_one_that_cannot_be_used_is_listed_with_the_reason(capsys):
    """The exit code says that there is one."""
    assert plugins(["-o", "json"], registry("Mine", "Gone")) == 1
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["Mine"]["extension_points"] == ["filter", "permit"]
    assert "has no attribute 'Gone'" in rows["Gone"]["problem"]


def test_usage_errors_exit_2():
    with pytest.raises(SystemExit) as caught:
        plugins(["--output", "xml"], registry())
    assert caught.value.code == 2
