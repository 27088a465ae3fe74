"""The generated files, with their texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from deploy.monitoring.generate.alerts import rule_file
from deploy.monitoring.generate.dashboard import dashboard

REPOSITORY: Final = Path(__file__).resolve().parents[3]
_HEAD = "# Made by `make monitoring` from deploy/monitoring/generate; a test keeps it current.\n"


def files() -> Mapping[Path, str]:
    """Return path → text. The chart may only read its own folder, so it has copies."""
    rules = _HEAD + yaml.safe_dump(rule_file(), sort_keys=False, width=118, allow_unicode=True)
    panels = json.dumps(dashboard(), indent=1, sort_keys=True) + "\n"
    return {
        REPOSITORY / "deploy/monitoring/alerts.yaml": rules,
        REPOSITORY / "deploy/monitoring/dashboard.json": panels,
        REPOSITORY / "charts/podium/files/alerts.yaml": rules,
        REPOSITORY / "charts/podium/dashboards/podium.json": panels,
    }
